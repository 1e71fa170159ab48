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
from typing import Any, NamedTuple

from rnnlab import runs
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.training import load_checkpoint


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


def train_on(tables: dict[str, Any], path: Path) -> None:
    """Begin the run, or resume it."""
    if runs.holds_run(path):
        runs.resume(path, progress=False)
    else:
        runs.train(recipe_from_dict(tables), path, progress=False)


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


def kill_many(tables: dict[str, Any], folder: Path, count: int, seed: int) -> Kills:
    """Kill at least ``count`` times, in as many runs as that takes."""
    rng, reference = random.Random(seed), folder / "reference"
    train_on(tables, folder / "first")  # in this process: children inherit its modules and kernels
    started = time.monotonic()
    if os.waitpid(child(lambda: train_on(tables, reference)), 0)[1]:
        raise RuntimeError("the run that nobody kills has failed")
    seconds, expected = time.monotonic() - started, bits(reference)
    kills = ended = early = different = 0
    failed: list[str] = []
    while kills < count:
        path, ended = folder / f"run{ended}", ended + 1
        while True:
            process = child(lambda path=path: train_on(tables, path))
            time.sleep(rng.uniform(0, 0.7) * seconds)
            os.kill(process, signal.SIGKILL)
            status = os.waitpid(process, 0)[1]
            if os.WIFSIGNALED(status):
                kills += 1
                early += not runs.holds_run(path)
                continue
            if os.WEXITSTATUS(status):
                failed.append(f"{path.name} after {kills} kills")
            break
        different += not failed and bits(path) != expected
    return Kills(kills, ended, early, different, failed)
