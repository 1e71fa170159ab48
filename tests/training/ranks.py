"""Ranks that are threads: a stand-in for MPI, with which several solvers train together in one process.

They run one at a time, from one exchange to the next: kernels and workspaces are not made for threads.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext


class Shared:
    """What the ranks of one communicator have in common."""

    def __init__(self, size):
        self.values, self.barrier = [None] * size, threading.Barrier(size, timeout=60)
        self.turn = threading.Lock()


class ThreadCommunicator:
    """A communicator of threads; counts its calls."""

    def __init__(self, rank, shared):
        self.rank = self.local_rank = rank
        self.size = len(shared.values)
        self._shared, self.calls = shared, []

    def gather(self, value):
        self.calls.append("gather")
        return self._exchange(value)

    def begin_sum(self, array):
        self.calls.append("sum")
        arrays = self._exchange(array.copy())
        array[...] = arrays[0]
        for other in arrays[1:]:
            array += other

    def end_sums(self):
        self.calls.append("end")

    def watch(self, exchange):
        return nullcontext()

    def share(self, array):
        self.calls.append("share")
        array[...] = self._exchange(array.copy())[0]

    def begin_abort(self):
        self._shared.barrier.abort()

    def abort(self, status):
        self._shared.barrier.abort()

    def _exchange(self, value):
        shared = self._shared
        shared.values[self.rank] = value
        shared.turn.release()
        try:
            shared.barrier.wait()
            values = list(shared.values)
            shared.barrier.wait()
        finally:
            shared.turn.acquire()
        return values


def on_ranks(size, work):
    """The results of ``work(communicator)`` on each rank. An error of one rank releases the others."""
    shared = Shared(size)

    def of_rank(rank):
        with shared.turn:
            try:
                return work(ThreadCommunicator(rank, shared))
            except BaseException:
                shared.barrier.abort()
                raise

    with ThreadPoolExecutor(size) as executor:
        futures = [executor.submit(of_rank, rank) for rank in range(size)]
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    if errors:
        raise errors[0]
    return [future.result() for future in futures]
