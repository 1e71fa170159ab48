"""The directory of a training run and its files.

    config.json         the configuration, the options of model and solver, what computes
    last.h5             the checkpoint to resume from
    best.h5             the checkpoint of the best epoch, if there is validation
    last.previous.h5    the checkpoint before last.h5, and best.previous.h5 that before best.h5
    history.csv         one row per epoch
    loss.png            the loss curve
    .lock               locked while a process trains

Every file is written under a temporary name and renamed: a kill at any moment leaves the previous one intact.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rnnlab.errors import InputTypeError
from rnnlab.files import atomic_text, write_json
from rnnlab.locks import DirectoryLock, locked
from rnnlab.reading import load_json
from rnnlab.training.monitor import Monitor

_SECONDS_BETWEEN_PLOTS = 30.0
_REPLACED = (  # files that training and its callbacks write under a temporary name first
    *("config.json", "last.h5", "best.h5", "last.previous.h5", "best.previous.h5", "history.csv", "loss.png"),
    *("last.damaged.h5", "best.damaged.h5", "gradients.png", "wandb_id.txt", "log.jsonl"),
)
RUN_FILES = (*_REPLACED, "train.log")


def stage_directories(directory: Path) -> list[Path]:
    """The directories of the stages before the last one, in their order."""
    found = [each for each in directory.glob("stage*") if each.is_dir() and each.name[5:].isdecimal()]
    return sorted(found, key=lambda each: int(each.name[5:]))


def holds_run(directory: Path) -> bool:
    """Whether there is a checkpoint in the directory, or in the directory of one of its stages."""
    places = (directory, *stage_directories(directory))
    return any((place / name).exists() for place in places for name in ("best.h5", "last.h5"))


def check_last(last: Path) -> None:
    """Raise FileNotFoundError if a run has no checkpoint to resume from."""
    if last.exists():
        return
    run = last.parent
    hint = ""
    if last.with_name("best.h5").exists():
        hint = (
            f"; {run / 'best.h5'} is the best epoch's: to train from it, use it as a warm start of a run in "
            "another directory"
        )
    raise FileNotFoundError(f"run_dir {str(run)!r} has no last.h5 to resume from{hint}")


def checkpoint_of(directory: str | os.PathLike[str]) -> Path:
    """The checkpoint with the parameters that a run ends with.

    It is the best one, or the last one if there was no validation or ``restore_best`` is off.

    Raises
    ------
    FileNotFoundError
        If there is none.
    NotADirectoryError
        If ``directory`` is a file, such as the checkpoint itself.
    """
    directory = Path(directory)
    if directory.is_file():
        run = directory.parent
        hint = f": give {run}" if holds_run(run) else ""
        raise NotADirectoryError(f"{directory} is a file, expected the directory of a run{hint}")
    for name in ("best.h5", "last.h5") if _restores_best(directory) else ("last.h5", "best.h5"):
        if (directory / name).exists():
            return directory / name
    stages = [stage for stage in stage_directories(directory) if holds_run(stage)]
    hint = f"; its last stage has not begun, {stages[-1]} has the latest" if stages else ""
    raise FileNotFoundError(
        f"{directory} holds no run: found neither best.h5 nor last.h5, expected the directory of a run{hint}"
    )


def _restores_best(directory: Path) -> bool:
    """Whether the solver of a run has ``restore_best``, as far as config.json can be read."""
    try:
        return load_json(directory / "config.json")["solver"]["restore_best"] is not False
    except (OSError, ValueError, LookupError, TypeError):
        return True


class RunDirectory(os.PathLike[str]):
    """The files of one run.

    Parameters
    ----------
    path : path
        Created with the first file.
    resume : bool
        Whether the directory must hold a run. If false, it must not.

    Raises
    ------
    FileExistsError
        If there is a run and ``resume`` is false.
    FileNotFoundError
        If there is no run and ``resume`` is true.
    NotADirectoryError
        If ``path`` is a file.
    TypeError
        If it is not a path.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputTypeError(f"Solver: run_dir is {path!r:.80}, expected a path")
        self.path = Path(path)
        self.config, self.last, self.best = (
            self.path / name for name in ("config.json", "last.h5", "best.h5")
        )
        self.history, self.loss = self.path / "history.csv", self.path / "loss.png"
        self._plotted = -float("inf")
        self._lock: DirectoryLock | None = None
        if self.path.exists() and not self.path.is_dir():
            raise NotADirectoryError(f"run_dir {str(path)!r} is a file, expected a directory")
        if resume:
            check_last(self.last)
        if not resume and (self.best.exists() or self.last.exists()):
            raise FileExistsError(
                f"run_dir {str(path)!r} already holds a run: resume it, or choose another directory"
            )

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory, and remove the temporary files of a killed process.

        Raises
        ------
        InUseError
            If another process has locked it.
        """
        refused = f"run_dir {self.path} is in use: another process trains in it"
        with locked(self.path, refused) as self._lock:
            for name in _REPLACED:
                for left in self.path.glob(f".{name}.*"):
                    left.unlink(missing_ok=True)
            try:
                yield
            finally:
                self._lock = None

    def check_lock(self) -> None:
        """Check that this process still holds the lock.

        Raises
        ------
        InUseError
            If the directory was deleted, and another process trains in a new one of the same name.
        """
        if self._lock is not None:
            self._lock.check()

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write config.json."""
        write_json(self.config, config, indent=2)

    def write_history(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write history.csv, with a column for every key of any row."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        with atomic_text(self.history) as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def plot(
        self,
        losses: Sequence[float],
        rows: Sequence[Mapping[str, Any]],
        monitor: Monitor,
        *,
        force: bool = False,
    ) -> None:
        """Write loss.png, at most every 30 seconds unless ``force`` is true."""
        if not losses or not (force or time.monotonic() - self._plotted > _SECONDS_BETWEEN_PLOTS):
            return
        from rnnlab import plots  # importing matplotlib takes half a second

        figure = plots.loss_curve(losses, rows, metric=monitor.name, best=monitor.best_epoch)
        plots.save(figure, self.loss)
        self._plotted = time.monotonic()
