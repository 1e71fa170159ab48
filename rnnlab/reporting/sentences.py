"""Sentences of a language model as text, and as JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rnnlab.decoding import Hypothesis
from rnnlab.reporting.json_file import write_json
from rnnlab.runs import Run

_RULE = "-" * 40  # between running texts, which have lines


def sentences_text(run: Run, prompt: str, found: Sequence[Hypothesis], *, lists: bool = False) -> str:
    """One line for each sentence, with its prompt; in n-best lists also its score."""
    texts = texts_of(run, prompt, found)
    if lists:
        texts = [f"{one.score:8.3f}  {text}" for one, text in zip(found, texts, strict=True)]
    return (f"\n{_RULE}\n" if run.inputs.running else "\n").join(texts)


def write_sentences(path: str | os.PathLike[str], run: Run, prompt: str, found: Sequence[Hypothesis]) -> None:
    """Write all sentences with their scores; see :func:`write_json`."""
    sentences = [
        {"sentence": text, "score": one.score, "log_prob": one.log_prob, "finished": one.finished}
        for one, text in zip(found, texts_of(run, prompt, found), strict=True)
    ]
    written = run.inputs.text(run.inputs.prompt(prompt)[0].tolist())
    write_json(path, run, {"prompt": written, "sentences": sentences})


def texts_of(run: Run, prompt: str, found: Sequence[Hypothesis]) -> list[str]:
    """The prompt with the words that were found after it."""
    begun = run.inputs.prompt(prompt)[0].tolist()
    return [run.inputs.text([*begun, *one.tokens]) for one in found]
