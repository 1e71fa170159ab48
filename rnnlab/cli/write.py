"""``rnnlab write``: sentences of a language model."""

from __future__ import annotations

import argparse
from typing import Any

from rnnlab.cli.arguments import add_seed, check_outputs, positive_integer
from rnnlab.cli.device_option import add_device, add_matmul
from rnnlab.cli.run_arguments import RUNS_HELP, add_average, leading_runs, open_runs
from rnnlab.cli.search_options import add_search, search_options
from rnnlab.cli.task_commands import recipe_of
from rnnlab.errors import InputError
from rnnlab.recipes.recipe import LanguageRecipe
from rnnlab.reporting.sentences import sentences_text, write_sentences
from rnnlab.tasks import language

_COUNT = 5  # sentences that are drawn by default


def add(commands: Any) -> None:
    """Add the command's arguments."""
    write = commands.add_parser("write", help="write sentences, or continue a prompt")
    write.set_defaults(run=_write)
    write.add_argument("run_directory", metavar="RUN", help=f"{RUNS_HELP}: RUN RUN ... PROMPT")
    add_device(write)
    add_matmul(write)
    add_average(write)
    write.add_argument(
        "sentences",
        nargs="*",
        metavar="PROMPT",
        help="the beginning of the sentences (default: none)",
    )
    write.add_argument(
        "--count",
        type=positive_integer,
        metavar="N",
        help=f"the number of sentences to sample (default: {_COUNT})",
    )
    write.add_argument("--json", metavar="FILE", help="write the sentences and their scores as JSON")
    add_seed(write)
    add_search(write, first=False)


def _write(options: argparse.Namespace) -> int:
    check_outputs(options, "json")
    directories, prompts = leading_runs(options.run_directory, options.sentences)
    if len(prompts) > 1:
        raise InputError(f"found {len(prompts)} prompts, expected one: put it between quotation marks")
    run = open_runs(directories, options, with_data=False)
    decoding = search_options(recipe_of(run, LanguageRecipe).decoding, options)
    if options.count is not None and decoding.method != "sample":
        raise InputError(f"--count needs --method sample, found {decoding.method}; a beam has --n-best")
    prompt, count, seed = "".join(prompts), options.count or _COUNT, options.seed or 0
    found = language.write(run.model, run.inputs, prompt, decoding, count=count, rng=seed)
    if options.json:  # before printing, which may fail
        write_sentences(options.json, run, prompt, found)
    print(sentences_text(run, prompt, found, lists=decoding.n_best > 1))
    return 0
