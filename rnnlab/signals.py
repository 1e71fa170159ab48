"""Signals that wait while an exception would do harm.

A signal handler of Python, such as that of Ctrl-C, runs between two instructions of the main thread and may
raise an exception there. Not every library survives that. HDF5, which calls Python to write a file, cannot
pass the exception on: it is lost together with a part of the file, or HDF5 crashes. Numba compiles nothing
any more after an exception at some of its places.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}  # that are replaced by _wait
_waiting: list[int] = []  # the numbers of the signals


@contextmanager
def deferred_signals() -> Iterator[None]:
    """A context in which signals with a handler of Python wait. Their handlers are called at its end.

    It may be nested; the outermost context counts. It does nothing in other threads than the main one, since
    no handler runs there.
    """
    if threading.current_thread() is not threading.main_thread() or _handlers:
        yield
        return
    _waiting.clear()
    try:
        _replace()
        yield
    finally:
        handlers = dict(_handlers)
        _restore()
        for received in list(_waiting):
            handlers[received](received, None)


def deliver_signals() -> None:
    """Within :func:`deferred_signals`, call the handlers of the signals that wait, which may raise."""
    if threading.current_thread() is not threading.main_thread():
        return
    while _handlers and _waiting:
        number = _waiting.pop(0)
        _handlers[number](number, None)


# The loops are functions of their own: Python 3.13 may raise an exception of a handler between the iterations
# of a loop where no `try` around the loop sees it.


def _replace() -> None:
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler):
            _handlers[number] = handler
            signal.signal(number, _wait)


def _restore() -> None:
    """Install the handlers again, all of them even if one is called meanwhile and raises."""
    try:
        _restore_each()
    except BaseException:
        _restore()
        raise


def _restore_each() -> None:
    while _handlers:
        number, handler = next(iter(_handlers.items()))
        signal.signal(number, handler)
        del _handlers[number]


def _wait(number: int, frame: FrameType | None) -> None:
    _waiting.append(number)
