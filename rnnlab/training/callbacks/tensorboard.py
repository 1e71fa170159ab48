"""A log for TensorBoard, written by tensorboardX (the extra ``tensorboard``).

TensorBoard itself is needed only to look at the log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Real
from typing import Any

from rnnlab.extras import Library
from rnnlab.options import Count
from rnnlab.training.callbacks.callback import Training
from rnnlab.training.callbacks.log import Log, place_of

TENSORBOARD = Library("tensorboardX", "tensorboard", "TensorBoard")


class TensorBoard(Log):
    """Writes the curves train/loss, train/gradient_norm, train/learning_rate, and epoch/... of the history.

    The x axis of all of them counts iterations. A run that resumes continues its curves.

    Parameters
    ----------
    path : path, optional
        The directory of the events; tensorboard in the directory of the run or stage if left out. A run of
        several stages needs it left out.
    every : int
        As in :class:`~rnnlab.training.callbacks.Log`.

    Raises
    ------
    ImportError
        If the extra is not installed.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, every: Count = 10) -> None:
        super().__init__(every=every)
        TENSORBOARD.require()
        self.path = path
        self._writer: Any = None

    def open(self, solver: Training) -> None:
        """Open a file of events; TensorBoard ignores earlier events after ``solver.iteration``."""
        from tensorboardX import SummaryWriter

        path = place_of(self, self.path, solver, "tensorboard")
        # a run that begins again has earlier events in its own directory; elsewhere they are of other runs
        purge = {"purge_step": solver.iteration + 1} if solver.iteration or self.path is None else {}
        # file names have a resolution of one second, so two runs may otherwise share a name
        self._writer = SummaryWriter(str(path), filename_suffix=f".{solver.iteration}", **purge)

    def step(self, iteration: int, row: Mapping[str, float]) -> None:
        """Add a point to the curves of iterations."""
        self._add("train", iteration, row)

    def epoch(self, iteration: int, row: Mapping[str, Any]) -> None:
        """Add a point to the curves of epochs."""
        columns = {name: value for name, value in row.items() if name not in ("epoch", "iteration")}
        self._add("epoch", iteration, columns)

    def close(self) -> None:
        """Write what is buffered, and close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _add(self, group: str, iteration: int, row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            if isinstance(value, Real):  # NumPy's numbers, too
                self._writer.add_scalar(f"{group}/{name}", value, iteration)
