"""Faults of long runs: kills at random moments, damaged files, and memory that must not grow.

``python -m tests.faults`` does all of it at full length, in an hour on one core, and prints the tables of
docs/reliability.md. ``--share 0.01`` does a hundredth.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from .formats import formats
from .kills import kill_many
from .mutations import OUTCOMES, damage_many
from .small_runs import recipes
from .soak import soak

_KILLS, _FILES, _STEPS = 1_000, 100_000, 100_000


def main() -> int:
    """Run all, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the full numbers")
    share = parser.parse_args().share
    with tempfile.TemporaryDirectory() as name, patch("rnnlab.training.run_directory.RunDirectory.plot"):
        folder = Path(name)
        tables = recipes(folder)
        print(
            "| recipe | kills | runs | before a checkpoint | other bits | failed |\n|---|---|---|---|---|---|"
        )
        for number, (recipe, table) in enumerate(tables.items()):
            (where := folder / f"runs{number}").mkdir()
            with redirect_stdout(io.StringIO()):
                kills = kill_many(table, where, max(1, round(share * _KILLS / len(tables))), seed=number)
            print(f"| {recipe} | {' | '.join(map(str, kills[:4]))} | {len(kills.failed)} |", flush=True)
        first = next(iter(tables.values()))
        with redirect_stdout(io.StringIO()):
            files = formats(folder, first)
        columns = [*OUTCOMES.values(), "no end after 5 s", "crash"]
        print(f"\n| format | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
        for format_name, each in files.items():
            found = damage_many(each, max(1, round(share * _FILES / len(files))), seed=1)
            print(
                f"| {format_name} | {' | '.join(str(found.counts[column]) for column in columns)} |",
                flush=True,
            )
            for kind, example in found.examples.items():
                print(f"{format_name}: {kind}: {example}", file=sys.stderr)
        with redirect_stdout(io.StringIO()):
            seen = soak(first, folder, max(40, round(share * _STEPS)))
        print("\n| steps | MB | open files | threads |\n|---|---|---|---|")
        for used in (seen[5], seen[len(seen) // 2], seen[-1]):
            print(f"| {used.steps:,} | {used.megabytes:.0f} | {used.files} | {used.threads} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
