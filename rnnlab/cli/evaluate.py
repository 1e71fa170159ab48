"""``rnnlab evaluate``: score captions or translations against references, or classes against labels.

Several runs are scored as one ensemble.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import Any, get_args

from rnnlab import runs
from rnnlab.cli.arguments import add_metrics, check_outputs, positive_integer
from rnnlab.cli.device_option import add_device, add_matmul
from rnnlab.cli.mpi_option import add_mpi
from rnnlab.cli.run_arguments import RUNS_HELP, add_average, check_attends, open_runs
from rnnlab.cli.search_options import add_search, flag_of, given_search, search_options
from rnnlab.data.parallel_text import with_references
from rnnlab.decoding import read_lexicon
from rnnlab.errors import InputError
from rnnlab.options import TokenizerName
from rnnlab.recipes.recipe import CaptioningRecipe, Recipe, TranslationRecipe
from rnnlab.recipes.tables import TranslationEvaluationTable
from rnnlab.reporting.scores import lengths_text, scores_table, write_scores
from rnnlab.runs import Run
from rnnlab.tasks import TASKS, task_of


def add(commands: Any) -> None:
    """Add the command's arguments."""
    evaluate = commands.add_parser("evaluate", help="score the model of a run on a split")
    evaluate.set_defaults(run=_evaluate)
    evaluate.add_argument("run_directories", nargs="+", metavar="RUN", help=RUNS_HELP)
    add_device(evaluate)
    add_matmul(evaluate)
    add_mpi(evaluate)
    add_average(evaluate)
    evaluate.add_argument("--split", help="a split of the data, such as val (default: the recipe's)")
    evaluate.add_argument(
        "--json", metavar="FILE", help="write the scores and the scored sentences or classes as JSON"
    )
    add_metrics(
        evaluate,
        "the scores (default: the recipe's); CS-k is the keystrokes that completion saves, for translations",
    )
    evaluate.add_argument("--tokenizer", choices=get_args(TokenizerName), help="ptb is COCO's and needs Java")
    evaluate.add_argument("--lexicon", metavar="FILE", help="replace <UNK> as rnnlab translate does")
    evaluate.add_argument(
        "--references",
        nargs="+",
        metavar="FILE",
        help="further references of the split for BLEU, a file each with one sentence for each source",
    )
    evaluate.add_argument(
        "--by-length",
        type=positive_integer,
        nargs="*",
        metavar="N",
        help="also BLEU by the number of words of the source, in ranges that start at 0 and at each N "
        "(default: 10 20 30 40 50)",
    )
    add_search(evaluate, n_best=False)


# The task of each option, except the options of a search.
_FOR: dict[str, type[Recipe]] = {
    "tokenizer": CaptioningRecipe,
    "lexicon": TranslationRecipe,
    "references": TranslationRecipe,
    "by_length": TranslationRecipe,
}
_LENGTHS = 10, 20, 30, 40, 50  # as in figure 2 of Xia et al. 2017


def _evaluate(options: argparse.Namespace) -> int:
    check_outputs(options, "json", inputs=(options.lexicon, *(options.references or ())))
    if (lengths := options.by_length) and lengths != sorted(set(lengths)):
        raise InputError(f"--by-length is {' '.join(map(str, lengths))}, expected increasing numbers")
    run = open_runs(options.run_directories, options)
    given = {key: value for key in ("metrics", *_FOR) if (value := getattr(options, key)) is not None}
    _check_metrics(run, given.get("metrics", ()))
    for key in given.keys() & _FOR.keys():
        if not isinstance(run.recipe, _FOR[key]):
            outputs = next(task.outputs for task in TASKS if task.recipe_type is _FOR[key])
            raise InputError(f"{flag_of(key)} is for {outputs}, but {_model_of(run)}")
    arguments: dict[str, Any] = {"communicator": options.communicator}
    if options.lexicon is not None:
        check_attends(run, "--lexicon", "its source")
        arguments["lexicon"] = read_lexicon(given.pop("lexicon"))
    recipe: Any = run.recipe
    if task_of(recipe).scores_sentences:
        arguments["decoding"] = dataclasses.replace(search_options(recipe.decoding, options), n_best=1)
    elif found := given_search(options):
        outputs = " and ".join(task.outputs for task in TASKS if task.scores_sentences)
        raise InputError(
            f"{flag_of(next(iter(found)))} is for scores of {outputs}, which need a search, but "
            f"{_model_of(run)}"
        )
    split = options.split or recipe.evaluation.split
    if references := given.pop("references", ()):
        run = dataclasses.replace(run, data=with_references(run.data, split, references))
    given.pop("by_length", None)
    evaluation = dataclasses.replace(recipe.evaluation, **given)
    if options.first is not None:
        evaluation = evaluation.of_first(options.first)
    _check_translates(evaluation, options)
    result = runs.evaluate(run, split, evaluation=evaluation, **arguments)
    by_length = () if lengths is None else result.by_source_length(lengths or _LENGTHS)
    if options.json and options.communicator.rank == 0:  # before printing, which may fail
        write_scores(options.json, result, run, split, by_length)
    print(scores_table(result, run))
    if by_length:
        print(f"\n{lengths_text(by_length)}")
    return 0


def _check_translates(evaluation: Any, options: argparse.Namespace) -> None:
    """Raise InputError if an option of translations is given but nothing is translated."""
    if not isinstance(evaluation, TranslationEvaluationTable) or "BLEU" in evaluation.metrics:
        return
    found = [flag_of(key) for key in given_search(options)]
    found += [
        flag_of(key) for key in ("lexicon", "references", "by_length") if getattr(options, key) is not None
    ]
    if found:
        raise InputError(
            f"{found[0]} is for translations, which --metrics {' '.join(evaluation.metrics)} does not need: "
            "add BLEU to the metrics"
        )


def _check_metrics(run: Run, metrics: Sequence[str]) -> None:
    """Check that the task of a run has these metrics."""
    for metric in metrics:
        if metric not in task_of(run.recipe).metrics:
            outputs = " and ".join(task.outputs for task in TASKS if metric in task.metrics)
            raise InputError(f"--metrics {metric} is for {outputs}, but {_model_of(run)}")


def _model_of(run: Run) -> str:
    return f"the model of {run.directory} {task_of(run.recipe).verb}"
