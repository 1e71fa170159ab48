"""The layouts of arrays: which of them kernels accept, and copies of the others."""

from __future__ import annotations

from rnnlab.ops.numba.memory import empty
from rnnlab.types import Array

__all__ = ["by_columns", "contiguous", "copied", "plain", "writeable"]


def by_columns(a: Array) -> bool:
    """Whether the columns of a matrix are contiguous, and its rows are not."""
    return a.flags.f_contiguous and not a.flags.c_contiguous


def contiguous(a: Array) -> Array:
    """The same elements in an array with contiguous rows that kernels accept."""
    return a if a.flags.c_contiguous and plain(a) else copied(a)


def writeable(a: Array) -> Array:
    """The same elements in an array that kernels accept."""
    return a if plain(a) else copied(a)


def plain(a: Array) -> bool:
    """Whether an array is writeable, aligned and in the processor's byte order."""
    return a.flags.writeable and a.flags.aligned and a.dtype.isnative


def copied(a: Array) -> Array:
    """A copy with contiguous rows that kernels accept."""
    out = empty(a.shape, a.dtype.newbyteorder("="))
    out[...] = a
    return out
