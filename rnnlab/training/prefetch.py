"""Batches prepared ahead: a thread prepares the next ones while the model trains on the current one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def prefetched(
    prepare: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Generator[Result, None, None]:
    """Yield ``prepare(item)`` for every item, in order, prepared up to ``ahead`` items early.

    All calls come from one thread, one after another. An error of a call is raised where its result would
    have been yielded. The thread ends with the generator: at the end, after an error, or when the generator
    is closed; use ``contextlib.closing``.

    Parameters
    ----------
    prepare : callable
    items : iterable
    ahead : int
        The maximum number of prepared results, not counting the one in use. With 0 there is no thread.
    """
    if not ahead:
        yield from map(prepare, items)
        return
    items = iter(items)
    executor = ThreadPoolExecutor(1, thread_name_prefix="rnnlab prefetch")
    try:
        waiting = deque(executor.submit(prepare, item) for item in islice(items, ahead))
        while waiting:
            prepared = waiting.popleft().result()
            waiting.extend(executor.submit(prepare, item) for item in islice(items, 1))
            yield prepared
    finally:
        executor.shutdown(cancel_futures=True)
