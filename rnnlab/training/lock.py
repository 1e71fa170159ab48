"""A lock of a run directory: two processes cannot train in one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rnnlab.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no such locks: nothing is locked there
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class InUseError(InputError, RuntimeError):
    """Another process trains in the run directory."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, which is made if it does not exist.

    The operating system releases the lock when the process ends, however it ends. The empty file remains.

    Raises
    ------
    InUseError
        If another process holds it.
    OSError
        If the file cannot be opened.
    """
    directory.mkdir(parents=True, exist_ok=True)
    handle = os.open(directory / NAME, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InUseError(f"run_dir {directory} is in use: another process trains in it") from None
        yield
    finally:
        os.close(handle)
