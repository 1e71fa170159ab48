"""Locks of directories, so that two processes do not write to the same one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rnnlab.errors import InputError
from rnnlab.files import WriteError

try:
    import fcntl
except ImportError:  # Windows has no such locks, so nothing is locked there
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class InUseError(InputError, RuntimeError):
    """Another process writes to the directory."""


class DirectoryLock:
    """The lock of a directory. The operating system releases it when the process ends, for any reason.

    Parameters
    ----------
    directory : path
        Created if it does not exist.
    refused : str
        The message of the error if another process holds the lock.

    Raises
    ------
    InUseError
        If another process holds it.
    WriteError
        If the file of the lock cannot be opened.
    """

    def __init__(self, directory: Path, refused: str) -> None:
        self._file, self._refused = directory / NAME, refused
        self._handle: int | None = None
        self._lost = False
        self._acquire()

    def check(self) -> None:
        """Check that this process still holds the lock, although the directory may have been deleted.

        If the file is missing, it is created and locked again.

        Raises
        ------
        InUseError
            If another process has made the file again.
        WriteError
            If the file cannot be created again.
        """
        if self._lost:
            raise InUseError(self._refused)
        if self._handle is None:
            return
        try:
            found = os.stat(self._file)
        except FileNotFoundError:
            self.release()
            self._lost = True
            self._acquire(os.O_EXCL)
            self._lost = False
            return
        except OSError as error:
            raise WriteError(self._file, error) from error
        held = os.fstat(self._handle)
        if (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
            raise InUseError(self._refused)

    def release(self) -> None:
        """Release the lock. The empty file remains."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _acquire(self, flags: int = 0) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(self._file, error) from error
        if fcntl is None:
            return
        try:
            self._handle = os.open(self._file, os.O_RDWR | os.O_CREAT | flags, 0o666)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, FileExistsError):
            self.release()
            raise InUseError(self._refused) from None
        except OSError as error:
            self.release()
            raise WriteError(self._file, error) from error


@contextmanager
def locked(directory: Path, refused: str) -> Iterator[DirectoryLock]:
    """Hold the lock of a directory, with the arguments and errors of :class:`DirectoryLock`."""
    lock = DirectoryLock(directory, refused)
    try:
        yield lock
    finally:
        lock.release()
