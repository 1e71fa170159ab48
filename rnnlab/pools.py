"""A function of many items, in several processes."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Literal, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def map_in_processes(
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    jobs: int,
    method: Literal["spawn", "forkserver"],
    start: Callable[[], None] | None = None,
    killed: Callable[[T], R] | None = None,
    terminate: bool = False,
) -> Iterator[R]:
    """The function of each item, in the order of the items.

    The processes are started at once, and ended after the last result. They ignore Ctrl-C, which a terminal
    sends to them too. If one is killed, as the system does when memory runs out, the items that have no
    result yet are computed in new processes, one at a time.

    Parameters
    ----------
    function : callable
        Takes an item. Functions, items and results are pickled.
    items : sequence
    jobs : int
        The number of processes.
    method : {"spawn", "forkserver"}
        How they are started, as :mod:`multiprocessing` calls it.
    start : callable, optional
        Called in each process first.
    killed : callable, optional
        The result of an item whose process is killed when it is computed alone.
    terminate : bool
        Whether the processes are terminated if no more results are wanted, as after Ctrl-C. By default each
        completes its item, and can release what it holds.

    Raises
    ------
    OSError
        If the process of an item that is computed alone is killed, and there is no ``killed``.
    """
    pool = _pool(jobs, method, start)
    submitted: list[Future[R]] = []
    with suppress(BrokenProcessPool):
        submitted += (pool.submit(function, item) for item in items)

    def alone(item: T) -> R:
        with _pool(1, method, start) as single:
            try:
                return single.submit(function, item).result()
            except BrokenProcessPool:
                if killed is not None:
                    return killed(item)
                raise OSError(
                    "a process was killed twice at the same work, perhaps for lack of memory"
                ) from None

    return _results(pool, submitted, items, alone, terminate)


def _results(
    pool: ProcessPoolExecutor,
    submitted: Sequence[Future[R]],
    items: Sequence[T],
    alone: Callable[[T], R],
    terminate: bool,
) -> Iterator[R]:
    """The results of the futures, and those of ``alone`` for items without one."""
    is_told = False
    try:
        for number, item in enumerate(items):
            try:
                result = _of(submitted, number)
            except BrokenProcessPool:
                if not is_told:
                    told = "a process was killed, perhaps for lack of memory: the rest is done one by one"
                    warnings.warn(told, RuntimeWarning, stacklevel=2)
                is_told = True
                result = alone(item)
            yield result
    except BaseException:  # GeneratorExit too
        for process in (pool._processes or {}).values() if terminate else ():
            process.terminate()  # public from Python 3.14 on: terminate_workers
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _of(submitted: Sequence[Future[R]], number: int) -> R:
    """The result of a future; BrokenProcessPool if there is none."""
    if number >= len(submitted):
        raise BrokenProcessPool
    return submitted[number].result()


def _pool(jobs: int, method: str, start: Callable[[], None] | None) -> ProcessPoolExecutor:
    context = multiprocessing.get_context(method)
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(start,))


def _begin(start: Callable[[], None] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if start is not None:
        start()
