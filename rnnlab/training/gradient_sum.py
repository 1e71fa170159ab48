"""The sum of the gradients of all ranks, in pieces that are sent while the rest of the backward pass runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from rnnlab.parameters import Parameters, merged
from rnnlab.training.distributed import Communicator, on_host, sum_on_gpus

_SMALLEST = 1 << 16  # numbers; a smaller message costs more time than the overlap saves


class GradientSum:
    """Sums a gradient over the ranks.

    Parameters
    ----------
    communicator : Communicator
    grads : Parameters
        The gradient of this rank.

    Attributes
    ----------
    may_begin : bool
        Whether to begin the sum of a gradient as soon as it is complete. That requires the last backward
        pass of a step, and that all ranks have one.
    """

    def __init__(self, communicator: Communicator, grads: Parameters) -> None:
        self._communicator, self._grads = communicator, grads
        self._begun: list[slice] = []
        self._sum_on_gpus = sum_on_gpus(communicator, grads.flat)
        self.may_begin = False
        grads.on_complete = self._begin

    def _begin(self, names: Collection[str]) -> None:
        """Begin the sums of complete gradients. Gradients on a GPU and small ones are summed at the end."""
        flat = self._grads.flat
        if not self.may_begin or not isinstance(flat, np.ndarray):
            return
        for piece in merged(map(self._grads.place, names)):
            if piece.stop - piece.start >= _SMALLEST:
                self._communicator.begin_sum(flat[piece])
                self._begun.append(piece)

    def end(self) -> None:
        """Sum the rest, and wait for all sums."""
        self.may_begin = False
        if self._sum_on_gpus is not None:
            with self._communicator.watch("sum"):
                self._sum_on_gpus(self._grads.flat)
            return
        with on_host(self._grads.flat) as flat:
            for piece in _between(self._begun, flat.size):
                self._communicator.begin_sum(flat[piece])
            self._communicator.end_sums()
        self._begun.clear()


def _between(places: Iterable[slice], size: int) -> Iterator[slice]:
    """The gaps between the slices, up to a size."""
    start = 0
    for place in [*merged(places), slice(size, size)]:
        if place.start > start:
            yield slice(start, place.start)
        start = place.stop
