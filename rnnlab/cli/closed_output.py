"""The end of a command whose output is closed by its reader, as in ``rnnlab recipes list | head -1``."""

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
        # the rest of the buffer is discarded, so that the flush at exit succeeds
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED


def _flush() -> None:
    """Flush standard output. Only a broken pipe is an error here; the flush at exit reports others."""
    try:
        print(end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError:  # such as a full disk
        pass
