"""Ensembles of runs: several trained models as one.

>>> run = load_ensemble(["runs/a", "runs/b", "runs/c"])              # doctest: +SKIP
>>> evaluate(run, "test").scores.corpus["CIDEr"]                     # doctest: +SKIP
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rnnlab import runs
from rnnlab.decoding.ensemble import Average, check_average
from rnnlab.errors import InputError, InputTypeError
from rnnlab.runs import Run
from rnnlab.runs.loading import load_without_data
from rnnlab.tasks import task_of
from rnnlab.tasks.ensembles import Member


def load_ensemble(
    directories: Sequence[str | os.PathLike[str]],
    *,
    with_data: bool = True,
    device: str = "cpu",
    average: Average = "probabilities",
) -> Run:
    """Open run directories as one run, whose model averages the distributions of their models.

    The recipe of the first run determines how sentences are decoded and scored. The data of the runs may have
    different features of the same images: each model reads the features of its own run.

    Parameters
    ----------
    directories : sequence of paths
        One or more. A single one is opened as by :func:`rnnlab.runs.load_run`.
    with_data : bool
        Whether to open the data as well. Runs whose tables [data] are equal share them.
    device : str
        The device of all models: "cpu", "gpu" or "gpu:N".
    average : "probabilities" or "log_probabilities"
        What is averaged; see :class:`rnnlab.decoding.Ensemble`.

    Returns
    -------
    Run
        ``directory`` and ``recipe`` are those of the first run; ``members`` are all directories.

    Raises
    ------
    FileNotFoundError
        If a directory holds no checkpoint.
    ValueError
        If there is no directory, one is given twice, or the runs have different tasks, vocabularies or data.
        The message names two runs and their difference.
    """
    check_average("load_ensemble", average)
    if isinstance(directories, str | os.PathLike):
        raise InputTypeError(f"load_ensemble: directories is {directories!r}, expected a list of paths")
    paths = [Path(directory) for directory in directories]
    if not paths:
        raise InputError("load_ensemble: directories is empty, expected at least one run")
    if len(paths) == 1:
        return runs.load_run(paths[0], with_data=with_data, device=device)
    _check_differ(paths)
    opened, checks = zip(*(load_without_data(path, device) for path in paths), strict=True)
    first, task = opened[0], task_of(opened[0].recipe)
    for run in opened:
        if (other := task_of(run.recipe)) is not task:
            raise InputError(
                f"{run.directory} has a model that {other.verb}, and {first.directory} one that {task.verb}: "
                "the models of an ensemble have the same task"
            )
    members = [Member(str(run.directory), run.model, run.inputs) for run in opened]
    task.check_ensemble(members)
    if with_data:
        members = [
            member._replace(data=data)
            for member, data in zip(members, _open_data(opened, checks), strict=True)
        ]
    combined = task.combined(members, average)
    return dataclasses.replace(
        first, model=combined.model, inputs=combined.inputs, data=combined.data, members=tuple(paths)
    )


def _check_differ(paths: Sequence[Path]) -> None:
    """Raise ValueError if a directory is given twice."""
    seen: dict[Path, Path] = {}
    for path in paths:
        other = seen.setdefault(path.resolve(), path)
        if other is not path:
            raise InputError(f"{path} and {other} are the same run, expected each run once")


def _open_data(members: Sequence[Run], checks: Sequence[Callable[[Any], None]]) -> list[Any]:
    """The data of each run, after its check; runs with equal tables [data] share them."""
    opened: list[tuple[Any, Any]] = []
    found = []
    for run, check in zip(members, checks, strict=True):
        table = run.recipe.data
        data = next((data for other, data in opened if other == table), None)
        if data is None:
            data = runs.open_data_of_run(run.recipe)
            opened.append((table, data))
        check(data)
        found.append(data)
    return found
