"""The directory of a training run: what is in it, and how each file is written.

    config.json    the configuration, the model's and the solver's options
    last.h5        the checkpoint to resume from
    best.h5        the checkpoint of the best epoch, if there is validation
    history.csv    one row per epoch
    loss.png       the loss curve

Every file is written beside its place and renamed, so that a kill at any moment leaves the previous one
whole.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnlab.files import atomic_write
from rnnlab.training.monitor import Monitor

_SECONDS_BETWEEN_PLOTS = 30.0


class RunDirectory:
    """The files of one run.

    Parameters
    ----------
    path : path
        Made when the first file is written.
    resume : bool
        Whether a run is expected there; if not, none may be.

    Raises
    ------
    FileExistsError
        If there is a run and none was expected.
    FileNotFoundError
        If there is none and one was expected.
    NotADirectoryError
        If ``path`` is a file.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        self.path = Path(path)
        self.config, self.last, self.best = (
            self.path / name for name in ("config.json", "last.h5", "best.h5")
        )
        self.history, self.loss = self.path / "history.csv", self.path / "loss.png"
        self._plotted = -float("inf")
        if self.path.exists() and not self.path.is_dir():
            raise NotADirectoryError(f"run_dir {str(path)!r} is a file, expected a directory")
        if resume and not self.last.exists():
            raise FileNotFoundError(f"run_dir {str(path)!r} has no last.h5 to resume from")
        if not resume and (self.best.exists() or self.last.exists()):
            raise FileExistsError(
                f"run_dir {str(path)!r} already holds a run: resume it, or choose another directory"
            )

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write config.json."""
        with atomic_write(self.config) as temporary:
            temporary.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

    def write_history(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write history.csv; a column for every key of any row."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        with (
            atomic_write(self.history) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as file,
        ):
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
        """Write loss.png, unless it was written less than half a minute ago and ``force`` is false."""
        if not losses or not (force or time.monotonic() - self._plotted > _SECONDS_BETWEEN_PLOTS):
            return
        from rnnlab import plots  # here, since importing matplotlib takes half a second

        name = monitor.name
        values = {row["epoch"]: row[name] for row in rows if name in row}
        figure = plots.loss_curve(losses, values, metric=name, best=monitor.best_epoch)
        with atomic_write(self.loss) as temporary:
            plots.save(figure, temporary)
        self._plotted = time.monotonic()
