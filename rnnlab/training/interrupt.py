"""Ctrl-C at any moment stops training between two iterations."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """A context in which the first Ctrl-C sets :attr:`requested` and the second raises KeyboardInterrupt.

    An exception in the middle of an update would leave half of the parameters changed. Only the main thread
    receives signals; in other threads this does nothing.

    Attributes
    ----------
    requested : bool
        Whether Ctrl-C was pressed within the context.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None

    def __enter__(self) -> Interrupt:
        self.requested = False
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._request)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
