"""Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP at any moment stop training between two iterations."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType, TracebackType

SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
if hasattr(signal, "SIGUSR1"):  # not on Windows. mpirun passes it on; at SIGTERM it kills its processes.
    SIGNALS[signal.SIGUSR1] = "SIGUSR1"
if hasattr(signal, "SIGHUP"):  # the terminal is closed
    SIGNALS[signal.SIGHUP] = "SIGHUP"
_STANDARD_ERROR = 2


@contextmanager
def handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """A context in which ``handler`` receives :data:`SIGNALS`; only for the main thread.

    A handler that was not installed from Python stays, because Python cannot put it back. So does SIGHUP that
    is ignored, as by nohup.
    """
    others = [number for number in SIGNALS if signal.getsignal(number) is not None]
    if "SIGHUP" in SIGNALS.values() and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        others.remove(signal.SIGHUP)
    previous = {number: signal.signal(number, handler) for number in others}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


class Interrupted(KeyboardInterrupt):
    """The first signal, within :meth:`Interrupt.at_once`."""


class Interrupt:
    """A context in which the first signal sets :attr:`received` and the second raises KeyboardInterrupt.

    A second SIGHUP does nothing.

    An exception in the middle of an update would leave half of the parameters changed. Only the main thread
    receives signals; in other threads this does nothing.

    Attributes
    ----------
    received : signal.Signals or None
        The signal that came within the context: SIGINT, which is Ctrl-C, SIGTERM, SIGUSR1 or SIGHUP.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._raises = self._held = self._again = False
        self._handled = ExitStack()

    def __enter__(self) -> Interrupt:
        self.received = None
        self._again = False
        if threading.current_thread() is threading.main_thread():
            self._handled.enter_context(handled(self._request))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handled.close()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A context in which the first signal raises Interrupted, even one that came earlier.

        It is for work that makes no updates.
        """
        self._raises = True
        try:
            if self.received is not None:
                raise Interrupted
            yield
        finally:
            self._raises = False

    def hold(self) -> None:
        """Let a second signal wait for :meth:`release`: between the two, the parameters change."""
        self._held = True

    def release(self) -> None:
        """Raise KeyboardInterrupt if a second signal has waited."""
        self._held = False
        if self._again:
            self._again = False
            raise KeyboardInterrupt

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            if SIGNALS[signal.Signals(number)] == "SIGHUP":
                return  # shells and the system both send it
            if not self._held:
                raise KeyboardInterrupt
            self._again = True
            return
        self.received = signal.Signals(number)
        name = SIGNALS[self.received]
        line = f"\n{name}: saving a checkpoint after this step; a second signal stops at once\n"
        with suppress(OSError):  # a terminal that is closed
            os.write(_STANDARD_ERROR, line.encode())  # not print, which this handler may have interrupted
        if self._raises:
            raise Interrupted
