"""Arrays in memory that is used again.

A fresh array of megabytes can cost more than the arithmetic on it: the system hands out its pages one by
one, filled with zeros. A training step makes arrays of the same sizes again and again, so :func:`empty` gives
the memory of arrays that are gone to the next ones.

No array can lose its memory while it lives, or a view of it, such as a layer's cache may hold: each of them
holds a reference to the block of memory that it lies in, and only blocks without any are used again.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_left, insort
from itertools import islice
from math import prod

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.types import Array

__all__ = ["Blocks", "empty", "empty_like", "zeros"]
_SMALLEST = 1 << 14  # bytes; smaller arrays the C library serves as well
_LINE = 64  # bytes of a line of the cache, where arrays start
_PATIENCE = 4  # rounds of handing out all blocks, in which an idle one must be wanted


class _Block:
    """Memory for one array at a time."""

    def __init__(self, nbytes: int) -> None:
        self.size = nbytes
        self.memory = np.empty(nbytes + _LINE, np.uint8)
        self.start = -self.memory.ctypes.data % _LINE
        self.last_use = 0

    @property
    def references(self) -> int:
        """To the memory, by arrays and by this object."""
        return sys.getrefcount(self.memory)


_IDLE = _Block(0).references


class Blocks:
    """The blocks in use and those that wait for an array of about their size."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []  # the smallest first
        self._handed_out = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._blocks)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, nbytes: int) -> Array:
        """An array of any content; ``nbytes`` is its size."""
        with self._lock:
            self._handed_out += 1
            block = self._idle(nbytes) or self._new(nbytes)
            block.last_use = self._handed_out
            return np.ndarray(shape, dtype, block.memory, block.start)

    def _idle(self, nbytes: int) -> _Block | None:
        fitting = bisect_left(self._blocks, nbytes, key=_size)
        for block in islice(self._blocks, fitting, None):
            if block.size > 2 * nbytes:
                break
            if block.references == _IDLE:
                return block
        return None

    def _new(self, nbytes: int) -> _Block:
        """A block with a little to spare, in place of those that nobody wanted lately."""
        long_ago = self._handed_out - _PATIENCE * len(self._blocks)
        self._blocks = [
            block for block in self._blocks if block.references > _IDLE or block.last_use > long_ago
        ]
        block = _Block(nbytes + nbytes // 8)
        insort(self._blocks, block, key=_size)
        return block


def _size(block: _Block) -> int:
    return block.size


_BLOCKS = Blocks()


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = float) -> Array:
    """A C-contiguous array of any content, as NumPy's."""
    shape = (shape,) if isinstance(shape, int) else shape
    dtype = np.dtype(dtype)
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < _SMALLEST or dtype.hasobject:
        return np.empty(shape, dtype)
    return _BLOCKS.empty(shape, dtype, nbytes)


def empty_like(x: Array) -> Array:
    """A C-contiguous array of the shape and dtype of x, of any content."""
    return empty(x.shape, x.dtype)


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = float) -> Array:
    """A C-contiguous array of zeros, as NumPy's."""
    out = empty(shape, dtype)
    out.fill(0)
    return out
