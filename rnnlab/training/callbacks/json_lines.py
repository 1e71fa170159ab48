"""A log as JSON lines: one object a line, for programs and for ``tail -f``.

{"iteration": 1, "loss": 31.9, "gradient_norm": 8.1, "learning_rate": 0.004}
{"epoch": 1, "iteration": 8, "train_loss": 25.3, ..., "val_loss": 2.9}
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from rnnlab.errors import InputError
from rnnlab.files import WriteError, atomic_text, finite
from rnnlab.options import Count
from rnnlab.training.callbacks.callback import Training
from rnnlab.training.callbacks.log import Log, place_of


class JSONLines(Log):
    """Writes a line for every n-th iteration, and a line for every epoch, which has ``epoch``.

    A number that is not finite is null. A run that resumes appends to the file; lines of iterations that it
    repeats are removed.

    Parameters
    ----------
    path : path, optional
        The file, in which no other run or stage may have written; log.jsonl in the directory of the run or
        stage if left out. A run of several stages needs it left out.
    every : int
        As in :class:`~rnnlab.training.callbacks.Log`.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, every: Count = 10) -> None:
        super().__init__(every=every)
        self.path = path
        self._file: TextIO | None = None

    def open(self, solver: Training) -> None:
        """Open the file, without lines after ``solver.iteration``."""
        path = place_of(self, self.path, solver, "log.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            lines = _lines(path)
            if lines and self.path is not None and not solver.iteration:
                raise InputError(
                    f"{path} holds the log of another run or stage: delete it, or choose another path; "
                    "without a path, each run and stage has its log in its own directory"
                )
            _keep(path, lines, solver.iteration, solver.epoch)
        self._file = path.open("a", encoding="utf-8")

    def step(self, iteration: int, row: Mapping[str, float]) -> None:
        """Write a line."""
        self._write({"iteration": iteration, **row})

    def epoch(self, iteration: int, row: Mapping[str, Any]) -> None:
        """Write a line."""
        self._write(row)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # the rest of a line that was not written
                self._file.close()
            self._file = None

    def _write(self, row: Mapping[str, Any]) -> None:
        assert self._file is not None
        try:
            self._file.write(json.dumps(finite(row)) + "\n")
            self._file.flush()
        except OSError as error:
            raise WriteError(Path(self._file.name), error) from error


def _lines(path: Path) -> list[tuple[str, int, int]]:
    """The lines with their iterations and their epochs (or 0), without a last line that was cut off."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        rows = [(line, json.loads(line)) for line in lines if line.endswith("\n")]
        return [(line, int(row["iteration"]), int(row.get("epoch", 0))) for line, row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a log of JSONLines: {error!r}; choose another path") from None


def _keep(path: Path, lines: Sequence[tuple[str, int, int]], iteration: int, epoch: int) -> None:
    """Keep the lines up to an iteration and an epoch."""
    kept = "".join(line for line, at, in_epoch in lines if at <= iteration and in_epoch <= epoch)
    if kept.encode() != path.read_bytes():
        with atomic_text(path) as file:
            file.write(kept)
