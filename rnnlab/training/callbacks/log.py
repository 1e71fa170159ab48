"""The base class of logs: the numbers of every n-th iteration and of every epoch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rnnlab.errors import InputError
from rnnlab.options import Count, check_options
from rnnlab.parameters import Parameters
from rnnlab.training.callbacks.callback import Callback, Training
from rnnlab.training.clipping import gradient_norm


class Log(Callback):
    """Writes rows of numbers.

    A subclass implements :meth:`open`, :meth:`step`, :meth:`epoch` and :meth:`close`.

    Parameters
    ----------
    every : int
        Write a row for the first iteration, and for every ``every``-th after it.

    Raises
    ------
    ValueError
        If ``every`` is less than 1.
    """

    def __init__(self, *, every: Count = 10) -> None:
        check_options(type(self).__name__, Log, {"every": every})
        self.every = every

    @abstractmethod
    def open(self, solver: Training) -> None:
        """Open the log. The run will repeat the iterations of rows after ``solver.iteration``."""

    @abstractmethod
    def step(self, iteration: int, row: Mapping[str, float]) -> None:
        """Write ``loss``, ``gradient_norm`` (of the gradient passed to ``on_step``) and ``learning_rate``."""

    @abstractmethod
    def epoch(self, iteration: int, row: Mapping[str, Any]) -> None:
        """Write a row of ``solver.history``; ``iteration`` is the last one of the epoch."""

    def close(self) -> None:
        """Close the log. It is called once for each :meth:`open` that was called, even if that failed."""
        return

    def on_start(self, solver: Training) -> None:
        """Open the log."""
        self.open(solver)

    def on_step(self, solver: Training, loss: Any, grads: Parameters) -> None:
        """Write a row for every ``every``-th iteration."""
        if (solver.iteration - 1) % self.every == 0:
            norm, rate = gradient_norm(grads), solver.learning_rate
            self.step(solver.iteration, {"loss": float(loss), "gradient_norm": norm, "learning_rate": rate})

    def on_epoch(self, solver: Training) -> None:
        """Write the epoch's row."""
        self.epoch(solver.iteration, solver.history[-1])

    def on_end(self, solver: Training) -> None:
        """Close the log."""
        self.close()


def place_of(callback: Log, path: Any, solver: Training, name: str) -> Path:
    """Where a log is written: ``path``, or ``name`` in the run directory if it is None.

    Raises
    ------
    ValueError
        If there is neither a path nor a run directory.
    """
    if path is not None:
        return Path(path)
    if solver.run_dir is None:
        raise InputError(
            f"{type(callback).__name__}: path is None, expected a path where a solver has no run_dir"
        )
    return solver.run_dir / name
