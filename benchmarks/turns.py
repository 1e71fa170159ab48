"""Sides in processes of their own that take turns.

A suite is a module with ``CASES``, names of what to time, ``SIDES``, names of who does it, and
``prepare(side, case)``, which returns the function to time. The process of a side prepares, runs the function
a few times, and then, whenever it reads a line, runs it once more and answers with the seconds it took.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

_WARM_UP = 3


class Result(NamedTuple):
    """The times of one case."""

    name: str
    threads: int
    milliseconds: dict[str, float]  # the minimum over the rounds, by side

    @property
    def fastest_rival(self) -> float:
        """The best of the sides that are not ours."""
        return min(time for side, time in self.milliseconds.items() if side != "rnnlab")


def measure(suite: str, case: str, sides: Sequence[str], *, rounds: int, threads: int) -> Result:
    """Let the sides take turns."""
    processes = {side: _start(suite, side, case, threads) for side in sides}
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    try:
        for process in processes.values():
            _answer(process)  # ready
        for _ in range(rounds):
            for side, process in processes.items():
                process.stdin.write("go\n")  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
                seconds[side].append(float(_answer(process)))
    finally:
        for process in processes.values():
            process.communicate()
    return Result(f"{suite} {case}", threads, {side: 1000 * min(times) for side, times in seconds.items()})


def _start(suite: str, side: str, case: str, threads: int) -> subprocess.Popen[str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.turns", suite, side, case],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | dict.fromkeys(names, str(threads)),
        text=True,
    )


def _answer(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline()  # type: ignore[union-attr]
    if not line:
        raise RuntimeError(f"{' '.join(map(str, process.args))} ended early")  # type: ignore[arg-type]
    return line


def _serve(suite: str, side: str, case: str) -> None:
    work = importlib.import_module(f"benchmarks.{suite}").prepare(side, case)
    for _ in range(_WARM_UP):
        work()
    print("ready", flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        work()
        print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
