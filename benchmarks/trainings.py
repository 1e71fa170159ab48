"""The papers' tables, their rows, and the trainings and other entries of the rows.

An *entry* has scores: it is a trained model, an ensemble of models, or the human captions. A row has one
entry, or several of different seeds. :mod:`benchmarks.columns` has the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchmarks.columns import Column

RUNS = Path("runs/papers")  # in the commands of results and documents

# Measurements besides the scores of rnnlab evaluate, and the names of their numbers.
Extra = Literal["discrepancy", "comments", "four references"]
CAPTION_SCORES = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr")
EXTRAS: dict[Extra, tuple[str, ...]] = {
    "discrepancy": ("d_mc", "d_pw"),
    "comments": CAPTION_SCORES,
    "four references": tuple(f"{name}, 4 references" for name in CAPTION_SCORES),
}


@dataclass(frozen=True)
class Training:
    """A model to train: a recipe, changes of its keys, and optionally another model to start from."""

    name: str
    recipe: str  # the name of a recipe of rnnlab
    changes: tuple[str, ...] = ()  # KEY=VALUE
    seed: int = 0
    start: Training | None = None

    @property
    def id(self) -> str:
        """The name of its run directory and of its file of results."""
        return f"{self.name}-seed{self.seed}"

    @property
    def members(self) -> tuple[Training, ...]:
        """The models that are evaluated together: this one."""
        return (self,)

    @property
    def all_changes(self) -> list[str]:
        """The changes of the recipe, with the seed."""
        return [*self.changes, f"training.seed={self.seed}"]

    def directory(self, runs: Path) -> Path:
        """The run directory."""
        return runs / self.id

    @property
    def precision(self) -> str | None:
        """The precision of products, if the table compares precisions."""
        settings = (change.partition("=") for change in self.changes)
        return next((value for key, _, value in settings if key == "training.matmul"), None)

    def command(self, runs: Path = RUNS, matmul: str | None = None) -> list[str]:
        """The arguments of rnnlab that train the model from the beginning.

        Parameters
        ----------
        runs : path
            The folder of the runs.
        matmul : str, optional
            The precision of products, if the training does not set one.
        """
        changes = self.all_changes
        if self.start is not None:
            changes.append(f"training.warm_start={self.start.directory(runs)}")
        options = [option for change in changes for option in ("--set", change)]
        precision = [] if matmul is None or self.precision else ["--matmul", matmul]
        return ["train", self.recipe, *options, "--out", str(self.directory(runs)), *precision]


@dataclass(frozen=True)
class Ensemble:
    """Models whose log-probabilities are averaged."""

    id: str
    members: tuple[Training, ...]


@dataclass(frozen=True)
class People:
    """The human captions: each is scored against the other four of its image."""

    id: str
    recipe: str  # the recipe of the data
    members: tuple[Training, ...] = ()


Entry = Training | Ensemble | People


@dataclass(frozen=True)
class Row:
    """A row of a table, for one entry or for several seeds, and the paper's numbers, if it has them."""

    label: str
    entries: tuple[Entry, ...]
    options: tuple[str, ...]  # options of rnnlab evaluate
    paper: Mapping[str, float | str] = field(default_factory=dict)  # the paper's numbers, by column


@dataclass(frozen=True)
class Table:
    """A table of rows and columns."""

    title: str
    rows: tuple[Row, ...]
    columns: Mapping[str, Column]
    paper: str = "the paper"  # the label of the paper's numbers
    extras: tuple[Extra, ...] = ()

    def trainings(self) -> Iterator[Training]:
        """All models to train for the table, each after the one it starts from."""
        for row in self.rows:
            for entry in row.entries:
                for training in entry.members:
                    yield from with_starts(training)


def with_starts(training: Training) -> Iterator[Training]:
    """The chain of trainings that a training starts from, in order, and then the training itself."""
    if training.start is not None:
        yield from with_starts(training.start)
    yield training


def seeds(training: Training, count: int) -> tuple[Training, ...]:
    """The same training with the seeds 0 to ``count`` - 1; each starts from the model of its own seed."""

    def seeded(one: Training, seed: int) -> Training:
        start = None if one.start is None else seeded(one.start, seed)
        return Training(one.name, one.recipe, one.changes, seed, start)

    return tuple(seeded(training, seed) for seed in range(count))
