"""Arrays in reused memory.

Allocating an array of several megabytes can cost more than the arithmetic on it, because the system maps its
pages one by one and fills them with zeros. A training step allocates arrays of the same sizes again and
again, so :func:`empty` gives the memory of deleted arrays to new ones.

Each array has a *lease* on its block of memory as its base object. NumPy's views refer to their array, and so
to the lease. When the last of them is deleted, the lease is deleted, too, and returns the block. No reference
counts are inspected, and this works in any thread and for arrays in reference cycles.
"""

from __future__ import annotations

import operator
import os
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from math import prod

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.types import Array, Shape

__all__ = ["SMALLEST", "Pool", "empty", "empty_like", "release"]
SMALLEST = 1 << 14  # bytes; for smaller arrays the C library is as fast
_LINE = 64  # bytes of a cache line, at which arrays start
_PATIENCE = 4  # how many times the number of all blocks is handed out before an idle block is freed


class _Block:
    """Memory for one array at a time."""

    __slots__ = ("address", "last_use", "memory", "size")

    def __init__(self, nbytes: int) -> None:
        self.size = nbytes
        self.memory = np.empty(nbytes + _LINE, np.uint8)
        start = self.memory.ctypes.data
        self.address = start + -start % _LINE
        self.last_use = 0


class _Lease:
    """The base object of an array in a block; returns the block when it is deleted."""

    __slots__ = ("__array_interface__", "_give_back", "lease_of")

    def __init__(
        self, block: _Block, shape: Shape, dtype: np.dtype, give_back: Callable[[_Block], None]
    ) -> None:
        self.lease_of, self._give_back = block, give_back
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (block.address, False),  # writeable
            "version": 3,
        }

    def __del__(self) -> None:
        self._give_back(self.lease_of)


class Pool:
    """Blocks of memory, leased to arrays or idle.

    A lease may end at any time and in any thread, even while this object works on its lists, because the
    garbage collector may run then. A lease therefore only appends its block to a queue, which needs no lock.
    """

    def __init__(self) -> None:
        self._returned: deque[_Block] = deque()
        self._idle: list[_Block] = []  # smallest first
        self._sizes: list[int] = []  # of the idle blocks
        self._blocks = 0  # leased, returned and idle
        self._handed_out = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """The number of blocks, in use or not."""
        return self._blocks

    def empty(self, shape: Shape, dtype: np.dtype, nbytes: int) -> Array:
        """An array of undefined content; ``nbytes`` is its size."""
        # Do not wait if another thread holds the lock, or if this thread was called from a finalizer.
        if not self._lock.acquire(blocking=False):
            return np.empty(shape, dtype)
        try:
            self._handed_out += 1
            self._collect()
            block = self._take(nbytes) or self._new(nbytes)
            block.last_use = self._handed_out
        finally:
            self._lock.release()
        return np.asarray(_Lease(block, shape, dtype, self._returned.append))

    def release(self) -> int:
        """Free the memory of idle blocks; return its size in bytes."""
        with self._lock:
            self._collect()
            freed = sum(self._sizes)
            self._blocks -= len(self._idle)
            self._idle, self._sizes = [], []
        return freed

    def after_fork(self) -> None:
        """Replace the lock in a child process: a thread of the parent may have held it."""
        if self._lock.locked():
            self._blocks -= len(self._idle)
            self._idle, self._sizes = [], []
        self._lock = threading.Lock()

    def _collect(self) -> None:
        """Sort the returned blocks into the idle ones."""
        while self._returned:
            block = self._returned.popleft()
            at = bisect_left(self._sizes, block.size)
            self._idle.insert(at, block)
            self._sizes.insert(at, block.size)

    def _take(self, nbytes: int) -> _Block | None:
        """The smallest idle block that fits and is at most twice as large."""
        at = bisect_left(self._sizes, nbytes)
        if at == len(self._sizes) or self._sizes[at] > 2 * nbytes:
            return None
        del self._sizes[at]
        return self._idle.pop(at)

    def _new(self, nbytes: int) -> _Block:
        """A new block with an eighth to spare. Idle blocks that were not needed lately are freed."""
        long_ago = self._handed_out - _PATIENCE * self._blocks
        wanted = [block for block in self._idle if block.last_use > long_ago]
        self._blocks -= len(self._idle) - len(wanted)
        self._idle, self._sizes = wanted, [block.size for block in wanted]
        try:
            block = _Block(nbytes + nbytes // 8)
        except MemoryError:
            self._blocks -= len(self._idle)
            self._idle, self._sizes, wanted = [], [], []  # free them, then try again
            block = _Block(nbytes)
        self._blocks += 1
        return block


_POOL = Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.after_fork)


def empty(shape: int | Shape, dtype: DTypeLike = float) -> Array:
    if not isinstance(shape, tuple):
        shape = tuple(shape) if isinstance(shape, Iterable) else (operator.index(shape),)
    dtype = np.dtype(dtype)
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < SMALLEST or dtype.kind not in "fiubc":
        return np.empty(shape, dtype)
    return _POOL.empty(shape, dtype, nbytes)


def empty_like(x: Array) -> Array:
    """A C-contiguous array of the shape and dtype of x, of undefined content."""
    return empty(x.shape, x.dtype)


def release() -> int:
    """Free the memory that no array uses; return its size in bytes."""
    return _POOL.release()
