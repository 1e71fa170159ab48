"""A function of many items, in several processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def map_in_processes(
    pool: ProcessPoolExecutor, function: Callable[[T], R], items: Sequence[T]
) -> Iterator[R]:
    """The function of each item, in the order of the items.

    All items are submitted at once. The pool is shut down after the last result. If one of its processes is
    killed, as the system does when memory runs out, the function of the items that are left is computed in
    this process, with a warning.

    Parameters
    ----------
    pool : ProcessPoolExecutor
    function : callable
        Takes an item. Function, items and results are pickled.
    items : sequence
    """
    submitted: list[Future[R]] = []
    with suppress(BrokenProcessPool):
        submitted += (pool.submit(function, item) for item in items)
    return _results(pool, function, items, submitted)


def _results(
    pool: ProcessPoolExecutor, function: Callable[[T], R], items: Sequence[T], submitted: list[Future[R]]
) -> Iterator[R]:
    done = 0
    try:
        for future in submitted:
            try:
                result = future.result()
            except BrokenProcessPool:
                break
            yield result
            done += 1
    finally:
        pool.shutdown(cancel_futures=True)
    if done < len(items):
        warnings.warn(
            "a process was killed, perhaps for lack of memory: the rest is computed in one process",
            RuntimeWarning,
            stacklevel=2,
        )
        yield from map(function, items[done:])
