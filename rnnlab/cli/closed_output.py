"""The end of a command when nothing reads its output any more, as in ``rnnlab recipes list | head -1``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

CLOSED = 141  # the exit status that shells give to a program that SIGPIPE ended


def quiet_when_closed(command: Callable[[], int]) -> int:
    """Run a command; end it without a message if standard output is closed.

    Parameters
    ----------
    command : callable
        Takes nothing and returns an exit status. It must not catch BrokenPipeError.

    Returns
    -------
    int
        The exit status of the command, or 141 if standard output was closed.
    """
    try:
        try:
            return command()
        finally:
            _flush()
    except BrokenPipeError:
        # The flush at exit succeeds: what is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED


def _flush() -> None:
    """Flush standard output. Only a broken pipe is an error here: the flush at exit reports any other."""
    try:
        print(end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError:  # such as a full disk
        pass
