"""The previous version of each checkpoint of a run: it is kept, and used if the later one is damaged.

Any process may call :func:`load_or_previous`. Only the process that trains in the run directory repairs it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from rnnlab.files import atomic_write, move
from rnnlab.training.checkpoint import Checkpoint, CheckpointError, FormerFormatError, load_checkpoint


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
        os.link(os.path.realpath(checkpoint), second)  # if it is a link, the file behind it
    except OSError:  # a file system without hard links
        with atomic_write(previous_of(checkpoint)) as copy:
            shutil.copyfile(checkpoint, copy)
        return
    move(second, previous_of(checkpoint))


def repair_best(best: Path, epoch: int) -> bool:
    """Make ``best`` the checkpoint of the best epoch of a run that resumes; return whether it is.

    The file may be of a later epoch than the last checkpoint: if the process was killed between writing the
    two, or if the last checkpoint was damaged and an earlier one is used. The previous best checkpoint then
    replaces it, as it does if ``best`` is damaged or missing.
    """
    kept, is_there = previous_of(best), best.exists()
    found = _epoch_of(best) if is_there else None
    if found == epoch:
        return True
    if not kept.exists() or _epoch_of(kept) != epoch:
        return False
    if is_there and found is None:
        load_and_repair(best)  # keeps the damaged file
    else:
        move(kept, best)
    return True


def _epoch_of(best: Path) -> int | None:
    """The epoch of a best checkpoint, the last one of its history; None if it is damaged."""
    try:
        return load_checkpoint(best).history[-1]["epoch"]
    except (CheckpointError, LookupError):
        return None


def load_or_previous(checkpoint: Path) -> Checkpoint:
    """Read a checkpoint, or the previous one if the checkpoint is damaged and the previous one is intact.

    No file is changed, so that several processes may read at the same time.

    Raises
    ------
    CheckpointError
        If neither can be read: the error of ``checkpoint``.
    FileNotFoundError
        If there is no ``checkpoint``.
    """
    try:
        return load_checkpoint(checkpoint)
    except CheckpointError as error:
        try:
            return load_checkpoint(previous_of(checkpoint))
        except (CheckpointError, OSError):
            raise _naming_another(error, checkpoint) from None


def load_or_suggest(checkpoint: Path) -> Checkpoint:
    """Read a checkpoint that another one must not replace silently, because its parameters differ.

    Raises
    ------
    CheckpointError
        If it is damaged. The message names an intact checkpoint of the run that can replace it.
    FileNotFoundError
        If there is none.
    """
    try:
        return load_checkpoint(checkpoint)
    except CheckpointError as error:
        raise _naming_another(error, checkpoint) from None


def _naming_another(error: CheckpointError, damaged: Path) -> CheckpointError:
    """The error, with the name of a checkpoint of the same run that can replace the damaged one."""
    if isinstance(error, FormerFormatError):
        return error
    run = [damaged.with_name(name) for name in ("best.h5", "last.h5")]
    for other in (previous_of(damaged), *run, *map(previous_of, run)):
        try:
            found = load_checkpoint(other)
        except (CheckpointError, OSError):
            continue
        if other.name.startswith("best") and found.average is not None:
            continue  # its parameters are the averages, from which the run cannot resume
        which = _describe(found)
        error.args = (f"{error}. {other} is whole ({which}): copy it to {damaged.name} to use it",)
        break
    return error


def _describe(checkpoint: Checkpoint) -> str:
    """The epoch and the iteration of a checkpoint, as text."""
    epochs = f"epoch {checkpoint.history[-1]['epoch']}, " if checkpoint.history else ""
    return f"{epochs}iteration {len(checkpoint.losses):,}"


def load_and_repair(checkpoint: Path) -> Checkpoint | None:
    """Read a checkpoint; if it is damaged and the previous one is intact, replace it by the previous one.

    The damaged file is kept: last.h5 becomes last.damaged.h5, and a warning goes to standard error. Only for
    a process that holds the lock of the run directory.

    Returns
    -------
    Checkpoint or None
        The checkpoint that was read; None if both are damaged.

    Raises
    ------
    OSError
        If one that is needed may be intact, but cannot be read now. Nothing is replaced.
    """
    kept = previous_of(checkpoint)
    try:
        return load_checkpoint(checkpoint)
    except CheckpointError as error:
        try:
            found = load_checkpoint(kept)
        except (CheckpointError, FileNotFoundError):
            return None
        with atomic_write(checkpoint.with_suffix(f".damaged{checkpoint.suffix}")) as copy:
            shutil.copyfile(checkpoint, copy)  # not renamed: at no moment is there no checkpoint
        move(kept, checkpoint)
        print(f"{error}. The checkpoint before it takes its place ({_describe(found)}).", file=sys.stderr)
        return found
