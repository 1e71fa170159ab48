"""``rnnlab translate``, and ``rnnlab lexicon``, which makes a lexicon for UNK replacement."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rnnlab import runs
from rnnlab.cli.arguments import add_seed, check_output, check_outputs
from rnnlab.cli.device_option import add_device, add_matmul
from rnnlab.cli.mpi_option import add_mpi
from rnnlab.cli.run_arguments import RUNS_HELP, add_average, check_attends, leading_runs, open_runs
from rnnlab.cli.search_options import add_search, search_options
from rnnlab.cli.task_commands import recipe_of
from rnnlab.data.parallel_text import read_lines
from rnnlab.decoding import read_lexicon, write_lexicon
from rnnlab.errors import InputError
from rnnlab.reading import stream_lines
from rnnlab.recipes.recipe import TranslationRecipe
from rnnlab.reporting.translations import alignment_picture, translations_text, write_translations
from rnnlab.tasks import translation
from rnnlab.training.distributed import by_rank_0

_FILE_NAME = re.compile(r"[^\s<>]+\.[A-Za-z]{2,4}")  # of one word, which is hardly a sentence


def add(commands: Any) -> None:
    """Add the commands' arguments."""
    translate = commands.add_parser("translate", help="translate sentences")
    translate.set_defaults(run=_translate)
    translate.add_argument("run_directory", metavar="RUN", help=f"{RUNS_HELP}: RUN RUN ... SENTENCE ...")
    add_device(translate)
    add_matmul(translate)
    add_mpi(translate)
    add_average(translate)
    translate.add_argument(
        "sentences",
        nargs="*",
        metavar="SENTENCE",
        help="sentences to translate (default: the lines of standard input)",
    )
    translate.add_argument("--file", help="translate the lines of a text file, gzipped or not")
    translate.add_argument(
        "--lexicon",
        metavar="FILE",
        help="replace <UNK> by the translation of the source word with the most attention, or by that word. "
        "Each line of FILE has a source word, a tab and a target word",
    )
    translate.add_argument("--json", metavar="FILE", help="write the translations and their scores as JSON")
    translate.add_argument(
        "--show-attention",
        metavar="FILE",
        help="draw the attention of each translation in a PNG: FILE-1.png and so on for several sentences",
    )
    add_seed(translate)
    add_search(translate)

    lexicon = commands.add_parser(
        "lexicon", help="make a lexicon from a model's attention over its training data"
    )
    lexicon.set_defaults(run=_lexicon)
    lexicon.add_argument("run_directory", metavar="RUN", help="a run directory")
    add_device(lexicon)
    add_matmul(lexicon)
    lexicon.add_argument(
        "file", metavar="FILE", help="the file to write, for --lexicon of translate and evaluate"
    )


def _translate(options: argparse.Namespace) -> int:
    check_outputs(options, "json", "show_attention", inputs=(options.file, options.lexicon))
    directories, options.sentences = leading_runs(options.run_directory, options.sentences)
    if options.sentences and options.file is not None:
        raise InputError("give either sentences or --file")
    run = open_runs(directories, options, with_data=False)
    recipe = recipe_of(run, TranslationRecipe)
    for option, given in (("--show-attention", options.show_attention), ("--lexicon", options.lexicon)):
        if given is not None:
            check_attends(run, option, "its source")
    ranks, decoding = options.communicator, search_options(recipe.decoding, options)
    lines = by_rank_0(ranks, lambda: _lines(options))  # only rank 0 has a standard input
    sources = [run.inputs.tokenize(line) for line in lines]
    pictures = _pictures(options.show_attention, len(sources))
    for path in pictures if ranks.rank == 0 else ():
        check_output("--show-attention", path, inputs=(options.file, options.lexicon))
        if options.json is not None and os.path.realpath(options.json) == os.path.realpath(path):
            raise InputError(f"--json is {options.json}, which --show-attention writes: choose another")
    if ranks.rank == 0:
        _warn_about(sources, run.inputs.unknown_words)
    translations = translation.translate(
        run.model,
        sources,
        decoding,
        lexicon=None if options.lexicon is None else read_lexicon(options.lexicon),
        return_alignments=options.show_attention is not None,
        rng=options.seed or 0,
        communicator=ranks,
    )
    if ranks.rank:
        return 0
    if options.json:
        write_translations(options.json, run, lines, translations)
    for path, words, (best, *_) in zip(pictures, sources, translations, strict=False):
        alignment_picture(path, words, best)
    if translations:  # after the files are written, because printing may fail
        print(translations_text(translations, run.inputs.detokenize, lists=decoding.n_best > 1))
    return 0


def _warn_about(
    sources: Sequence[Sequence[str]], unknown_words: Callable[[Sequence[str]], list[str]]
) -> None:
    """Report empty sentences and words that the model does not know on standard error."""
    for number, words in enumerate(sources, 1):
        if not words:
            print(f"rnnlab translate: sentence {number} is empty", file=sys.stderr)
        if unknown := unknown_words(words):
            print(
                f"rnnlab translate: sentence {number}: read as <UNK>: {', '.join(unknown)}", file=sys.stderr
            )


def _pictures(name: str | None, count: int) -> list[Path]:
    """A path for each sentence, numbered if there are several; none without a name."""
    if name is None:
        return []
    path = Path(name)
    if count == 1:
        return [path]
    return [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, count + 1)]


def _lines(options: argparse.Namespace) -> Sequence[str]:
    if options.sentences:
        lines = list(map(_checked, options.sentences))
        for line in lines:
            if _FILE_NAME.fullmatch(line):
                print(
                    f"rnnlab translate: {line!r} is read as a sentence; --file reads sentences from a file",
                    file=sys.stderr,
                )
    elif options.file is not None:
        lines = read_lines(options.file)
    else:
        lines = list(stream_lines(sys.stdin.buffer, "standard input"))
    return lines[: options.first]


def _checked(sentence: str) -> str:
    """A sentence, if it is UTF-8."""
    try:
        sentence.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"SENTENCE {sentence!r} is not UTF-8 from character {error.start + 1} on") from None
    return sentence


def _lexicon(options: argparse.Namespace) -> int:
    check_output("FILE", options.file)
    run = runs.load_run(options.run_directory, device=options.device)
    recipe = recipe_of(run, TranslationRecipe)
    check_attends(run, "lexicon", "its source")
    found = translation.lexicon(run.model, run.data, batch_size=recipe.training.batch_size)
    write_lexicon(options.file, found)
    print(f"{options.file}: {len(found):,} source words")
    return 0
