"""CUDA graphs: work that is captured once and launched again by one call of the host.

Each launch of a graph runs the same kernels on the same memory. What differs between launches has to lie in
that memory: the arrays that the work reads, which the caller fills, and the graph's parameters, which are the
seeds of its masks and the numbers of its update rule. :func:`graph_seeds` and :func:`graph_numbers` register
parameters while work is captured; :meth:`Graph.launch` sends new ones. Products have the precision that
:mod:`rnnlab.ops.precision` says at the capture.
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

__all__ = [
    "AHEAD",
    "Graph",
    "GraphMemory",
    "Seed",
    "copied",
    "fetched",
    "graph_numbers",
    "graph_seeds",
    "uploaded",
]
_CAPACITY = 4096  # parameters of 8 bytes
AHEAD = 4  # launches that the host may be ahead of the device


class Seed(int):
    """A seed that lies on the device as well, in ``address`` (1,), where a graph replaces it."""

    address: Array


class Parameters:
    """The parameters of a graph, on the host and on the device.

    Attributes
    ----------
    constants : list of array
        What the work copied to the device during the capture: the same for each launch.
    """

    def __init__(self) -> None:
        self.constants: list[Array] = []
        self._host = np.zeros(_CAPACITY, np.uint64)
        self._device = cp.zeros(_CAPACITY, np.uint64)
        self._pinned = [_Pinned(_CAPACITY) for _ in range(AHEAD)]  # used in turns
        self._sent = 0
        self._used = 0
        self._seeds: list[int] = []  # their indices
        self._numbers: list[slice] = []
        self._refilled: int | None = None  # how many of the numbers are new; None during the capture

    def seeds(self, seeds: Sequence[int]) -> list[Seed]:
        """Register seeds."""
        return [self._seed(seed) for seed in seeds]

    def _seed(self, value: int) -> Seed:
        where = self._reserved(1)
        self._seeds.append(where.start)
        self._host[where] = value
        seed = Seed(value)
        seed.address = self._device[where]
        return seed

    def numbers(self, numbers: Sequence[float]) -> Array | None:
        """Register numbers and return them on the device; after the capture replace them and return None."""
        if self._refilled is None:
            where = self._reserved(len(numbers))
            self._numbers.append(where)
        else:
            where = self._numbers[self._refilled]
            self._refilled += 1
        self._host[where].view(np.float64)[...] = numbers
        return self._device[where].view(np.float64) if self._refilled is None else None

    def _reserved(self, count: int) -> slice:
        if self._used + count > _CAPACITY:
            raise RuntimeError(f"a captured step has more than {_CAPACITY} seeds and numbers")
        self._used += count
        return slice(self._used - count, self._used)

    def refill(self, rng: np.random.Generator, update: Callable[[], None]) -> None:
        """Draw new seeds from ``rng``, and let ``update`` replace the numbers."""
        self._host[self._seeds] = rng.integers(1 << 63, size=len(self._seeds))
        self._refilled = 0
        with _registering(self):
            update()

    def send(self) -> None:
        """Copy the parameters to the device, before the next launch."""
        if self._used:
            self._pinned[self._sent % AHEAD].send(self._host[: self._used], self._device[: self._used])
            self._sent += 1


class _Pinned:
    """Page-locked memory, which the device copies from while the host continues."""

    def __init__(self, words: int) -> None:
        self._memory = cp.cuda.alloc_pinned_memory(8 * words)
        self._words = np.frombuffer(self._memory, np.uint64, words)
        self._read = cp.cuda.Event(disable_timing=True)

    def send(self, x: np.ndarray, out: Array) -> None:
        self._read.synchronize()  # the previous copy has read the memory
        own, stream = self._words[: x.size], cp.cuda.get_current_stream()
        own[...] = x
        out.set(own, stream=stream)
        self._read.record(stream)


class _Thread(threading.local):
    parameters: Parameters | None = None


_thread = _Thread()


@contextmanager
def _registering(parameters: Parameters) -> Iterator[None]:
    _thread.parameters = parameters
    try:
        yield
    finally:
        _thread.parameters = None


def graph_seeds(seeds: Sequence[int]) -> Sequence[int]:
    """The seeds; during a capture, registered as parameters that each launch replaces."""
    return seeds if _thread.parameters is None else _thread.parameters.seeds(seeds)


def graph_numbers(numbers: Sequence[float]) -> Array | None:
    """The numbers on the device, float64; None if they replace a graph's, whose kernels read them."""
    if _thread.parameters is None:
        return cp.asarray(np.array(numbers, np.float64))
    return _thread.parameters.numbers(numbers)


def uploaded(x: Any, dtype: Any = None) -> Array:
    """NumPy's array on the device, C-contiguous; during a capture, a constant of the graph."""
    if _thread.parameters is None:
        return cp.asarray(x, dtype, order="C")
    with cp.cuda.using_allocator(cp.get_default_memory_pool().malloc):
        constant = copied(np.asarray(x, dtype, order="C"), cp.cuda.Device())
    _thread.parameters.constants.append(constant)
    return constant


def copied(x: np.ndarray, device: Any) -> Array:
    """Copy to a device through pinned memory on a stream for copies, and wait for this copy alone."""
    with device, _copying(device.id) as stream:
        copy = cp.asarray(x, order="C")  # CuPy sends NumPy's arrays through pinned memory
        stream.synchronize()
    return copy


def fetched(x: Array, computed: Any) -> np.ndarray:
    """Copy to the host on a stream for copies, once an event is over, and wait for this copy alone."""
    with cp.cuda.Device(x.device.id):
        stream = _copying(x.device.id)
        stream.wait_event(computed)
        copy = x.get(stream=stream)
        stream.synchronize()
    return copy


@functools.cache
def _copying(device: int) -> Any:
    return cp.cuda.Stream(non_blocking=True)


class GraphMemory:
    """Memory shared by graphs that never run at the same time, and the stream that they are captured on.

    What one of them leaves there lasts until another is launched. A pool separates its memory by stream, so
    that graphs share memory by sharing the stream.
    """

    def __init__(self) -> None:
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.pool = cp.cuda.MemoryPool(_allocated)
        self.pool.set_limit(size=0)  # none: a pool at its limit frees what graphs use
        device = cp.cuda.runtime.getDevice()
        weakref.finalize(self, _free, self.pool, device).atexit = False  # CuPy's pools do not do so


def _free(pool: Any, device: int) -> None:
    with cp.cuda.Device(device):
        pool.free_all_blocks()


def _allocated(size: int) -> Any:
    """Device memory; without any left, an error that makes no pool free what graphs use."""
    try:
        return cp.cuda.MemoryPointer(cp.cuda.Memory(size), 0)
    except cp.cuda.runtime.CUDARuntimeError as error:
        free, total = cp.cuda.runtime.memGetInfo()
        raise MemoryError(f"{size:,} bytes for a graph, {free:,} of {total:,} are free: {error}") from None


class Graph:
    """Captured work.

    Parameters
    ----------
    work : callable
        Launches kernels on the device and waits for nothing. It has run before, so that all kernels are
        compiled. It is called once here, which records it without running it. Arrays from before the capture
        that it reads or writes must live as long as the graph.
    memory : GraphMemory
        Where arrays that the work makes are allocated.
    """

    def __init__(self, work: Callable[[], None], memory: GraphMemory) -> None:
        self._memory, self._parameters, stream = memory, Parameters(), memory.stream
        cp.cuda.get_current_stream().synchronize()
        cp.get_default_memory_pool().free_all_blocks()  # what the uncaptured run of the work allocated
        with stream, _registering(self._parameters), cp.cuda.using_allocator(memory.pool.malloc):
            stream.begin_capture()
            try:
                work()
            except BaseException:
                with suppress(Exception):  # a capture that was broken off raises as well
                    stream.end_capture()
                raise
            self._graph = stream.end_capture()
        self._handles = handles()  # of cuBLAS, whose workspace the products use
        self._fresh = True

    def launch(self, rng: np.random.Generator, update: Callable[[], None]) -> None:
        """Run the work with new parameters; the first launch uses those of the capture.

        Parameters
        ----------
        rng : Generator
            Where the seeds are drawn, as the work would draw them.
        update : callable
            Calls the update rule of the work, whose numbers become parameters; nothing is updated by it.
        """
        if not self._fresh:
            self._parameters.refill(rng, update)
        self._fresh = False
        self._parameters.send()
        self._graph.launch(cp.cuda.get_current_stream())
