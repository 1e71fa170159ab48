"""An exponential moving average of the parameters.

    average += (1 - d_t) (w - average)          after the update of iteration t = 0, 1, ...
    d_t      = min(decay, (1 + t) / (10 + t))

An average over the last updates is less noisy than the last parameters (Polyak and Juditsky 1992). The factor
rises to ``decay``, as in TensorFlow's ``ExponentialMovingAverage(num_updates=t)``, so that the average soon
forgets the initial parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rnnlab.ops import ops_for
from rnnlab.reading import PathLike
from rnnlab.training.checkpoint import Checkpoint, CheckpointError
from rnnlab.types import Array


class ParameterAverage:
    """The average of parameters over the updates.

    Parameters
    ----------
    decay : float in [0, 1)
    w : (P,)
        The initial parameters.

    Attributes
    ----------
    values : (P,)
    """

    def __init__(self, decay: float, w: Array) -> None:
        self._decay, self.values = decay, w.copy()

    def start(self, w: Array) -> None:
        """Begin with the parameters (P,), which may have been loaded since this object was made."""
        self.values[...] = w

    def update(self, w: Array, t: int) -> None:
        """Add the parameters (P,) after the update of iteration ``t``, from 0."""
        decay = min(self._decay, (1 + t) / (10 + t))
        ops_for(w).move_towards(self.values, w, rate=1 - decay)

    @contextmanager
    def in_place_of(self, w: Array) -> Iterator[None]:
        """A context in which the parameters ``w`` (P,) hold the values of the average."""
        own = w.copy()
        try:
            w[...] = self.values
            yield
        finally:
            w[...] = own

    def load(self, path: PathLike, checkpoint: Checkpoint) -> None:
        """Continue from the average in a checkpoint, which was read from ``path``.

        Raises
        ------
        CheckpointError
            If there is none, or its shape or dtype is not that of the parameters.
        """
        own, saved = self.values, checkpoint.average
        if saved is None or saved.shape != own.shape or saved.dtype != own.dtype:
            found = "nothing" if saved is None else f"{saved.dtype} {saved.shape}"
            raise CheckpointError(path, "average", found, f"{own.dtype} {own.shape}")
        own[...] = ops_for(own).asarray(saved)
