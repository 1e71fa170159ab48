"""A time limit on waiting for other processes.

A blocking MPI call cannot be interrupted, so another thread watches it and ends the process.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import dropwhile
from pathlib import Path

_STEP = 1.0  # seconds between two checks of a wait


class Wait:
    """A call in which a thread waits for other processes.

    Attributes
    ----------
    exchange : str
        What they exchange.
    """

    def __init__(self, exchange: str) -> None:
        self.exchange, self._thread = exchange, threading.get_ident()

    def caller(self, files: Collection[str]) -> str:
        """The function that called one of some files to exchange something, with its own file and line."""
        frames = reversed(traceback.extract_stack(sys._current_frames()[self._thread]))
        own = dropwhile(lambda frame: frame.filename not in files, frames)
        caller = next((frame for frame in own if frame.filename not in files), None)
        if caller is None:
            return "a function that has just returned"
        return f"{caller.name} ({Path(caller.filename).name}, line {caller.lineno})"


class Watchdog:
    """Calls a function if a wait takes too long.

    Time during which the whole process is suspended, for example by a batch system, does not count.

    Parameters
    ----------
    limit : float
        Seconds.
    end : callable
        Called in another thread, with the :class:`Wait`.
    """

    def __init__(self, limit: float, end: Callable[[Wait], None]) -> None:
        self.limit, self._end = limit, end
        self._wait: Wait | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    @contextmanager
    def over(self, exchange: str) -> Iterator[None]:
        """A context in which this process waits for others."""
        if not self._thread.ident:
            self._thread.start()
        self._wait = Wait(exchange)
        try:
            yield
        finally:
            self._wait = None

    def _watch(self) -> None:
        step, wait, waited = min(_STEP, self.limit / 10), None, 0.0
        while waited < self.limit:
            time.sleep(step)
            if self._wait is not wait:
                wait, waited = self._wait, 0.0
            elif wait is not None:
                waited += step
        if wait is not None:
            self._end(wait)
