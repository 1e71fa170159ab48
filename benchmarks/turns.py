"""Sides that take turns, each in its own process.

A suite is a module with

    CASES                  the cases by name, with the argument of ``prepare`` for each, usually its sizes
    SIDES                  the sides; the first word of a name is the library, the rest one of its variants
    TARGETS                for each case, the first words of the rivals' names and the target against each
    prepare(side, sizes)   returns the work: a function to call repeatedly; tests compare its results

and optionally with

    measure(work)          run the work and return a number, smaller is better; its milliseconds by default
    UNIT                   the unit of that number, "ms" by default
    WARM_UP                number of calls of the work before it is measured (3)
    ROUNDS                 maximum number of turns of a side
    FRESH                  true: a new process for each turn, no warm-up; the first round does not count
    launcher(side)         words to put before the command of a side's process, such as those of mpirun
    lacking()              what this machine lacks for the suite, which is left out; None if nothing
    MEAN_TARGETS           targets of the geometric mean of the ratios, which is then printed
    conclude(results)      more rows, once all cases are measured

A suite that also runs on a GPU has ``GPU``, a :class:`benchmarks.gpu.Plan` of its cases, sides and targets
there, and its ``prepare`` takes the device, "cpu" or "gpu", as the last argument.
"""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import NamedTuple, TypeVar

from benchmarks.table import precision_of

# PyTorch, MKL, NumPy's OpenBLAS, numba and rnnlab all take their number of threads from one of these.
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RNNLAB_NUM_THREADS",
)


_AT_ONCE = 40  # processes on a GPU
_Key = TypeVar("_Key", bound=Hashable)


class Result(NamedTuple):
    """The measurements of one case."""

    suite: str
    case: str
    unit: str
    measured: dict[str, float]  # by side, over the rounds: the minimum, or on a GPU the median
    rounds: dict[str, list[float]]  # all numbers by side

    def best(self, name: str, precision: str = "") -> tuple[str, float]:
        """The side with the smallest number, and the number.

        Only sides whose names start with the word ``name`` and have that precision
        (:func:`benchmarks.table.precision_of`) count.
        """
        return min(
            (
                (side, value)
                for side, value in self.measured.items()
                if side.split()[0] == name and precision_of(side) == precision
            ),
            key=lambda pair: pair[1],
        )


def use_threads(threads: int) -> None:
    """Set the number of threads of all sides and of the libraries that this process imports later."""
    os.environ |= dict.fromkeys(THREADS, str(threads))


def processor() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def measure(name: str, case: str, sides: Sequence[str], *, rounds: int) -> Result:
    """Measure a case: the sides take turns."""
    suite = importlib.import_module(f"benchmarks.{name}")
    take_turns = _fresh_turns if getattr(suite, "FRESH", False) else _turns
    times = take_turns({side: [name, side, case, "cpu"] for side in sides}, _rounds(suite, rounds))
    return _result(suite, name, case, times, min)


def measure_on_gpu(name: str, cases: Sequence[tuple[str, Sequence[str]]], *, rounds: int) -> Iterator[Result]:
    """Let the sides of each case take turns on the GPU, case after case.

    The processes of several cases start together, because starting takes longer than the turns. A process
    that waits occupies only memory of the GPU.
    """
    suite = importlib.import_module(f"benchmarks.{name}")
    while cases:
        most = max(1, _AT_ONCE // len(cases[0][1]))
        now, cases = cases[:most], cases[most:]
        commands = {(case, side): [name, side, case, "gpu"] for case, sides in now for side in sides}
        with _started(commands) as processes:
            for case, sides in now:
                own = {side: processes[case, side] for side in sides}
                yield _result(suite, name, case, _take_turns(own, _rounds(suite, rounds)), median)


def _rounds(suite: ModuleType, rounds: int) -> int:
    return min(rounds, getattr(suite, "ROUNDS", rounds))


def _result(
    suite: ModuleType,
    name: str,
    case: str,
    times: Sequence[Mapping[str, float]],
    typical: Callable[[list[float]], float],
) -> Result:
    by_side = {side: [time[side] for time in times] for side in times[0]}
    measured = {side: typical(values) for side, values in by_side.items()}
    return Result(name, case, getattr(suite, "UNIT", "ms"), measured, by_side)


def _turns(commands: dict[str, list[str]], rounds: int) -> list[dict[str, float]]:
    with _started(commands) as processes:
        return _take_turns(processes, rounds)


def _take_turns(processes: Mapping[str, Process], rounds: int) -> list[dict[str, float]]:
    return [{side: process.turn() for side, process in processes.items()} for _ in range(rounds)]


def _fresh_turns(commands: dict[str, list[str]], rounds: int) -> list[dict[str, float]]:
    times: list[dict[str, float]] = []
    for _ in range(1 + rounds):
        times.append({})
        for side, command in commands.items():
            with _started({side: command}) as processes:
                times[-1][side] = processes[side].turn()
    return times[1:]  # the first may have read files from the disk, and compiled


@contextmanager
def _started(commands: Mapping[_Key, list[str]]) -> Iterator[dict[_Key, Process]]:
    """Start the processes and wait until all are ready."""
    processes = {side: Process(command) for side, command in commands.items()}
    try:
        for process in processes.values():
            process.answer()
        yield processes
    finally:
        for process in processes.values():
            process.end()


class Process:
    """The process of a side. Its standard error is shown only if it ends early."""

    def __init__(self, command: list[str]) -> None:
        self._command = [*_launcher(*command[:2]), sys.executable, "-m", "benchmarks.side", *command]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - a pipe would have to be read
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )

    def turn(self) -> float:
        """Let the side measure once."""
        self._process.stdin.write("go\n")  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]
        return float(self.answer())

    def answer(self) -> str:
        """The next line that it writes.

        Raises
        ------
        RuntimeError
            If there is none.
        """
        line = self._process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise RuntimeError(f"{' '.join(self._command)} ended early:\n{self._errors.read()}")
        return line

    def end(self) -> None:
        """Ask the process to end, and wait for it."""
        self._process.communicate("end\n")
        self._errors.close()


def _launcher(name: str, side: str) -> list[str]:
    suite = importlib.import_module(f"benchmarks.{name}")
    return suite.launcher(side) if hasattr(suite, "launcher") else []
