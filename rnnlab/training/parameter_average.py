"""An exponential moving average of the parameters.

    average = d_t average + (1 - d_t) w         after the update of iteration t = 0, 1, ...
    d_t     = min(decay, (1 + t) / (10 + t))

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

    def update(self, w: Array, t: int) -> None:
        """Add the parameters (P,) after the update of iteration ``t``, from 0."""
        ops, decay = ops_for(w), min(self._decay, (1 + t) / (10 + t))
        ops.decay_weights(self.values, rate=1 - decay)
        ops.sgd(self.values, w, learning_rate=decay - 1)

    @contextmanager
    def in_place_of(self, w: Array) -> Iterator[None]:
        """Exchange the average with the parameters (P,), and exchange them back at the end."""
        self._exchange(w)
        try:
            yield
        finally:
            self._exchange(w)

    def _exchange(self, w: Array) -> None:
        others = w.copy()
        w[...] = self.values
        self.values[...] = others

    def load(self, path: PathLike, checkpoint: Checkpoint) -> None:
        """Go on from the average in a checkpoint, which was read from ``path``.

        In best.h5 it is the parameters.

        Raises
        ------
        CheckpointError
            If its shape or dtype is not that of the parameters.
        """
        own = self.values
        values = checkpoint.parameters.flat if checkpoint.average is None else checkpoint.average
        if values.shape != own.shape or values.dtype != own.dtype:
            found, expected = (f"{array.dtype} {array.shape}" for array in (values, own))
            raise CheckpointError(path, "average", found, expected)
        own[...] = ops_for(own).asarray(values)
