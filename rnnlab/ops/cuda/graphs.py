"""CUDA graphs: work that is captured once and then launched by a single call of the host.

Each launch of a graph runs the same kernels on the same memory. Whatever differs between launches must be
stored in that memory: the input arrays, which the caller fills, and the graph's parameters, which are the
seeds of its masks and the numbers of its update rule. :func:`graph_seeds` and :func:`graph_numbers` register
parameters during the capture; :meth:`Graph.launch` sends new ones. Products have the precision of
:mod:`rnnlab.ops.precision` at the time of the capture.
"""

from __future__ import annotations

import functools
import gc
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
AHEAD = 4  # the number of launches that the host may be ahead of the device


class Seed(int):
    """A seed that is also stored on the device, in ``address`` (1,), where a graph replaces it."""

    address: Array


class GraphParameters:
    """The parameters of a graph, on the host and on the device.

    Attributes
    ----------
    constants : list of array
        Arrays that the work copied to the device during the capture. They are the same for each launch.
    """

    def __init__(self) -> None:
        self.constants: list[Array] = []
        self._host = np.zeros(_CAPACITY, np.uint64)
        self._device = cp.zeros(_CAPACITY, np.uint64)
        self._pinned = [_Pinned(_CAPACITY) for _ in range(AHEAD)]  # used in turn
        self._sent = 0
        self._used = 0
        self._seeds: list[int] = []  # indices of the seeds
        self._numbers: list[slice] = []
        self._refilled: int | None = None  # how many numbers have been replaced; None during the capture

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
        """Register numbers and return them on the device; after the capture, replace them and return None."""
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
        self._read.synchronize()  # wait until the previous copy has read the memory
        own, stream = self._words[: x.size], cp.cuda.get_current_stream()
        own[...] = x
        out.set(own, stream=stream)
        self._read.record(stream)


class _Thread(threading.local):
    parameters: GraphParameters | None = None


_thread = _Thread()


@contextmanager
def _registering(parameters: GraphParameters) -> Iterator[None]:
    _thread.parameters = parameters
    try:
        yield
    finally:
        _thread.parameters = None


def graph_seeds(seeds: Sequence[int]) -> Sequence[int]:
    """The seeds; during a capture, registered as parameters that each launch replaces."""
    return seeds if _thread.parameters is None else _thread.parameters.seeds(seeds)


def graph_numbers(numbers: Sequence[float]) -> Array | None:
    """The numbers on the device, float64; None if they replace those of a graph."""
    if _thread.parameters is None:
        return cp.asarray(np.array(numbers, np.float64))
    return _thread.parameters.numbers(numbers)


def uploaded(x: Any, dtype: Any = None) -> Array:
    """A NumPy array on the device, C-contiguous; during a capture, a constant of the graph."""
    if _thread.parameters is None:
        return cp.asarray(x, dtype, order="C")
    with cp.cuda.using_allocator(cp.get_default_memory_pool().malloc):
        constant = copied(np.asarray(x, dtype, order="C"), cp.cuda.Device())
    _thread.parameters.constants.append(constant)
    return constant


def copied(x: np.ndarray, device: Any) -> Array:
    """Copy to a device through pinned memory on a stream for copies, and wait for this copy only."""
    with device, _copying(device.id) as stream:
        copy = cp.asarray(x, order="C")  # CuPy copies NumPy arrays through pinned memory
        stream.synchronize()
    return copy


def fetched(x: Array, computed: Any) -> np.ndarray:
    """Copy to the host on a stream for copies, after the event ``computed``, and wait for this copy only."""
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
    """Memory shared by graphs that never run at the same time, and the stream on which they are captured.

    The results of one graph last until another is launched. A pool separates its memory by stream, so graphs
    share memory by sharing the stream.
    """

    def __init__(self) -> None:
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.pool = cp.cuda.MemoryPool(_allocated)
        self.pool.set_limit(size=0)  # no limit, because a pool at its limit frees memory that graphs use
        device = cp.cuda.runtime.getDevice()
        weakref.finalize(self, _free, self.pool, device).atexit = False  # CuPy's pools do not free themselves


def _free(pool: Any, device: int) -> None:
    with cp.cuda.Device(device):
        pool.free_all_blocks()


def _allocated(size: int) -> Any:
    """Device memory. If there is none left, the error does not make a pool free memory that graphs use."""
    try:
        return cp.cuda.MemoryPointer(cp.cuda.Memory(size), 0)
    except cp.cuda.runtime.CUDARuntimeError as error:
        free, total = cp.cuda.runtime.memGetInfo()
        raise MemoryError(f"{size:,} bytes for a graph, {free:,} of {total:,} are free: {error}") from None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from calling finalizers, which may synchronise the device."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Graph:
    """Captured work.

    Parameters
    ----------
    work : callable
        Launches kernels on the device without waiting. It must have run before, so that all kernels are
        compiled. It is called once here, which records it without running it. Existing arrays that it reads
        or writes must live as long as the graph.
    memory : GraphMemory
        The memory in which arrays created by the work are allocated.
    """

    def __init__(self, work: Callable[[], None], memory: GraphMemory) -> None:
        self._memory, self._parameters, stream = memory, GraphParameters(), memory.stream
        cp.cuda.get_current_stream().synchronize()
        cp.get_default_memory_pool().free_all_blocks()  # memory of the earlier run of the work
        allocator = cp.cuda.using_allocator(memory.pool.malloc)
        with stream, _registering(self._parameters), allocator, _no_collection():
            stream.begin_capture()
            try:
                work()
            except BaseException:
                with suppress(Exception):  # ending a failed capture raises, too
                    stream.end_capture()
                raise
            self._graph = stream.end_capture()
        self._handles = handles()  # cuBLAS handles, whose workspace the products use
        self._fresh = True

    def launch(self, rng: np.random.Generator, update: Callable[[], None]) -> None:
        """Run the work with new parameters; the first launch uses those of the capture.

        Parameters
        ----------
        rng : Generator
            Draws the seeds, in the order in which the work would draw them.
        update : callable
            Calls the update rule of the work. Its numbers become parameters; the call itself updates nothing.
        """
        if not self._fresh:
            self._parameters.refill(rng, update)
        self._fresh = False
        self._parameters.send()
        self._graph.launch(cp.cuda.get_current_stream())
