"""A time budget: training stops before the machine is needed for something else."""

from __future__ import annotations

import time
from typing import Any

from rnnlab.options import Positive, check_options
from rnnlab.parameters import Parameters
from rnnlab.training.callbacks.callback import Callback, Training


class TimeBudget(Callback):
    """Stops training in the first iteration that ends after ``hours``.

    The iteration is completed, and a checkpoint is written from which the run can resume. The time is counted
    from the construction of the object, so that it includes reading the data, and one budget can serve all
    stages of a run. A validation that is under way is completed.

    Parameters
    ----------
    hours : float

    Raises
    ------
    ValueError
        If ``hours`` is not positive.
    """

    def __init__(self, hours: Positive) -> None:
        check_options("TimeBudget", TimeBudget, {"hours": hours})
        self.hours = hours
        self._end = time.monotonic() + 3600 * hours

    def on_step(self, solver: Training, loss: Any, grads: Parameters) -> None:
        """Stop if the time is over."""
        self.on_epoch(solver)

    def on_epoch(self, solver: Training) -> None:
        """Stop if the time is over."""
        if time.monotonic() >= self._end:
            solver.stop(f"the time budget of {self.hours:g} hours is used up")
