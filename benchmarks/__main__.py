"""``python -m benchmarks [NAME ...]``: time rnnlab and PyTorch in turns and print their ratio.

Each side runs in a process of its own with the same number of threads; the sides take turns, round by round,
so that a slow spell of the machine hits both. The ratio is that of the minima over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from benchmarks import captioning
from benchmarks.turns import Result, measure

SUITES = {"captioning": captioning}


def main() -> int:
    """Run the suites that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"some of {', '.join(SUITES)}; all if left out"
    )
    parser.add_argument("--rounds", type=int, default=10, help="turns of each side (10)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each side (all processors)")
    parser.add_argument("--json", metavar="FILE", help="write the results")
    options = parser.parse_args()
    for name in options.names:
        if name not in SUITES:
            parser.error(f"NAME is {name!r}, expected some of {', '.join(SUITES)}")
    results = []
    print(
        f"{platform.processor() or platform.machine()}, {options.threads} threads, {options.rounds} rounds\n"
    )
    print(f"{'benchmark':<44}{'rnnlab':>10}{'PyTorch':>10}{'ratio':>8}")
    for name in options.names or SUITES:
        for case in SUITES[name].CASES:
            result = measure(name, case, SUITES[name].SIDES, rounds=options.rounds, threads=options.threads)
            results.append(result)
            print(_row(result), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps([result._asdict() for result in results], indent=1) + "\n")
    return 0


def _row(result: Result) -> str:
    ours, theirs = result.milliseconds["rnnlab"], result.fastest_rival
    return f"{result.name:<44}{ours:8.1f}ms{theirs:8.1f}ms{theirs / ours:7.2f}x"


if __name__ == "__main__":
    sys.exit(main())
