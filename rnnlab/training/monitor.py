"""The monitored metric: which of its values is best, and for how many epochs it has not improved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rnnlab.errors import InputError
from rnnlab.options import Mode
from rnnlab.training.nonfinite import NonFiniteError

MONITOR = "val_loss"  # the metric of a solver by default

# Whether the smallest or the largest value is best, for the metrics of this library.
MODES: dict[str, Mode] = {
    "val_loss": "min",
    "val_perplexity": "min",
    "val_accuracy": "max",
    "BLEU": "max",
    "BLEU-1": "max",
    "BLEU-2": "max",
    "BLEU-3": "max",
    "BLEU-4": "max",
    "ROUGE-L": "max",
    "CIDEr": "max",
    "METEOR": "max",
}


def mode_of(monitor: str, mode: Mode | None = None) -> Mode:
    """Whether the lowest ("min") or the highest ("max") value of a metric is best.

    Parameters
    ----------
    monitor : str
        The metric's name.
    mode : "min" or "max", optional
        The answer for a metric that is not in :data:`MODES`.

    Raises
    ------
    ValueError
        If the metric is not in :data:`MODES` and ``mode`` is None, or it is and ``mode`` is the other one.
    """
    if mode is not None:
        if mode != MODES.get(monitor, mode):
            better = "smaller" if MODES[monitor] == "min" else "larger"
            raise InputError(
                f"monitor_mode is {mode!r}, but a {better} {monitor} is better: leave monitor_mode out, or "
                "give a metric of another meaning its own name"
            )
        return mode
    if monitor not in MODES:
        raise InputError(
            f"monitor is {monitor!r}, expected one of {', '.join(MODES)}, or another metric that evaluate "
            "returns with a monitor_mode: 'min' if a smaller value is better, else 'max'"
        )
    return MODES[monitor]


class Monitor:
    """The best value so far of one metric, and the epochs since then.

    Parameters
    ----------
    name : str
    patience : int, optional
        After this many epochs in a row without a better value :attr:`exhausted` is true; never if None.
    mode : "min" or "max", optional
        As in :func:`mode_of`.

    Attributes
    ----------
    best : float or None
    best_epoch : int or None
    """

    def __init__(self, name: str, patience: int | None = None, mode: Mode | None = None) -> None:
        self.name = name
        self.patience = patience
        self.mode = mode_of(name, mode)
        self.best: float | None = None
        self.best_epoch: int | None = None
        self._waited = 0

    @property
    def exhausted(self) -> bool:
        """Whether ``patience`` epochs have passed without a better value."""
        return self.patience is not None and self._waited >= self.patience

    def value_in(self, metrics: Mapping[str, float], epoch: int) -> float:
        """The monitored one of an epoch's metrics.

        Raises
        ------
        ValueError
            If ``metrics`` lacks it.
        NonFiniteError
            If it is NaN or infinite.
        """
        if self.name not in metrics:
            raise InputError(
                f"monitor is {self.name!r}, but evaluate returned {', '.join(metrics) or 'nothing'}"
            )
        value = metrics[self.name]
        if not math.isfinite(value):
            raise NonFiniteError(f"epoch {epoch}: {self.name} is {value}")
        return value

    def update(self, metrics: Mapping[str, float], epoch: int) -> bool:
        """Record an epoch's metrics; true if the monitored one is the best so far.

        Raises
        ------
        ValueError, NonFiniteError
            As :meth:`value_in`.
        """
        value = self.value_in(metrics, epoch)
        improved = self.best is None or (value < self.best if self.mode == "min" else value > self.best)
        if improved:
            self.best, self.best_epoch = value, epoch
        self._waited = 0 if improved else self._waited + 1
        return improved

    def state(self) -> dict[str, Any]:
        """The state to save."""
        return {"best": self.best, "best_epoch": self.best_epoch, "waited": self._waited}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Resume from a :meth:`state`."""
        self.best, self.best_epoch, self._waited = state["best"], state["best_epoch"], state["waited"]


def constant_monitor(monitor: Monitor, history: Sequence[Mapping[str, Any]]) -> str:
    """A note if a monitored score chooses no epoch, because it is the same in all; empty otherwise.

    BLEU of a model that translates badly, or of very short sentences, is 0 in every epoch: the first one then
    counts as the best.
    """
    values = [row[monitor.name] for row in history if monitor.name in row]
    if monitor.name == MONITOR or len(values) < 2 or len(set(values)) > 1:
        return ""
    return (
        f"note: {monitor.name} is {values[0]:g} in all {len(values)} epochs, so the first one counts as the "
        f"best; set training.monitor = {MONITOR!r} to choose by the loss"
    )
