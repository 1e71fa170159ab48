"""A function of many items, in several processes."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, Literal, TypeVar

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
) -> Iterator[R]:
    """The function of each item, in the order of the items.

    The processes are started at once, and ended after the last result, or after their current items if no
    more results are wanted. They ignore Ctrl-C, which a terminal sends to them too. If one is killed, as the
    system does when memory runs out, the items without a result are computed in new processes, one at a time.

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

    return _results(pool, submitted, items, alone)


def _results(
    pool: ProcessPoolExecutor,
    submitted: Sequence[Future[R]],
    items: Sequence[T],
    alone: Callable[[T], R],
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


def as_completed(function: Callable[[T], R], items: Iterable[T], *, jobs: int) -> Generator[R, None, None]:
    """The function of each item in one of several processes, as soon as it is known.

    Close the iterator if no more results are wanted: it terminates the processes, whatever they do. An item
    whose process is killed has no result.

    Parameters
    ----------
    function : callable
        Takes an item. Functions, items and results are pickled.
    items : iterable
    jobs : int
        The number of processes, which are spawned.
    """
    context, rest = multiprocessing.get_context("spawn"), iter(items)
    processes: list[Any] = []
    pipes: list[Any] = []
    pipe: Any
    try:
        for _ in range(jobs):
            pipe, other = context.Pipe()
            if not _send_next(pipe, rest):
                break
            process = context.Process(target=_serve, args=(function, other), daemon=True)
            process.start()
            other.close()
            processes.append(process)
            pipes.append(pipe)
        while pipes:
            for pipe in wait(pipes):
                try:
                    found = pipe.recv()
                except (EOFError, OSError):  # the process was killed
                    pipes.remove(pipe)
                    continue
                if isinstance(found, Exception):
                    raise found
                if not _send_next(pipe, rest):
                    pipes.remove(pipe)
                    pipe.close()
                yield found
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _send_next(pipe: Any, rest: Iterator[Any]) -> bool:
    """Send the next item to a process, if there is one."""
    for item in rest:
        with suppress(OSError):  # the process was killed, as `recv` will say
            pipe.send(item)
        return True
    return False


def _serve(function: Callable[[Any], Any], pipe: Any) -> None:
    """Answer each item with the function of it, or with its error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError):
        while True:
            item = pipe.recv()
            try:
                found = function(item)
            except Exception as error:
                found = error
            pipe.send(found)
