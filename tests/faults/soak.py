"""Many training steps in one process: memory, open files and threads must not grow."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

from rnnlab import runs
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.training import Callback, load_checkpoint


class Used(NamedTuple):
    """What the process uses."""

    steps: int
    megabytes: float  # resident
    files: int
    threads: int


def used(steps: int) -> Used:
    """What the process uses now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = len(os.listdir("/proc/self/fd"))
    return Used(steps, pages * os.sysconf("SC_PAGE_SIZE") / 1e6, files, threading.active_count())


class Watch(Callback):
    """Notes what the process uses every so many iterations."""

    def __init__(self, every: int) -> None:
        self.every, self.seen = every, [used(0)]

    def on_step(self, solver: Any, loss: Any, grads: Any) -> None:
        """See the class."""
        if solver.iteration % self.every == 0:
            self.seen.append(used(solver.iteration))


def soak(tables: dict[str, Any], folder: Path, steps: int) -> list[Used]:
    """Train for about this many steps, with pictures and checkpoints; what the process used at 20 moments."""
    watch = Watch(max(1, steps // 20))
    training = tables["training"] | {"batch_size": 1, "checkpoint_every": 50, "num_epochs": 1}
    run = runs.train(recipe_from_dict(tables | {"training": training}), folder / "start", progress=False)
    training["num_epochs"] = -(-steps // len(load_checkpoint(run.directory / "last.h5").losses))
    recipe = recipe_from_dict(tables | {"training": training})
    runs.train(recipe, folder / "soak", progress=False, callbacks=[watch])
    return watch.seen
