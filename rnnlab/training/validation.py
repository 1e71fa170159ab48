"""Validation: the metrics after every epoch, and the monitored one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from rnnlab.training.nonfinite import NonFiniteError
from rnnlab.training.protocols import Data, Model

Evaluate = Callable[[Any], Mapping[str, float]]


def validation_loss(model: Model, data: Data, batch_size: int, split: str = "val") -> dict[str, float]:
    """The loss of a split in nats per token, and its perplexity, exp(loss).

    Returns
    -------
    dict
        ``{"val_loss": ..., "val_perplexity": ...}``, prefixed with the name of the split.
    """
    nats, tokens = 0.0, 0
    for indices in data.epoch(split, batch_size, None):
        batch_nats, batch_tokens = model.nll(*data.batch(split, indices))
        nats += batch_nats
        tokens += batch_tokens
    if tokens == 0:
        raise ValueError(f"validation_loss: split {split!r} has no tokens")
    loss = nats / tokens
    return {f"{split}_loss": loss, f"{split}_perplexity": math.exp(loss) if loss < 700 else math.inf}


def default_evaluate(data: Data, batch_size: int, monitor: str) -> Evaluate | None:
    """The default metrics after every epoch: the loss of the "val" split. None where there is no such split.

    Raises
    ------
    ValueError
        If ``monitor`` is not one of the metrics.
    """
    if "val" not in data.splits or not data.epoch("val", batch_size, None):
        return None
    if monitor not in ("val_loss", "val_perplexity"):
        raise ValueError(
            f"Solver: monitor is {monitor!r}, expected val_loss or val_perplexity, "
            "or the argument evaluate, a function that returns it"
        )
    return lambda model: validation_loss(model, data, batch_size)


class Monitor:
    """The best value of one metric, and the number of epochs since.

    Parameters
    ----------
    name : str
        A metric whose name contains "loss" or "perplexity" is better when smaller, every other when larger.
    patience : int, optional
        :attr:`exhausted` is true after this number of consecutive epochs without improvement. None: never.

    Attributes
    ----------
    best : float or None
    best_epoch : int or None
    """

    def __init__(self, name: str, patience: int | None = None) -> None:
        self.name = name
        self.patience = patience
        self.best: float | None = None
        self.best_epoch: int | None = None
        self._waited = 0

    @property
    def minimised(self) -> bool:
        """Whether smaller is better."""
        return "loss" in self.name or "perplexity" in self.name

    @property
    def exhausted(self) -> bool:
        """Whether training should stop."""
        return self.patience is not None and self._waited >= self.patience

    def update(self, metrics: Mapping[str, float], epoch: int) -> bool:
        """Record the metrics of an epoch. True if the monitored one is the best so far.

        Raises
        ------
        ValueError
            If ``metrics`` lacks the monitored metric.
        NonFiniteError
            If it is NaN or infinite.
        """
        if self.name not in metrics:
            raise ValueError(
                f"monitor is {self.name!r}, but evaluate returned {', '.join(metrics) or 'nothing'}"
            )
        value = metrics[self.name]
        if not math.isfinite(value):
            raise NonFiniteError(f"epoch {epoch}: {self.name} is {value}")
        improved = self.best is None or (value < self.best if self.minimised else value > self.best)
        if improved:
            self.best, self.best_epoch = value, epoch
        self._waited = 0 if improved else self._waited + 1
        return improved

    def state(self) -> dict[str, Any]:
        """The state to save."""
        return {"best": self.best, "best_epoch": self.best_epoch, "waited": self._waited}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a :meth:`state`."""
        self.best, self.best_epoch, self._waited = state["best"], state["best_epoch"], state["waited"]
