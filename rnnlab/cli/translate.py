"""``rnnlab translate`` and ``rnnlab lexicon``: sentences from sentences, and words for <UNK> in them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from rnnlab import runs
from rnnlab.cli.device_option import add_device
from rnnlab.cli.search_options import add_search, search_options
from rnnlab.cli.task_commands import recipe_of
from rnnlab.data.parallel_text import read_lines
from rnnlab.decoding import read_lexicon, write_lexicon
from rnnlab.recipes.recipe import TranslationConfig
from rnnlab.reporting import report
from rnnlab.runs import Run
from rnnlab.tasks import translation


def add(commands: Any) -> None:
    """Add the commands' arguments."""
    translate = commands.add_parser("translate", help="translate sentences")
    translate.set_defaults(run=_translate)
    translate.add_argument("run_directory", metavar="RUN", help="the directory of a run")
    add_device(translate)
    translate.add_argument(
        "sentences",
        nargs="*",
        metavar="SENTENCE",
        help="standard input if there is none, and no --file",
    )
    translate.add_argument("--file", help="a sentence a line, gzipped or not")
    translate.add_argument(
        "--lexicon",
        metavar="FILE",
        help="words for <UNK>: lines of a source word, a tab, a target word; else the source's own word",
    )
    translate.add_argument("--show-attention", metavar="FILE", help="draw what was attended to, in a PNG")
    translate.add_argument("--seed", type=int, default=0, help="of sampling")
    add_search(translate)

    lexicon = commands.add_parser("lexicon", help="make a lexicon of a model's attention to training pairs")
    lexicon.set_defaults(run=_lexicon)
    lexicon.add_argument("run_directory", metavar="RUN", help="the directory of a run")
    add_device(lexicon)
    lexicon.add_argument("file", metavar="FILE", help="what to write, for translate and evaluate --lexicon")


def _translate(options: argparse.Namespace) -> int:
    run, config = _translator(options, with_data=False)
    if options.sentences and options.file:
        raise ValueError("give either sentences or --file")
    sources = [run.inputs.tokenize(line) for line in _lines(options)]
    if options.show_attention and len(sources) != 1:
        raise ValueError(f"--show-attention draws one sentence, and {len(sources)} are given")
    translations = translation.translate(
        run.model,
        sources,
        search_options(config.decoding, options),
        lexicon=read_lexicon(options.lexicon) if options.lexicon else None,
        alignments=options.show_attention is not None,
        rng=options.seed,
    )
    if translations:
        print(report.translations_text(translations))
    if options.show_attention:
        report.alignment_picture(options.show_attention, sources[0], translations[0][0])
    return 0


def _lines(options: argparse.Namespace) -> Sequence[str]:
    if options.sentences:
        lines = options.sentences
    elif options.file:
        lines = read_lines(options.file)
    else:
        lines = [line.rstrip("\r\n") for line in sys.stdin]
    return lines[: options.first]


def _lexicon(options: argparse.Namespace) -> int:
    run, config = _translator(options)
    found = translation.lexicon(run.model, run.data, batch_size=config.training.batch_size)
    write_lexicon(options.file, found)
    print(f"{options.file}: {len(found):,} source words")
    return 0


def _translator(options: argparse.Namespace, *, with_data: bool = True) -> tuple[Run, TranslationConfig]:
    run = runs.load_run(options.run_directory, with_data=with_data, device=options.device)
    return run, recipe_of(run, TranslationConfig)
