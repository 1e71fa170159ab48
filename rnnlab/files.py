"""Files that are whole or absent: written to a temporary file, flushed to the disk, then renamed.

Commands that write a file after minutes of work check first that it can be written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block ends without an error.

    The file is flushed to the disk before the rename. A kill at any moment leaves either the previous file or
    the new one, never a part. On an error the temporary file is removed and ``path`` is not changed.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        temporary.chmod(_default_mode())
        temporary.replace(target)
        _sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(argument: str, path: str | os.PathLike[str], *, is_folder: bool = False) -> None:
    """Check, before minutes of work, that :func:`atomic_write` can write a file.

    Parameters
    ----------
    argument : str
        The argument of the path, such as ``--out``, for the message.
    path : path
    is_folder : bool
        Whether the path is that of a folder, in which files will be written.

    Raises
    ------
    OSError
        If the path is a directory and no folder is meant, or its folder cannot be written or made.
    """
    target = Path(path)
    refused = f"{argument} {target} cannot be written"
    if target.is_dir() and not is_folder:
        raise IsADirectoryError(f"{refused}: it is a directory, expected a file")
    folder = target.absolute() if is_folder else target.absolute().parent
    while not os.path.exists(folder):  # atomic_write makes missing folders
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{refused}: {folder} is a file, expected a folder")
    try:
        # not os.access, which allows an administrator file systems that take no files, such as /proc
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise type(error)(f"{refused}: {folder} takes no new files ({error.strerror})") from None


def _sync(path: Path) -> None:
    """Flush the contents of a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _default_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
