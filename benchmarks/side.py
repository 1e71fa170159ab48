"""The process of one side, ``python -m benchmarks.side SUITE SIDE CASE DEVICE``; ``turns`` starts it.

It prepares the work, runs it a few times and writes "ready". Each time that it reads "go", it measures the
work and writes the number. It ends when it reads "end", since mpirun does not always pass on the end of the
input. It imports almost nothing, because a suite may time imports.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable

_TURN = 0.2  # seconds


def milliseconds(work: Callable[[], object]) -> float:
    """The minimum time of the work, over as many runs as fill a turn.

    In a training loop the caches hold the loop's own data; after other sides' turns they do not.
    """
    began, fastest = time.perf_counter(), float("inf")
    while time.perf_counter() - began < _TURN:
        started = time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - started)
    return 1000 * fastest


def main(name: str, side: str, case: str, device: str) -> None:
    suite = importlib.import_module(f"benchmarks.{name}")
    if device == "gpu":
        from benchmarks import gpu

        work, measure = gpu.begin(suite, side, case)
    else:
        work, measure = suite.prepare(side, suite.CASES[case]), getattr(suite, "measure", milliseconds)
    fresh = device == "cpu" and getattr(suite, "FRESH", False)
    for _ in range(0 if fresh else getattr(suite, "WARM_UP", 3)):
        work()
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "end\n":
            break
        print(measure(work), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
