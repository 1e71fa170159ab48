"""CUDA graphs: work that is captured once and launched again and again, by one call of the host.

A graph does the same launches on the same memory each time. What is to differ has to lie in that memory: the
arrays that the work reads, which the caller fills, and, kept here, the keys of its noise and the numbers of
its update rule, which :func:`told_keys` and :func:`told_numbers` place in an array while work is captured.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.ops.cuda.cublas import handles
from rnnlab.types import Array

__all__ = ["AHEAD", "Graph", "GraphMemory", "Key", "copied", "told_keys", "told_numbers", "uploaded"]
_ROOM = 4096  # words of 8 bytes, keys and numbers together
AHEAD = 4  # launches that the host may be ahead of the device


class Key(int):
    """A key of noise that lies on the device as well, in ``place`` (1,)."""

    place: Array


class _Told:
    """The keys and numbers of a graph, on the host and on the device, and what it was given by the host.

    Attributes
    ----------
    constants : list of array
        What the work brought to the device while it was captured: the same at each launch.
    """

    def __init__(self) -> None:
        self.constants: list[Array] = []
        self._host = np.zeros(_ROOM, np.uint64)
        self._device = cp.zeros(_ROOM, np.uint64)
        self._sent = [_Pinned(_ROOM) for _ in range(AHEAD)]  # in turns
        self._sends = 0
        self._used = 0
        self._keys: list[int] = []  # where keys are
        self._numbers: list[slice] = []
        self._refilled: int | None = None  # how many of the numbers have been told anew; None in the capture

    def keys(self, keys: Sequence[int]) -> list[Key]:
        """Place keys."""
        return [self._key(key) for key in keys]

    def _key(self, key: int) -> Key:
        place = self._placed(1)
        self._keys.append(place.start)
        self._host[place] = key
        told = Key(key)
        told.place = self._device[place]
        return told

    def numbers(self, numbers: Sequence[float]) -> Array | None:
        """Place numbers, or if that was done tell others in their place and return None."""
        if self._refilled is None:
            place = self._placed(len(numbers))
            self._numbers.append(place)
        else:
            place = self._numbers[self._refilled]
            self._refilled += 1
        self._host[place].view(np.float64)[...] = numbers
        return self._device[place].view(np.float64) if self._refilled is None else None

    def _placed(self, count: int) -> slice:
        if self._used + count > _ROOM:
            raise RuntimeError(f"a captured step has more than {_ROOM} keys and numbers")
        self._used += count
        return slice(self._used - count, self._used)

    def refill(self, rng: np.random.Generator, tell: Callable[[], None]) -> None:
        """Draw other keys and have ``tell`` tell other numbers."""
        self._host[self._keys] = rng.integers(1 << 63, size=len(self._keys))
        self._refilled = 0
        with _telling(self):
            tell()

    def send(self) -> None:
        """Copy them to the device, before what is launched next."""
        if self._used:
            self._sent[self._sends % AHEAD].send(self._host[: self._used], self._device[: self._used])
            self._sends += 1


class _Pinned:
    """Memory of the host that the device copies from by itself, whatever the host does in the meantime."""

    def __init__(self, words: int) -> None:
        self._memory = cp.cuda.alloc_pinned_memory(8 * words)
        self._words = np.frombuffer(self._memory, np.uint64, words)
        self._read = cp.cuda.Event(disable_timing=True)

    def send(self, x: np.ndarray, place: Array) -> None:
        self._read.synchronize()  # by the copy before
        own, stream = self._words[: x.size], cp.cuda.get_current_stream()
        own[...] = x
        place.set(own, stream=stream)
        self._read.record(stream)


class _Thread(threading.local):
    told: _Told | None = None


_thread = _Thread()


@contextmanager
def _telling(told: _Told) -> Iterator[None]:
    _thread.told = told
    try:
        yield
    finally:
        _thread.told = None


def told_keys(keys: Sequence[int]) -> Sequence[int]:
    """Keys of noise; where work is captured, with places from which each launch reads them."""
    return keys if _thread.told is None else _thread.told.keys(keys)


def told_numbers(numbers: Sequence[float]) -> Array | None:
    """Numbers on the device, float64; None where a graph has been told them, and is what works with them."""
    if _thread.told is None:
        return cp.asarray(np.array(numbers, np.float64))
    return _thread.told.numbers(numbers)


def uploaded(x: Any, dtype: Any = None) -> Array:
    """NumPy's numbers on the device, row by row; a constant of what is captured, if something is."""
    if _thread.told is None:
        return cp.asarray(x, dtype, order="C")
    with cp.cuda.using_allocator(cp.get_default_memory_pool().malloc):
        constant = copied(np.asarray(x, dtype, order="C"), cp.cuda.Device())
    _thread.told.constants.append(constant)
    return constant


def copied(x: np.ndarray, device: Any) -> Array:
    """Copy to a device through pinned memory on a stream of its own, while others work; wait for it alone."""
    with device, _copying(device.id) as stream:
        copy = cp.asarray(x, order="C")  # CuPy sends NumPy's arrays by way of pinned memory
        stream.synchronize()
    return copy


@functools.cache
def _copying(device: int) -> Any:
    return cp.cuda.Stream(non_blocking=True)


class GraphMemory:
    """Memory for graphs that are not launched at the same time, and the stream that they are captured on.

    What one of them leaves there lasts until another is launched. A pool has its memory by stream, so that
    they share it by sharing the stream.
    """

    def __init__(self) -> None:
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.pool = cp.cuda.MemoryPool(_allocated)
        weakref.finalize(self, self.pool.free_all_blocks).atexit = False  # CuPy's pools do not do so


def _allocated(size: int) -> Any:
    """Memory of the device; where there is none, an error that has no pool give back what graphs use."""
    try:
        return cp.cuda.MemoryPointer(cp.cuda.Memory(size), 0)
    except cp.cuda.runtime.CUDARuntimeError as error:
        free, total = cp.cuda.runtime.memGetInfo()
        raise MemoryError(f"{size:,} bytes for a graph, {free:,} of {total:,} are free: {error}") from None


class Graph:
    """Work that was captured.

    Parameters
    ----------
    work : callable
        Launches kernels on the device and waits for nothing. It has run before, so that all kernels are
        compiled. It is called once, which does none of its work. Arrays that were there before, which it
        reads or writes, have to be there as long as the graph.
    memory : GraphMemory
        Where the arrays that the work makes are.
    """

    def __init__(self, work: Callable[[], None], memory: GraphMemory) -> None:
        self._memory, self._told, stream = memory, _Told(), memory.stream
        cp.cuda.get_current_stream().synchronize()
        cp.get_default_memory_pool().free_all_blocks()  # what the same work has had there the first time
        with stream, _telling(self._told), cp.cuda.using_allocator(memory.pool.malloc):
            stream.begin_capture()
            try:
                work()
            except BaseException:
                with suppress(Exception):  # a capture that was broken off says so as well
                    stream.end_capture()
                raise
            self._graph = stream.end_capture()
        self._handles = handles()  # of cuBLAS, whose workspace the products use
        self._fresh = True

    def launch(self, rng: np.random.Generator, tell: Callable[[], None]) -> None:
        """Do the work, with keys drawn from ``rng`` as the work would, and numbers that ``tell`` tells.

        The first launch has the keys and numbers of the capture.
        """
        if not self._fresh:
            self._told.refill(rng, tell)
        self._fresh = False
        self._told.send()
        self._graph.launch(cp.cuda.get_current_stream())
