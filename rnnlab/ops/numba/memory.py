"""Arrays in reused memory.

Allocating an array of several megabytes can cost more than the arithmetic on it, because the system maps its
pages one by one and fills them with zeros. A training step allocates arrays of the same sizes again and
again, so :func:`empty` gives the memory of deleted arrays to new ones.

Each array has a *lease* on its block of memory as its base object. NumPy's views refer to their array, and so
to the lease. When the last of them is deleted, the lease is deleted, too, and a callback returns the block.
No reference counts are inspected, and this works in any thread and for arrays in reference cycles.

Ctrl-C may raise an exception between any two instructions of Python, and another thread or a finalizer may
run there. Each change of the pool is therefore a single call of a C function, and needs no lock: whatever
happens between two changes, a block is in one place or in none. A block in none is freed.
"""

from __future__ import annotations

import operator
import weakref
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from math import prod

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.types import Array, Shape

__all__ = ["SMALLEST", "Pool", "empty", "empty_like", "release"]
SMALLEST = 1 << 14  # bytes; for smaller arrays the C library is as fast
_LINE = 64  # bytes of a cache line, at which arrays start
_PATIENCE = 4  # how many times the number of all blocks is handed out before an idle block is freed
_SIZE = operator.attrgetter("size")


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
    """The base object of an array in a block."""

    __slots__ = ("__array_interface__", "__weakref__", "lease_of")

    def __init__(self, block: _Block, shape: Shape, dtype: np.dtype) -> None:
        self.lease_of = block
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (block.address, False),  # writeable
            "version": 3,
        }


class Pool:
    """Blocks of memory, leased to arrays or idle."""

    def __init__(self) -> None:
        # Weak references to leases, and their blocks, by the identity of the reference. When a lease is
        # deleted, its reference appends itself to the queue.
        self._leases: dict[int, tuple[weakref.ref[_Lease], _Block]] = {}
        self._ended: deque[weakref.ref[_Lease]] = deque()
        self._idle: list[_Block] = []  # smallest first
        self._handed_out = 0

    def __len__(self) -> int:
        """The number of blocks, in use or not."""
        return len(self._leases) + len(self._idle)

    def empty(self, shape: Shape, dtype: np.dtype, nbytes: int) -> Array:
        """An array of undefined content; ``nbytes`` is its size."""
        self._handed_out += 1
        self._collect()
        block = self._take(nbytes) or self._new(nbytes)
        block.last_use = self._handed_out
        lease = _Lease(block, shape, dtype)
        end = weakref.ref(lease, self._ended.append)
        self._leases[id(end)] = end, block
        return np.asarray(lease)

    def release(self) -> int:
        """Free the memory of idle blocks; return its size in bytes."""
        self._collect()
        idle, self._idle = self._idle, []
        return sum(block.size for block in idle)

    def _collect(self) -> None:
        """Sort the blocks of ended leases into the idle ones."""
        ended = self._ended
        while ended:
            try:
                end = ended[0]  # it stays there until its lease is gone
                leased = self._leases.pop(id(end), None)
                if leased is not None:
                    insort(self._idle, leased[1], key=_SIZE)
                ended.remove(end)
            except (IndexError, ValueError):  # another thread was faster
                continue

    def _take(self, nbytes: int) -> _Block | None:
        """The smallest idle block that fits and is at most twice as large."""
        idle = self._idle
        at = bisect_left(idle, nbytes, key=_SIZE)
        try:
            if idle[at].size > 2 * nbytes:
                return None
            block = idle.pop(at)
        except IndexError:  # none is large enough, or another thread has taken it
            return None
        if block.size < nbytes:  # another thread has changed the list since the search
            insort(self._idle, block, key=_SIZE)
            return None
        return block

    def _new(self, nbytes: int) -> _Block:
        """A new block with an eighth to spare. Idle blocks that were not needed lately are freed."""
        long_ago = self._handed_out - _PATIENCE * len(self)
        for block in [each for each in self._idle if each.last_use <= long_ago]:
            with suppress(ValueError):  # another thread has taken it
                self._idle.remove(block)
        try:
            return _Block(nbytes + nbytes // 8)
        except MemoryError:
            self._idle.clear()  # free them, then try again
            return _Block(nbytes)


_POOL = Pool()


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
