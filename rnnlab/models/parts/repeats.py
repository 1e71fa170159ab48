"""Several sentences per source: a source is encoded once, and each of its sentences is decoded from a copy.

forward    row n of the encoder's outputs  ->  rows n S .. n S + S - 1 of the decoder's inputs
backward   the gradient of row n is the sum of the gradients of its copies
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rnnlab.models.parts.values import Source
from rnnlab.ops import ops_for
from rnnlab.types import Array


class Repeats:
    """One copy of each source for each of its sentences; the identity if each source has one sentence.

    Parameters
    ----------
    source : Source
        N rows.
    sentences : int
        Their number, a multiple of N. The sentences of a source are consecutive.
    """

    def __init__(self, source: Source, sentences: int) -> None:
        self.rows = len(source.state[0])
        self.count = sentences // self.rows if self.rows else 1

    def forward(self, source: Source) -> Source:
        """The source with each row repeated, once for each of its sentences."""
        return _each(source, self.repeated)

    def backward(self, dsource: Source) -> Source:
        """The gradient of the source, summed over the copies."""
        return _each(dsource, self.summed)

    def repeated(self, x: Array) -> Array:
        """An array of N rows with each row repeated, once for each sentence of its source."""
        if self.count == 1:
            return x
        copies = ops_for(x).empty((self.rows, self.count, *x.shape[1:]), x.dtype)
        copies[...] = x[:, None]
        return copies.reshape(self.rows * self.count, *x.shape[1:])

    def summed(self, dx: Array) -> Array:
        """The gradient of an array from the gradient of its copies."""
        if self.count == 1:
            return dx
        return dx.reshape(self.rows, self.count, *dx.shape[1:]).sum(axis=1)


def _each(source: Source, function: Callable[[Array], Array]) -> Source:
    """Apply a function to each array of a source."""

    def applied(field: Any) -> Any:
        if isinstance(field, tuple):
            return tuple(map(applied, field))
        return function(field) if hasattr(field, "shape") else field

    return Source(*map(applied, source))
