"""``python -m benchmarks.papers [TABLE ...]``: the papers' tables, with models trained here on public data.

Models are trained by ``rnnlab train`` and scored by ``rnnlab evaluate``, one after the other. Finished
work is stored in files and not repeated: the command can be stopped at any moment, and resumes when it is run
again.

    RUNS/NAME/                what rnnlab train writes; NAME says recipe, variant and seed
    RUNS/NAME/training.json   written when the training is complete: the peak of the command's memory
    RUNS/NAME/scores*.json    what rnnlab evaluate writes, a file for each way to evaluate
    RUNS/NAME/discrepancy.json   what rnnlab discrepancy writes, for the tables that have it

RNNLAB_DATA names the folder of the data. Two tables at once, each with RNNLAB_NUM_THREADS=1, make better use
of two cores than one after the other, if they have no training in common.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from rnnlab.files import atomic_write


@dataclass(frozen=True)
class Training:
    """A model to train: a recipe, what is different in it, and perhaps another model to start from."""

    name: str
    recipe: str
    changes: tuple[str, ...] = ()  # KEY=VALUE
    seed: int = 0
    start: Training | None = None

    def directory(self, runs: Path) -> Path:
        """Where its run is."""
        return runs / f"{self.name}-seed{self.seed}"

    def command(self, runs: Path) -> list[str]:
        """What trains it from the beginning."""
        changes = [*self.changes, f"training.seed={self.seed}"]
        if self.start is not None:
            changes.append(f"training.warm_start={self.start.directory(runs)}")
        options = [option for change in changes for option in ("--set", change)]
        return ["train", self.recipe, *options, "--out", str(self.directory(runs))]


@dataclass(frozen=True)
class Row:
    """A line of a table; or a line for each of several trainings, of different seeds, and their mean."""

    label: str
    trainings: tuple[Training, ...]
    options: tuple[str, ...]  # of rnnlab evaluate


Column = Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class Table:
    """Rows by columns; a column's function finds its number in what is known of a training."""

    title: str
    rows: tuple[Row, ...]
    columns: dict[str, tuple[Column, str]]  # by name: the function, and the number's format
    discrepancy: bool = False  # whether a column is of rnnlab discrepancy


def score(name: str, factor: float = 1) -> Column:
    """The column of a score of the corpus."""
    return lambda known: factor * known["corpus"].get(name, float("nan"))


def distance(name: str) -> Column:
    """The column of a distance of the states."""
    return lambda known: known[name]


def best(name: str, factor: float = 1) -> Column:
    """The column of the largest value of a metric over the epochs."""
    return lambda known: factor * max(float(epoch[name]) for epoch in known["history"])


def last(name: str) -> Column:
    """The column of what the history has of the last epoch."""
    return lambda known: float(known["history"][-1][name])


def million_parameters(known: dict[str, Any]) -> float:
    """The numbers that are learnt."""
    return known["num_parameters"] / 1e6


def seconds_an_epoch(known: dict[str, Any]) -> float:
    """The median over the epochs, without validation."""
    return median(float(epoch["seconds"]) for epoch in known["history"])


def peak_megabytes(known: dict[str, Any]) -> float:
    """The most that was resident in the command that trained it, data, validation and scores included."""
    return known["peak_megabytes"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, evaluate and print what the tables need."""
    from benchmarks.paper_tables import TABLES

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help=f"some of {', '.join(TABLES)}; all if left out"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/papers"), help="folder of the runs")
    parser.add_argument("--show", action="store_true", help="train nothing, print what there is")
    options = parser.parse_args(arguments)
    for name in options.tables:
        if name not in TABLES:
            parser.error(f"TABLE is {name!r}, expected some of {', '.join(TABLES)}")
    for name in options.tables or TABLES:
        table = TABLES[name]
        if not options.show:
            make(table, options.runs)
        print(f"\n### {table.title}\n\n{markdown(table, options.runs)}\n\n{commands(table, options.runs)}")
    return 0


# ---------------------------------------------------------------- making


def make(table: Table, runs: Path) -> None:
    """Train and evaluate what has not been."""
    for row in table.rows:
        for training in row.trainings:
            _train(training, runs)
            _evaluate(training, row.options, runs)
            if table.discrepancy:
                _compare_states(training, runs)


def _train(training: Training, runs: Path) -> None:
    directory = training.directory(runs)
    complete = directory / "training.json"
    if complete.exists():
        return
    if training.start is not None:
        _train(training.start, runs)
    begun = (directory / "last.h5").exists()
    command = ["train", "--resume", str(directory)] if begun else training.command(runs)
    peak = _rnnlab([*command, *([] if sys.stderr.isatty() else ["--no-progress"])])
    with atomic_write(complete) as temporary:
        temporary.write_text(json.dumps({"peak_megabytes": peak}) + "\n")


def _evaluate(training: Training, options: tuple[str, ...], runs: Path) -> None:
    scores = _scores(training, options, runs)
    if not scores.exists():
        _rnnlab(["evaluate", str(training.directory(runs)), *options, "--json", str(scores)])


def _compare_states(training: Training, runs: Path) -> None:
    written = _discrepancy(training, runs)
    if not written.exists():
        directory = str(training.directory(runs))
        _rnnlab(["discrepancy", directory, "--split", "val", "--json", str(written)])


def _discrepancy(training: Training, runs: Path) -> Path:
    return training.directory(runs) / "discrepancy.json"


def _scores(training: Training, options: tuple[str, ...], runs: Path) -> Path:
    name = "-".join(["scores", *(option.removeprefix("--") for option in options)])
    return training.directory(runs) / f"{name}.json"


def _rnnlab(arguments: list[str]) -> float:
    """Run the command; return the peak of its resident memory in megabytes."""
    print(f"\n$ rnnlab {shlex.join(arguments)}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", "rnnlab", *arguments])
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except KeyboardInterrupt:  # which the command got as well: let it write its checkpoint
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(
            f"rnnlab {arguments[0]} ended with status {process.returncode}; run the command again to resume"
        )
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


# ---------------------------------------------------------------- showing


def markdown(table: Table, runs: Path) -> str:
    """The table; a dash where nothing was trained or evaluated yet."""
    lines = [["", *table.columns], ["---"] * (1 + len(table.columns))]
    for row in table.rows:
        known = [_known(training, row.options, runs, table.discrepancy) for training in row.trainings]
        several = len(known) > 1
        for training, one in zip(row.trainings, known, strict=True):
            label = f"{row.label}, seed {training.seed}" if several else row.label
            lines.append([label, *_cells(table, [one])])
        if several:
            lines.append([f"{row.label}, mean", *_cells(table, known)])
            if len(known) > 2:
                lines.append([f"{row.label}, standard deviation", *_cells(table, known, stdev)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(
    table: Table, known: Sequence[dict[str, Any] | None], over: Callable[[Any], float] = fmean
) -> list[str]:
    """The means over trainings, or what else is made of their numbers, as text."""
    if any(one is None for one in known):
        return ["-"] * len(table.columns)
    return [f"{over(list(map(of, known))):{form}}" for of, form in table.columns.values()]  # type: ignore[arg-type]


def _known(
    training: Training, options: tuple[str, ...], runs: Path, discrepancy: bool
) -> dict[str, Any] | None:
    """The stored results of a training and its evaluation; None if it is not complete."""
    directory = training.directory(runs)
    files = [directory / "config.json", directory / "training.json", _scores(training, options, runs)]
    if discrepancy:
        files.append(_discrepancy(training, runs))
    if not all(file.exists() for file in files):
        return None
    known = {key: value for file in files for key, value in json.loads(file.read_text("utf-8")).items()}
    with (directory / "history.csv").open(newline="", encoding="utf-8") as file:
        return known | {"history": list(csv.DictReader(file))}


def commands(table: Table, runs: Path) -> str:
    """The commands of each row, for someone who wants one row of the table."""
    lines = []
    for row in table.rows:
        for training in row.trainings:
            directory = str(training.directory(runs))
            made = [training.command(runs), ["evaluate", directory, *row.options]]
            if table.discrepancy:
                made.append(["discrepancy", directory, "--split", "val"])
            lines += [f"    rnnlab {shlex.join(words)}" for words in made]
    return "\n".join(dict.fromkeys(lines))


if __name__ == "__main__":
    sys.exit(main())
