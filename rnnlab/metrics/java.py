"""The Java programs of the COCO caption evaluation: METEOR and the Penn Treebank tokenizer.

Their jars come with pycocoevalcap. A failure of Java is a :class:`JavaError` with the last line of its
output, and every process ends with the call that started it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from rnnlab.errors import InputError, RnnlabError
from rnnlab.metrics.scorers import CAPTION_SCORERS
from rnnlab.reading import utf8


class JavaError(RnnlabError, OSError):
    """Java is missing, or a Java program failed."""


def check_java(program: str) -> None:
    """Check that Java is installed; ``program`` is the program that needs it, for the error.

    Raises
    ------
    JavaError
        If it is not.
    """
    if shutil.which("java") is None:
        raise JavaError(f"{program} needs Java, and there is no java on the PATH")


def meteor(references: dict[int, list[str]], candidates: dict[int, list[str]]) -> tuple[float, list[float]]:
    """METEOR of the corpus and of each image.

    Parameters
    ----------
    references, candidates : dict of int to list of str
        The sentences by image, with one space between words; one candidate per image.

    Raises
    ------
    JavaError
        If Java is missing or METEOR fails, or a sentence has a lone surrogate.
    """
    library = CAPTION_SCORERS.module("meteor.meteor")
    check_java("METEOR")
    for name, sentences in (("references", references), ("candidates", candidates)):
        for sentence in chain.from_iterable(sentences.values()):
            try:
                utf8(name, sentence)
            except InputError as error:
                raise JavaError(str(error)) from None
    scorer = library.Meteor()
    output = b""
    try:
        with scorer.meteor_p as process:
            try:
                return scorer.compute_score(_without_bars(references), candidates)
            finally:
                process.kill()
                output = process.stderr.read()
    except (OSError, ValueError) as error:  # a broken pipe, or a line that is not a number
        raise JavaError(f"METEOR's Java process failed: {_last_line(output)}") from error
    finally:
        if scorer.lock.locked():  # after an error; its destructor would wait for it forever
            scorer.lock.release()


def ptb_tokenizer(sentences: Sequence[str]) -> Callable[[str], list[str]]:
    """The Penn Treebank tokenizer of the COCO evaluation, run once over all sentences.

    Parameters
    ----------
    sentences : sequence of str
        Candidates and references.

    Returns
    -------
    callable
        From one of ``sentences`` to its words: lower case, without punctuation.

    Raises
    ------
    ImportError
        If the extra ``eval`` is not installed.
    ValueError
        If a sentence has a lone surrogate.
    JavaError
        If Java is missing or the tokenizer fails.
    """
    for sentence in sentences:
        utf8("ptb_tokenizer: sentences", sentence)
    library = CAPTION_SCORERS.module("tokenizer.ptbtokenizer")
    check_java("the Penn Treebank tokenizer")
    jar = Path(library.__file__).with_name(library.STANFORD_CORENLP_3_4_1_JAR)
    command = ["java", "-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer"]
    command += ["-preserveLines", "-lowerCase", "-encoding", "utf-8"]
    text = "".join(" ".join(sentence.split()) + "\n" for sentence in sentences)
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    lines = done.stdout.decode().replace("\r\n", "\n").split("\n")[:-1]  # "\r\n" on Windows
    if done.returncode or len(lines) != len(sentences):
        raise JavaError(
            f"the Penn Treebank tokenizer gave {len(lines)} lines for {len(sentences)} sentences: "
            f"{_last_line(done.stderr)}"
        )
    words = {
        sentence: [word for word in line.split(" ") if word and word not in library.PUNCTUATIONS]
        for sentence, line in zip(sentences, lines, strict=True)
    }
    return words.__getitem__


def _without_bars(sentences: dict[int, list[str]]) -> dict[int, list[str]]:
    """The sentences without ``|||``, which separates the fields of METEOR's input.

    The library removes it from candidates, but not from references.
    """
    return {image: [text.replace("|||", "") for text in texts] for image, texts in sentences.items()}


def _last_line(output: bytes) -> str:
    return output.decode(errors="replace").strip().rpartition("\n")[2] or "no output"
