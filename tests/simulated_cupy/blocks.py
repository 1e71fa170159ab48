"""Device memory: blocks of NumPy's memory between guards, and the number of bytes in each pool."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np

GUARD = 256  # bytes before and after the elements of every array
CANARY = np.full(GUARD // 4, 0xFFFA5A5F, np.uint32).tobytes()  # NaN if it is read as numbers

clock = itertools.count()  # orders the events: allocations and returned blocks


class OutsideError(AssertionError):
    """A kernel wrote outside an array."""


class Account:
    """The bytes of a pool, in multiples of 512: in use and, if it ``keeps`` freed blocks, reserved."""

    def __init__(self, keeps: bool) -> None:
        self.keeps = keeps
        self.used = self.reserved = 0
        self._kept: weakref.WeakSet[Block] = weakref.WeakSet()
        accounts.add(self)

    def growth(self, size: int) -> int:
        """The bytes that the device has to provide for ``size`` more."""
        return max(0, self.used + size - self.reserved)

    def take(self, size: int) -> None:
        self.reserved += self.growth(size)
        self.used += size

    def give_back(self, block: Block) -> None:
        self.used -= block.counted
        if self.keeps:
            self._kept.add(block)
        else:
            self.reserved = self.used
            block.reserved = False

    def release(self) -> None:
        """Return unused blocks to the device."""
        self.reserved = self.used
        for block in self._kept:
            block.reserved = False
        self._kept.clear()


accounts: weakref.WeakSet[Account] = weakref.WeakSet()


def rounded(size: int) -> int:
    return (size + 511) // 512 * 512


class Block:
    """The bytes of an array. Graphs that use them keep them alive longer than the array's :class:`Memory`."""

    def __init__(self, size: int, account: Account, stream: int) -> None:
        self.account, self.stream = account, stream
        self.counted = rounded(size)
        self.born = next(clock)
        self.died: int | None = None  # time at which the last array released it
        self.reserved = True  # whether the pool still has it
        self.recorder: Any = None  # recorder of the current capture, if it was allocated there
        self.held = False  # whether a graph holds it
        self.raw = np.empty(size + 2 * GUARD + 255, np.uint8)
        address = self.raw.ctypes.data
        self.start = GUARD + -(address + GUARD) % 256
        self.ptr = address + self.start
        self.end = self.start + size
        self.array = self.raw[self.start : self.end]
        self._set_guards()
        from . import cublas_library  # imported here, since it depends on this module

        self._forget = cublas_library.load().shim_remove_memory
        cublas_library.load().shim_add_memory(self.ptr, size)

    def __del__(self) -> None:
        self._forget(self.ptr)

    def _set_guards(self) -> None:
        guard = np.frombuffer(CANARY, np.uint8)
        self.raw[self.start - GUARD : self.start] = guard
        self.raw[self.end : self.end + GUARD] = guard

    def poison(self) -> None:
        """Overwrite with NaN, with a large integer or with True."""
        dtype = self.array.dtype
        if dtype.kind in "fc":
            self.array.fill(np.nan)
        elif dtype.kind in "iu":
            self.array.fill(np.iinfo(dtype).max // 3 * 2 + 1)
        else:
            self.array.fill(1)

    def check(self, what: str) -> None:
        """Raise OutsideError if a guard was overwritten."""
        before = self.raw[self.start - GUARD : self.start].tobytes() != CANARY
        behind = self.raw[self.end : self.end + GUARD].tobytes() != CANARY
        if before or behind:
            self._set_guards()
            place = "before" if before else "behind"
            raise OutsideError(f"{what}: something was written {place} its {self.end - self.start} bytes")


live: dict[int, Block] = {}  # blocks in use, by the identity of the base of their views


def block_of(array: np.ndarray) -> Block | None:
    """The block that an array of NumPy is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return live.get(id(array))


class Memory:
    """A block in use. It is returned to its pool when the last array that holds this object is gone."""

    def __init__(self, size: int, account: Account, stream: int) -> None:
        self.block = block = Block(size, account, stream)
        account.take(block.counted)
        live[id(block.raw)] = block

    def __del__(self) -> None:
        block = self.block
        del live[id(block.raw)]
        block.died = next(clock)
        block.account.give_back(block)
        if block.recorder is not None:
            block.recorder.died(block)
        elif block.held:
            block.poison()

    def view(self, shape: Any, dtype: np.dtype, order: str) -> np.ndarray:
        """The bytes as an array of poisoned values."""
        block = self.block
        block.array = block.raw[block.start : block.end].view(dtype).reshape(shape, order=order)
        block.poison()
        return block.array

    def check(self, what: str) -> None:
        self.block.check(what)


class MemoryPointer:
    def __init__(self, mem: Memory, ptr: int) -> None:
        self.mem, self.ptr = mem, ptr
