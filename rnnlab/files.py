"""Atomic writing: files are written under a temporary name, flushed to the disk, then renamed.

Folders of files that belong together are written in the same way. Commands that write after minutes of work
check beforehand that they can write.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import h5py
import numpy as np

from rnnlab.errors import RnnlabError
from rnnlab.signals import deferred_signals

_SPECIAL = "it is a device or a pipe, expected a file"
_OPENS_FOLDERS = os.name != "nt"  # Windows does not, and cannot flush a file that is opened for reading
_NO_FLUSH = errno.EINVAL, errno.ENOTSUP  # of file systems that cannot flush a folder, such as network shares
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.5, 3, 4) if os.name == "nt" else ()  # seconds between attempts
_UMASK = threading.Lock()  # the umask can only be read by setting it, which affects all threads


class WriteError(RnnlabError, OSError):
    """A file was not written: the disk is full, read-only or gone. A previous file is unchanged."""

    def __init__(self, path: Path, error: OSError) -> None:
        reason, blamed = error.strerror or error, error.filename
        if isinstance(blamed, str | os.PathLike) and not _is_part_of(Path(blamed), path):
            reason = f"{os.fspath(blamed)}: {reason}"  # such as a missing file that the block reads
        super().__init__(f"{path} was not written: {reason}")


def _is_part_of(file: Path, target: Path) -> bool:
    """Whether a file is the target, or has the temporary name of one."""
    return file == target or file.name.startswith(f".{target.name}.")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path next to ``path``; rename it to ``path`` when the block ends without an error.

    The file is flushed to the disk before the rename. Killing the process at any moment leaves either the
    complete previous file or the complete new one. On an error the temporary file is removed and ``path`` is
    not changed. If ``path`` is a link, its target is written. A file that is replaced keeps its permissions.

    Raises
    ------
    WriteError
        If the operating system refuses an operation, the block raises OSError, or ``path`` is a device or a
        pipe.
    """
    target = _behind_links(path)
    try:
        if _is_special(target):
            raise OSError(_SPECIAL)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _put(temporary, target, 0o666)
        finally:
            temporary.unlink(missing_ok=True)
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(target, error) from error


@contextmanager
def atomic_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Yield a new text file in UTF-8, which becomes ``path`` as in :func:`atomic_write`.

    File names that are not UTF-8 are written with Python's escapes, from which JSON restores the name.

    Raises
    ------
    WriteError
        As :func:`atomic_write`.
    """
    with (
        atomic_write(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        yield file


def write_json(path: str | os.PathLike[str], content: Any, *, indent: int | None = None) -> None:
    """Write a JSON file as in :func:`atomic_text`. Its numbers are those of :func:`finite`.

    Raises
    ------
    WriteError
        As :func:`atomic_write`.
    """
    with atomic_text(path) as file:
        file.write(json.dumps(finite(content), indent=indent, ensure_ascii=False) + "\n")


@contextmanager
def atomic_hdf5(
    path: str | os.PathLike[str], *, before_rename: Callable[[], None] | None = None, **options: Any
) -> Iterator[h5py.File]:
    """Yield a new HDF5 file, which becomes ``path`` as in :func:`atomic_write`.

    ``before_rename`` is called when the file is complete under its temporary name. ``options`` are those of
    ``h5py.File``.

    Signals wait in the block (:func:`~rnnlab.signals.deferred_signals`): HDF5 writes by calling Python, and
    would lose the exception of Ctrl-C together with a part of the file. A block that takes long calls
    :func:`~rnnlab.signals.deliver_signals` between its steps.

    Raises
    ------
    WriteError
        As :func:`atomic_write`, at the end of the block.
    """
    with deferred_signals(), atomic_write(path) as temporary, _KeptError(temporary, "w+") as raw:
        with h5py.File(raw, "w", **options) as file:
            yield file
        if raw.error is not None:
            raise raw.error
        if before_rename is not None:
            before_rename()


@contextmanager
def atomic_folder(argument: str, path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder next to ``path``; rename it to ``path`` when the block ends without an error.

    Either all files exist or none does. The block writes them with :func:`atomic_write`, which flushes them.
    On an error the temporary folder is removed. If the process is killed, it remains, under a name that
    begins with a dot.

    Parameters
    ----------
    argument : str
        The argument of the path, such as ``--out``, for the message.
    path : path
        Must not exist, so that two sets of files are never mixed.

    Raises
    ------
    FileExistsError, OSError
        As :func:`check_new_folder`.
    WriteError
        If the operating system refuses an operation, or the block raises OSError.
    """
    check_new_folder(argument, path)
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            yield temporary
            _put(temporary, target, 0o777)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except (
        WriteError
    ) as error:  # name the target instead of a file in the temporary folder, which no longer exists
        reason = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise WriteError(target, reason) from error
    except OSError as error:
        raise WriteError(target, error) from error


def finite(value: Any) -> Any:
    """A value for a JSON file: NaN and infinity, which JSON cannot represent, become None.

    NumPy's numbers become Python's.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _KeptError(io.FileIO):
    """A file that stores the first error of writing and discards later writes.

    HDF5 crashes the process if it cannot write the rest of a file when closing it.
    """

    error: OSError | None = None

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        while len(left) and self.error is None:
            try:
                left = left[super().write(left) :]
            except OSError as error:
                self.error = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        if self.error is None:
            try:
                return super().truncate(size)
            except OSError as error:
                self.error = error
        return size or 0


def check_writable(argument: str, path: str | os.PathLike[str], *, is_folder: bool = False) -> None:
    """Check, before minutes of work, that :func:`atomic_write` can write a file.

    Parameters
    ----------
    argument : str
        The argument of the path, such as ``--out``, for the message.
    path : path
    is_folder : bool
        Whether the path is a folder in which files will be written.

    Raises
    ------
    OSError
        If the path is a device or a pipe, is a directory although a file is expected, has a name that is too
        long, or its folder cannot be read, written or created.
    """
    target = _behind_links(path)
    refused = f"{argument} {path} cannot be written"
    if not is_folder and os.path.isdir(target):  # not Path.is_dir, which may not look into a folder of others
        raise IsADirectoryError(f"{refused}: it is a directory, expected a file")
    if not is_folder and os.fspath(path).endswith(("/", os.sep)):
        raise IsADirectoryError(f"{refused}: it ends with {os.fspath(path)[-1]}, expected a file")
    if _is_special(target):
        raise OSError(f"{refused}: {_SPECIAL}")
    folder = target.absolute() if is_folder else target.absolute().parent
    while not os.path.lexists(folder):  # atomic_write creates missing folders
        folder = folder.parent
    if not folder.is_dir():
        kind = "a file" if folder.exists() else "a link to nothing"
        raise NotADirectoryError(f"{refused}: {folder} is {kind}, expected a folder")
    try:
        # not os.access, which tells an administrator that even /proc is writable
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise type(error)(f"{refused}: {folder} takes no new files ({error.strerror})") from None
    if is_folder:
        return
    try:
        with tempfile.NamedTemporaryFile(prefix=f".{target.name}.", suffix=target.suffix, dir=folder):
            pass  # the name that atomic_write takes
    except OSError as error:
        raise type(error)(f"{refused}: {error.strerror}") from None


def check_new_folder(argument: str, path: str | os.PathLike[str]) -> None:
    """Check, before minutes of work, that :func:`atomic_folder` can write a folder.

    Raises
    ------
    FileExistsError
        If there is a folder, a file or a link of this name.
    OSError
        As :func:`check_writable`.
    """
    if os.path.lexists(path):
        raise FileExistsError(
            f"{argument} {path} already exists, expected no such folder: delete it, or choose another one"
        )
    check_writable(argument, Path(path))  # without a slash at its end


def _behind_links(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


def _is_special(path: Path) -> bool:
    """Whether the path is something other than a file or a folder, such as a device."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def move(source: Path, target: Path) -> None:
    """Rename a file or a folder, which replaces a file of that name.

    Windows refuses this while another program has one of the two open: a spreadsheet that shows
    ``history.csv``, a virus scanner, or a command that reads a checkpoint. It is tried again for ten seconds.
    """
    for pause in _PAUSES:
        with suppress(PermissionError):
            source.replace(target)
            return
        time.sleep(pause)
    source.replace(target)


def _put(temporary: Path, target: Path, most: int) -> None:
    """Flush a file or a folder, set its permissions, and rename it.

    The permissions are those of the target, or ``most`` without the umask's if there is none.
    """
    _sync(temporary)
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        with _UMASK:
            mask = os.umask(0)
            os.umask(mask)
        mode = most & ~mask
    temporary.chmod(mode)
    move(temporary, target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    """Flush the contents of a file, or the names in a folder, to the disk."""
    is_folder = path.is_dir()
    if is_folder and not _OPENS_FOLDERS:
        return
    handle = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        if not (is_folder and error.errno in _NO_FLUSH):
            raise
    finally:
        os.close(handle)
