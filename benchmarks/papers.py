"""``python -m benchmarks.papers [TABLE ...]``: the papers' tables, with models trained here on public data.

Models are trained by ``rnnlab train`` and scored by ``rnnlab evaluate``, one after the other. Results are
stored in benchmarks/results; a model with a result is not trained again. The command can be stopped at any
moment, and resumes when it is run again. RNNLAB_DATA names the folder of the data.

Several processes may run at once, each with RNNLAB_NUM_THREADS=1: two processes never train the same model.
``--list`` prints a command for each remaining training, for a queue.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import documents, results
from benchmarks.making import collect, make, measure, missing, remaining, train
from benchmarks.tables import FIGURES, TABLES
from benchmarks.trainings import RUNS, Training
from rnnlab.cli.closed_output import quiet_when_closed
from rnnlab.files import atomic_text

DOCUMENT = Path(__file__).with_name("papers.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and evaluate the models of the tables, and print the tables."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.matmul and (options.show or options.collect or options.write):
        parser.error("--matmul is for trainings, but --show, --collect and --write train nothing")
    for name in options.tables:
        if name not in TABLES:
            parser.error(f"TABLE is {name!r}, expected some of {', '.join(TABLES)}")
    chosen = {name: TABLES[name] for name in options.tables or TABLES}
    if options.train:
        trainings = {each.id: each for table in TABLES.values() for each in table.trainings()}
        if options.train not in trainings:
            parser.error(f"--train is {options.train!r}, expected a training such as flickr8k_lstm-seed0")
        _train(trainings[options.train], options.runs, options.results, options.matmul)
    elif options.list:
        for training in remaining(list(chosen.values()), options.runs, options.results):
            print(shlex.join(_command(training, options)))
    elif options.collect:
        for entry in collect(list(chosen.values()), options.runs, options.results):
            print(options.results / f"{entry}.json")
    elif options.write:
        _write(options.results)
    else:
        for name, table in chosen.items():
            if not options.show:
                make(table, options.runs, options.results, options.matmul)
            print(f"\n### {name}: {table.title}\n\n{documents.markdown(table, options.results)}")
            print(f"\n{documents.commands(table, options.results)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help=f"some of {', '.join(TABLES)}; all if left out"
    )
    parser.add_argument("--runs", type=Path, default=RUNS, help=f"folder of the runs (default: {RUNS})")
    parser.add_argument(
        "--results",
        type=Path,
        default=results.RESULTS,
        help="folder of the results (default: that of the repository)",
    )
    parser.add_argument(
        "--matmul",
        choices=("float32", "bfloat16"),
        help="the precision of products in trainings that begin now, unless a table compares precisions",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--show", action="store_true", help="train nothing, print the existing results")
    instead.add_argument("--list", action="store_true", help="print a command for each remaining training")
    instead.add_argument("--train", metavar="NAME", help="train and evaluate one model, as --list names it")
    instead.add_argument("--collect", action="store_true", help="train nothing, evaluate the trained models")
    instead.add_argument("--write", action="store_true", help=f"write the tables into {DOCUMENT.name}")
    return parser


def _command(training: Training, options: argparse.Namespace) -> list[str]:
    """The command that runs a training with the same options."""
    to = [] if options.results == results.RESULTS else ["--results", str(options.results)]
    precision = [] if options.matmul is None else ["--matmul", options.matmul]
    how = ["--runs", str(options.runs), *to, *precision]
    return ["python", "-m", "benchmarks.papers", *how, "--train", training.id]


def _train(training: Training, runs: Path, to: Path, matmul: str | None) -> None:
    """Train a model, and evaluate it for each table that has it."""
    train(training, runs, matmul)
    for table in TABLES.values():
        for row in table.rows:
            if training in row.entries and missing(training, row.options, table.extras, to):
                measure(training, row.options, table.extras, runs, to)


def _write(of: Path) -> None:
    """Write the tables into the document, and draw the figures."""
    text = documents.rewritten(DOCUMENT.read_text(encoding="utf-8"), TABLES, of)
    with atomic_text(DOCUMENT) as file:
        file.write(text)
    for name, draw in FIGURES.items():
        if draw(DOCUMENT.with_name(f"{name}.png"), of):
            print(DOCUMENT.with_name(f"{name}.png"))


if __name__ == "__main__":
    sys.exit(quiet_when_closed(main))
