"""The record of a training run: recipe, history and stages. Neither data nor models are opened.

A run may be under way, killed or damaged. Everything readable is read, and :attr:`Record.notes` lists the
rest.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.errors import InputError
from rnnlab.reading import load_json, text_lines
from rnnlab.recipes.recipe import RecipeError, recipe_from_dict
from rnnlab.tasks import task_of
from rnnlab.training import load_checkpoint
from rnnlab.training.checkpoint import CheckpointError
from rnnlab.training.epoch_totals import FORMER
from rnnlab.training.monitor import MODES
from rnnlab.training.run_directory import checkpoint_of, holds_run, stage_directories

UNKNOWN = "unknown"  # the task of a run without a readable recipe
_FILES = ("last.h5", "best.h5", "history.csv", "config.json")


@dataclass(frozen=True)
class StageRecord:
    """The training of one stage, or of the whole run if it has no stages.

    Attributes
    ----------
    directory : Path
    history : list of dict
        A row for each finished epoch: ``epoch`` and ``iteration``, and the other columns as numbers.
    losses : (iterations,)
        The loss of each iteration; empty if no checkpoint can be read.
    options : dict
        The options of the solver.
    objective : dict or None
        The options of an objective other than the likelihood.
    """

    directory: Path
    history: list[dict[str, Any]]
    losses: np.ndarray
    options: dict[str, Any]
    objective: dict[str, Any] | None

    @property
    def epochs(self) -> int:
        """The number of the last finished epoch, 0 if there is none."""
        return self.history[-1]["epoch"] if self.history else 0

    @property
    def monitor(self) -> str:
        """The metric that chooses the best epoch."""
        return str(self.options.get("monitor", "val_loss"))

    @property
    def best_epoch(self) -> int | None:
        """The epoch with the best value of the monitored metric; None without validation."""
        rows = [row for row in self.history if math.isfinite(row.get(self.monitor, math.nan))]
        if not rows:
            return None
        mode = self.options.get("monitor_mode") or MODES.get(self.monitor, "min")
        best = min if mode == "min" else max
        return best(rows, key=lambda row: row[self.monitor])["epoch"]

    @property
    def restores_best(self) -> bool:
        """Whether training ends with the parameters of the best epoch, not with those of the last one."""
        return bool(self.options.get("restore_best", True)) and self.best_epoch is not None

    @property
    def stopped_early(self) -> bool:
        """Whether ``patience`` is exhausted."""
        best, patience = self.best_epoch, self.options.get("patience")
        return patience is not None and best is not None and self.history[-1]["epoch"] - best >= patience

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or ``patience`` is exhausted; false if their number is unknown."""
        asked = self.options.get("num_epochs")
        return isinstance(asked, int) and (self.epochs >= asked or self.stopped_early)

    @property
    def progress(self) -> str:
        """The number of epochs that are done, and whether there should be more."""
        done, asked = self.epochs, self.options.get("num_epochs")
        if not isinstance(asked, int):
            return str(done)
        if done >= asked:
            return f"{done} of {asked}"
        return f"{done} of {asked}, {'stopped early' if self.finished else 'unfinished'}"


@dataclass(frozen=True)
class Record:
    """The information about a run that is available without its data.

    Attributes
    ----------
    directory : Path
    name : str
        Its directory's name, or its path if several runs have that name.
    recipe : dict or None
        The tables of its recipe; None if it was not trained from a recipe.
    model : str
        The class of its model; empty if unknown.
    num_parameters : int or None
    stages : list of StageRecord
        In the order of training; empty for a planned run.
    notes : list of str
        Remarks on missing or damaged files.
    """

    directory: Path
    name: str
    recipe: dict[str, Any] | None
    model: str
    num_parameters: int | None
    stages: list[StageRecord]
    notes: list[str] = field(default_factory=list)

    @property
    def task(self) -> str:
        """What the model writes, such as "captions"; "unknown" without a readable recipe."""
        if self.recipe is None:
            return UNKNOWN
        try:
            return task_of(recipe_from_dict(self.recipe, to_train=False)).outputs
        except RecipeError:
            return UNKNOWN

    @property
    def finished(self) -> bool:
        """Whether its last stage is finished."""
        return bool(self.stages) and self.stages[-1].directory == self.directory and self.stages[-1].finished

    @property
    def seconds(self) -> float:
        """The time of training, without validation."""
        return sum(row.get("seconds", 0.0) for stage in self.stages for row in stage.history)

    @property
    def epochs(self) -> int:
        """The finished epochs of all stages."""
        return sum(stage.epochs for stage in self.stages)

    @property
    def best_epoch(self) -> int | None:
        """The best epoch of the last stage, numbered across all stages; None without validation."""
        if not self.stages:
            return None
        *before, last = self.stages
        return None if last.best_epoch is None else sum(each.epochs for each in before) + last.best_epoch

    @property
    def scored_epoch(self) -> int | None:
        """The epoch whose parameters the run has, and its scores are of, numbered across all stages."""
        if not self.stages:
            return None
        return self.best_epoch if self.stages[-1].restores_best else self.epochs

    def facts(self) -> list[tuple[str, str]]:
        """Names and values of the most important properties of the run."""
        parameters = "unknown" if self.num_parameters is None else f"{self.num_parameters:,}"
        progress = "; ".join(stage.progress for stage in self.stages)
        best = "no validation"
        if self.best_epoch is not None:
            last = self.stages[-1]
            kept = "" if last.restores_best else f"; the parameters are those of epoch {self.epochs}"
            best = f"{self.best_epoch} by {last.monitor}{kept}"
        return [
            ("task", self.task),
            ("parameters", parameters),
            ("epochs", progress),
            ("best epoch", best),
            ("training time", duration(self.seconds)),
        ]


def facts_side_by_side(records: Sequence[Record]) -> list[tuple[str, list[str]]]:
    """The facts of runs: a name, and a value for each run."""
    facts = [dict(record.facts()) for record in records]
    return [(name, [each[name] for each in facts]) for name in facts[0]]


def duration(seconds: float) -> str:
    """A time in readable units: 12 s, 3 min 20 s, 2 h 05 min."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def read_records(directories: Sequence[str | os.PathLike[str]]) -> list[Record]:
    """The records of runs, in the order of the directories.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If a directory does not exist, or holds no run.
    ValueError
        If a run is given twice.
    """
    paths = [Path(directory) for directory in directories]
    resolved = [path.resolve() for path in paths]
    for path, real in zip(paths, resolved, strict=True):
        if resolved.count(real) > 1:
            raise InputError(f"{path} is given twice, expected different runs")
    names = [real.name for real in resolved]
    return [
        _read(path, real.name if names.count(real.name) == 1 else str(path))
        for path, real in zip(paths, resolved, strict=True)
    ]


def _read(path: Path, name: str) -> Record:
    folders = [*stage_directories(path), path]
    begun = [folder for folder in folders if any((folder / file).exists() for file in _FILES)]
    if not begun or not (holds_run(path) or (begun[-1] / "config.json").exists()):
        checkpoint_of(path)  # raises an error that describes a run's files
        raise FileNotFoundError(f"{path} holds no run, expected config.json or a checkpoint")
    notes: list[str] = []
    described: dict[str, Any] = {}
    stages = []
    for folder in begun:
        stage, described = _read_stage(folder, notes)
        stages.append(stage)
    if len(folders) > 1 and begun[-1] != path:
        notes.append(f"{path}: its last stage has not begun; {begun[-1]} is the latest")
    model, parameters = described.get("model"), described.get("num_parameters")
    recipe = described.get("config")
    recipe = recipe if isinstance(recipe, dict) else None
    if recipe is not None:
        try:
            recipe_from_dict(recipe, to_train=False)
        except RecipeError as error:
            notes.append(f"{begun[-1] / 'config.json'}: {error}")
    return Record(
        path,
        name,
        recipe,
        str(model.get("class", "")) if isinstance(model, dict) else "",
        parameters if isinstance(parameters, int) else None,
        stages,
        notes,
    )


def _read_stage(folder: Path, notes: list[str]) -> tuple[StageRecord, dict[str, Any]]:
    """A stage and the content of its config.json, or the checkpoint's copy of it."""
    described = _read_config(folder / "config.json", notes)
    history: list[dict[str, Any]] = []
    losses = np.zeros(0)
    try:
        checkpoint = load_checkpoint(folder / "last.h5")
    except FileNotFoundError:
        notes.append(f"{folder} has no last.h5, the checkpoint that every epoch writes")
    except (CheckpointError, OSError) as error:
        notes.append(f"{error}: the history is read from history.csv, without the losses of iterations")
    else:
        history = _checked(checkpoint.history, f"{folder / 'last.h5'}: history", notes)
        losses = checkpoint.losses
        described = {
            "config": checkpoint.config,
            "model": checkpoint.model,
            "num_parameters": int(checkpoint.parameters.flat.size),
            "solver": checkpoint.solver.get("options", {}),
            "objective": checkpoint.solver.get("objective"),
        } | described
        best = checkpoint.solver.get("monitor", {}).get("best_epoch")
        restores = checkpoint.solver.get("options", {}).get("restore_best", True)
        if best is not None and restores and not (folder / "best.h5").exists():
            notes.append(
                f"{folder} has no best.h5, the checkpoint of its best epoch {best}: scores are of last.h5"
            )
    history = history or _read_csv(folder / "history.csv", notes)
    if not history:
        notes.append(f"{folder}: no epoch is finished, so there are no curves")
    options, objective = described.get("solver"), described.get("objective")
    return (
        StageRecord(
            folder,
            history,
            losses,
            options if isinstance(options, dict) else {},
            objective if isinstance(objective, dict) else None,
        ),
        described,
    )


def _read_config(path: Path, notes: list[str]) -> dict[str, Any]:
    try:
        found = load_json(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # both name the file
        notes.append(f"not read: {error}")
        return {}
    if not isinstance(found, dict):
        notes.append(f"{path}: found {type(found).__name__}, expected a table of JSON")
        return {}
    return found


def _read_csv(path: Path, notes: list[str]) -> list[dict[str, Any]]:
    try:
        rows = list(csv.DictReader(text_lines(path, "a table")))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, csv.Error) as error:
        notes.append(f"{path}: not read: {error}")
        return []
    return _checked(map(_numbers, rows), str(path), notes)


def _numbers(row: Mapping[Any, Any]) -> dict[str, Any] | None:
    """A row of CSV as numbers, without empty cells; None if a cell is not a number."""
    kinds: dict[Any, type] = {"epoch": int, "iteration": int, **FORMER}
    try:
        return {key: kinds.get(key, float)(text) for key, text in row.items() if text != ""}
    except (TypeError, ValueError):
        return None


def _checked(rows: Iterable[Any], source: str, notes: list[str]) -> list[dict[str, Any]]:
    """The rows that are complete and in order; a note lists the others."""
    kept: list[dict[str, Any]] = []
    dropped = []
    for number, row in enumerate(rows, start=1):
        before = kept[-1] if kept else {"epoch": 0, "iteration": 0}
        if _is_whole(row) and all(row[key] > before[key] for key in before.keys() & {"epoch", "iteration"}):
            kept.append(row)
        else:
            dropped.append(str(number))
    if dropped:
        notes.append(f"{source}: damaged, left out: epochs in rows {', '.join(dropped)}")
    return kept


def _is_whole(row: Any) -> bool:
    if not isinstance(row, dict) or not all(type(row.get(key)) is int for key in ("epoch", "iteration")):
        return False
    return all(
        isinstance(value, str if FORMER.get(key) is str else int | float) for key, value in row.items()
    )
