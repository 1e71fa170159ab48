"""``rnnlab evaluate``: score captions or translations against references."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from rnnlab import experiment, report
from rnnlab.cli.searching import add_search, search_options
from rnnlab.config import TranslationConfig
from rnnlab.decoding import read_lexicon
from rnnlab.metrics import METRICS


def add(commands: Any) -> None:
    """Add the command's arguments."""
    evaluate = commands.add_parser("evaluate", help="score captions or translations against references")
    evaluate.set_defaults(run=_evaluate)
    evaluate.add_argument("run_directory", metavar="RUN", help="the directory of a run")
    evaluate.add_argument("--split", help="one of the data's, such as val; the recipe's if left out")
    evaluate.add_argument("--json", metavar="FILE", help="write scores and sentences")
    evaluate.add_argument("--metrics", nargs="+", choices=list(METRICS), help="the recipe's if left out")
    evaluate.add_argument("--tokenizer", choices=["simple", "ptb"], help="ptb is COCO's and needs Java")
    evaluate.add_argument("--lexicon", metavar="FILE", help="words for <UNK>, as rnnlab translate takes")
    add_search(evaluate, n_best=False)


def _evaluate(options: argparse.Namespace) -> int:
    run = experiment.load_run(options.run_directory)
    translates = isinstance(run.config, TranslationConfig)
    changes = {"metrics": options.metrics, "tokenizer": options.tokenizer, "lexicon": options.lexicon}
    given = {key: value for key, value in changes.items() if value is not None}
    for key in given:
        if translates != (key == "lexicon"):
            of, does = ("captions", "translates") if translates else ("translations", "captions")
            raise ValueError(f"--{key} is for {of}, and the model of {run.directory} {does}")
    lexicon = {"lexicon": read_lexicon(given.pop("lexicon"))} if options.lexicon else {}
    if options.first is not None:
        given["max_sentences" if translates else "max_images"] = options.first
    evaluation = dataclasses.replace(run.config.evaluation, **given)
    split = options.split or evaluation.split
    result = experiment.evaluate(
        run,
        split,
        decoding=dataclasses.replace(search_options(run.config.decoding, options), n_best=1),
        evaluation=evaluation,
        **lexicon,
    )
    print(report.scores_table(result))
    if options.json:
        report.write_scores(options.json, result, run, split)
    return 0
