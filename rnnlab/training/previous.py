"""The checkpoint before each checkpoint of a run: kept, and used where the later one is damaged."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rnnlab.files import atomic_write
from rnnlab.training.checkpoint import CheckpointError

Read = TypeVar("Read")


def previous_of(checkpoint: Path) -> Path:
    """The file that keeps the checkpoint before ``checkpoint``: last.previous.h5 for last.h5."""
    return checkpoint.with_suffix(f".previous{checkpoint.suffix}")


def keep_previous(checkpoint: Path) -> None:
    """Keep a checkpoint, if it exists, under the name of :func:`previous_of`, before it is replaced."""
    if not checkpoint.exists():
        return
    second = checkpoint.with_name(f".{checkpoint.name}.kept")
    second.unlink(missing_ok=True)
    try:
        os.link(checkpoint, second)
    except OSError:  # a file system without hard links
        with atomic_write(second) as copy:
            shutil.copyfile(checkpoint, copy)
    os.replace(second, previous_of(checkpoint))


def or_previous(checkpoint: Path, read: Callable[[Path], Read]) -> Read:
    """Read a checkpoint; if it is damaged and the one before it is whole, that one.

    The one before then takes its place, and a damaged file is kept as last.damaged.h5. A line on standard
    error says so.

    Parameters
    ----------
    checkpoint : path
    read : callable
        Reads a file.

    Raises
    ------
    CheckpointError
        If neither can be read: the error of ``checkpoint``.
    FileNotFoundError
        If there is no ``checkpoint``.
    """
    try:
        return read(checkpoint)
    except CheckpointError as error:
        kept = previous_of(checkpoint)
        try:
            found = read(kept)
        except (CheckpointError, FileNotFoundError):
            raise error from None
        os.replace(checkpoint, checkpoint.with_suffix(f".damaged{checkpoint.suffix}"))
        os.replace(kept, checkpoint)
        print(f"{error}. The checkpoint before it takes its place.", file=sys.stderr)
        return found
