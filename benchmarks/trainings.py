"""The parts of the papers' tables: trainings and what else has scores, rows, columns, tables.

An *entry* has scores: a trained model, an ensemble of models, or the captions that people wrote. A row has
one entry, or several of different seeds. A column finds its number in the results of an entry: see
:mod:`benchmarks.results`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

RUNS = Path("runs/papers")  # of the commands in results and documents

# What is measured in addition to the scores of rnnlab evaluate, and the names of its numbers.
Extra = Literal["discrepancy", "comments", "four references"]
CAPTION_SCORES = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr")
EXTRAS: dict[Extra, tuple[str, ...]] = {
    "discrepancy": ("d_mc", "d_pw"),
    "comments": CAPTION_SCORES,
    "four references": tuple(f"{name}, 4 references" for name in CAPTION_SCORES),
}


@dataclass(frozen=True)
class Training:
    """A model to train: a recipe, what is different in it, and perhaps another model to start from."""

    name: str
    recipe: str  # recipes/RECIPE.toml
    changes: tuple[str, ...] = ()  # KEY=VALUE
    seed: int = 0
    start: Training | None = None

    @property
    def id(self) -> str:
        """The name of its run directory and of its file of results."""
        return f"{self.name}-seed{self.seed}"

    @property
    def members(self) -> tuple[Training, ...]:
        """The models that are evaluated together: itself."""
        return (self,)

    @property
    def all_changes(self) -> list[str]:
        """The changes of the recipe, with the seed."""
        return [*self.changes, f"training.seed={self.seed}"]

    def directory(self, runs: Path) -> Path:
        """The run directory."""
        return runs / self.id

    def command(self, runs: Path = RUNS) -> list[str]:
        """The arguments of rnnlab that train it from the beginning."""
        changes = self.all_changes
        if self.start is not None:
            changes.append(f"training.warm_start={self.start.directory(runs)}")
        options = [option for change in changes for option in ("--set", change)]
        return ["train", f"recipes/{self.recipe}.toml", *options, "--out", str(self.directory(runs))]


@dataclass(frozen=True)
class Ensemble:
    """Models whose log-probabilities are averaged."""

    id: str
    members: tuple[Training, ...]


@dataclass(frozen=True)
class People:
    """The captions that people wrote: each is scored against the other four of its image."""

    id: str
    recipe: str  # whose data are read
    members: tuple[Training, ...] = ()


Entry = Training | Ensemble | People


@dataclass(frozen=True)
class Row:
    """A line of a table, of one entry or of several seeds; and the paper's line, if it has one."""

    label: str
    entries: tuple[Entry, ...]
    options: tuple[str, ...]  # of rnnlab evaluate
    paper: Mapping[str, float | str] = field(default_factory=dict)  # the paper's numbers, by column


@dataclass(frozen=True)
class Column:
    """The numbers of one column: where they are found, and how they are printed."""

    find: Callable[[Mapping[str, Any], Mapping[str, float]], float | None]  # of results and one evaluation
    form: str


@dataclass(frozen=True)
class Table:
    """Rows by columns."""

    title: str
    rows: tuple[Row, ...]
    columns: Mapping[str, Column]
    paper: str = "the paper"  # whose numbers the rows have beside them
    extras: tuple[Extra, ...] = ()

    def trainings(self) -> Iterator[Training]:
        """All models that are trained for it, each after the one it starts from."""
        for row in self.rows:
            for entry in row.entries:
                for training in entry.members:
                    yield from with_starts(training)


def with_starts(training: Training) -> Iterator[Training]:
    """A training after those that it starts from."""
    if training.start is not None:
        yield from with_starts(training.start)
    yield training


def seeds(training: Training, count: int) -> tuple[Training, ...]:
    """The same training with the seeds 0 to ``count`` - 1; each starts from the start of its seed."""

    def seeded(one: Training, seed: int) -> Training:
        start = None if one.start is None else seeded(one.start, seed)
        return Training(one.name, one.recipe, one.changes, seed, start)

    return tuple(seeded(training, seed) for seed in range(count))


# ---------------------------------------------------------------- columns


def score(name: str, form: str = ".1f", factor: float = 100) -> Column:
    """A score of the evaluation."""

    def find(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
        return factor * evaluation[name] if name in evaluation else None

    return Column(find, form)


def best(name: str, form: str = ".1f", factor: float = 100, least: bool = False) -> Column:
    """The best value of a metric over the epochs, which is that of the model if it chose the epoch."""

    def find(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
        values = _history(results, name)
        return factor * (min(values) if least else max(values)) if values else None

    return Column(find, form)


def last(name: str, form: str = ".3f") -> Column:
    """The value of a metric in the last epoch."""

    def find(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
        values = _history(results, name)
        return values[-1] if values else None

    return Column(find, form)


def _history(results: Mapping[str, Any], name: str) -> list[float]:
    return [epoch[name] for epoch in results.get("history", ()) if name in epoch]


def _epochs(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    return float(len(results["history"])) if results.get("history") else None


def _seconds(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    values = _history(results, "seconds")
    return median(values) if values else None


def _cpu_minutes(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    return results.get("cpu_minutes")


def _million_parameters(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    found = results.get("num_parameters")
    return None if found is None else found / 1e6


def _peak_megabytes(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    return results.get("peak_megabytes")


EPOCHS = {"epochs": Column(_epochs, ".0f")}
SIZE = {"million parameters": Column(_million_parameters, ".2f")}
SECONDS = {"seconds an epoch": Column(_seconds, ".0f")}  # the median, without validation
MINUTES = {"core minutes": Column(_cpu_minutes, ".1f")}  # of the command: epochs, validation, final scores
PEAK = {"peak memory, MB": Column(_peak_megabytes, ",.0f")}  # resident, data and validation included
COST = SIZE | SECONDS
BLEU = {f"BLEU-{n}": score(f"BLEU-{n}") for n in (1, 2, 3, 4)}
CAPTIONS = BLEU | {name: score(name) for name in ("METEOR", "ROUGE-L", "CIDEr")}
PERPLEXITY = {"perplexity": score("perplexity", ".2f", 1)}
DISTANCES = {name: score(name, ".3f", 1) for name in ("d_mc", "d_pw")}
