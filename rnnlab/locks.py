"""Locks of directories, so that two processes do not write to the same one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rnnlab.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no such locks, so nothing is locked there
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class InUseError(InputError, RuntimeError):
    """Another process writes to the directory."""


@contextmanager
def locked(directory: Path, refused: str) -> Iterator[None]:
    """Hold the lock of a directory, which is created if it does not exist.

    The operating system releases the lock when the process ends, for any reason. The empty file remains.

    Parameters
    ----------
    directory : path
    refused : str
        The message of the error if another process holds the lock.

    Raises
    ------
    InUseError
        If another process holds it.
    OSError
        If the file cannot be opened.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    handle = os.open(directory / NAME, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUseError(refused) from None
        yield
    finally:
        os.close(handle)
