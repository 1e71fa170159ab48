"""SIGKILL at random moments of training and of writing checkpoints; every run ends with the same bits.

A child process trains, or resumes, and is killed after a random time, again and again until the run ends. Its
last checkpoint is compared with that of the run which was never killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rnnlab import runs
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.training import load_checkpoint
from rnnlab.training.run_directory import holds_run


class Kills(NamedTuple):
    """What came of a number of kills of one recipe."""

    kills: int  # while a child trained
    runs: int  # that were trained to their end
    before_a_checkpoint: int  # kills before the first checkpoint: the run began again
    different: int  # runs that ended with other bits
    failed: list[str]  # how children failed that were not killed


def child(work: Callable[[], None]) -> int:
    """Start a process that does some work and ends with status 0, or 1 after an exception."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def train_on(tables: dict[str, Any], path: Path, communicator: Any = None) -> None:
    """Begin the run, or resume it."""
    if holds_run(path):
        runs.resume(path, progress=False, communicator=communicator)
    else:
        runs.train(recipe_from_dict(tables), path, progress=False, communicator=communicator)


class Training(Protocol):
    """A run that trains elsewhere, from its beginning or its last checkpoint on."""

    def kill(self, rng: random.Random) -> None:
        """End it by SIGKILL, if it has not ended."""
        ...

    def wait(self) -> int:
        """Its exit status when it has ended; the negative number of the signal that ended it."""
        ...


class Child:
    """The :class:`Training` of a process that inherits the modules of this one."""

    def __init__(self, tables: dict[str, Any], path: Path) -> None:
        self._process = child(lambda: train_on(tables, path))

    def kill(self, rng: random.Random) -> None:
        """See :meth:`Training.kill`."""
        os.kill(self._process, signal.SIGKILL)

    def wait(self) -> int:
        """See :meth:`Training.wait`."""
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])


def bits(path: Path) -> tuple[Any, ...]:
    """All of a finished run that training determines."""
    last = load_checkpoint(path / "last.h5")
    optimiser = {
        name: getattr(each, "tolist", lambda each=each: each)() for name, each in last.optimiser.items()
    }
    timeless = [
        {name: each for name, each in row.items() if name not in ("seconds", "tokens_per_second")}
        for row in last.history
    ]
    state = {name: last.solver[name] for name in ("order", "rng", "schedule", "monitor")}
    return last.parameters.flat.tolist(), last.losses.tolist(), optimiser, timeless, state


def kill_many(
    tables: dict[str, Any],
    folder: Path,
    count: int,
    seed: int,
    start: Callable[[dict[str, Any], Path], Training] = Child,
) -> Kills:
    """Kill at least ``count`` times, in as many runs as that takes."""
    rng, reference = random.Random(seed), folder / "reference"
    train_on(tables, folder / "first")  # in this process: children inherit its modules and kernels
    training, started = start(tables, reference), time.monotonic()
    if training.wait():
        raise RuntimeError("the run that nobody kills has failed")
    seconds, expected = time.monotonic() - started, bits(reference)
    kills = ended = early = different = 0
    failed: list[str] = []
    while kills < count:
        path, ended = folder / f"run{ended}", ended + 1
        while True:
            training = start(tables, path)
            time.sleep(rng.uniform(0, 0.7) * seconds)
            training.kill(rng)
            status = training.wait()
            if status == -signal.SIGKILL:
                kills += 1
                early += not holds_run(path)
                continue
            if status:
                failed.append(f"{path.name} after {kills} kills")
            break
        different += not failed and bits(path) != expected
    return Kills(kills, ended, early, different, failed)
