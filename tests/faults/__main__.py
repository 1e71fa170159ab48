"""Faults of long runs: kills at random moments, damaged files, and memory that must not grow.

``python -m tests.faults`` does all of it at full length, in half an hour on one core, and prints the
tables. ``--only files steps`` makes these. ``--report`` also writes them into docs/reliability.md.
``--share 0.01`` does a hundredth.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ..training.mpirun import lacks_mpi
from .formats import formats
from .killed_ranks import Job
from .kills import Child, kill_many
from .mutations import OUTCOMES, damage_many
from .small_runs import recipes
from .soak import soak

_KILLS, _RANK_KILLS, _FILES, _STEPS = 1_000, 50, 100_000, 100_000
_PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def kills(recipe_tables: dict[str, dict[str, Any]], folder: Path, share: float) -> Iterator[str]:
    """A row for each recipe, and one for two ranks."""
    yield from head("recipe", "kills", "runs", "before a checkpoint", "other bits", "failed")
    works = [(recipe, table, Child, _KILLS / len(recipe_tables)) for recipe, table in recipe_tables.items()]
    recipe, table = next(iter(recipe_tables.items()))
    if lacks_mpi:
        print("no row for two ranks: it needs the extra mpi and an MPI library", file=sys.stderr)
    else:
        works.append((f"{recipe}, one of two ranks", table, Job, _RANK_KILLS))
    for number, (name, each, start, count) in enumerate(works):
        (where := folder / f"runs{number}").mkdir()
        with redirect_stdout(io.StringIO()), without_pictures():
            found = kill_many(each, where, shared(count, share), seed=number, start=start)
        yield row(name, *found[:4], len(found.failed))
        for failure in found.failed:
            print(f"{name}: {failure}", file=sys.stderr)


def damaged_files(table: dict[str, Any], folder: Path, share: float) -> Iterator[str]:
    """A row for each format."""
    columns = [*OUTCOMES.values(), "no end after 5 s", "crash"]
    yield from head("format", *columns)
    with redirect_stdout(io.StringIO()), without_pictures():
        files = formats(folder, table)
    for name, each in files.items():
        with without_pictures():
            found = damage_many(each, shared(_FILES / len(files), share), seed=1)
        yield row(name, *(found.counts[column] for column in columns))
        for kind, example in found.examples.items():
            print(f"{name}: {kind}: {example}", file=sys.stderr)


def steps(table: dict[str, Any], folder: Path, share: float) -> Iterator[str]:
    """Three rows: soon after the beginning, in the middle, and at the end."""
    yield from head("steps", "MB", "open files", "threads")
    with redirect_stdout(io.StringIO()):
        seen = soak(table, folder, wanted := max(40, shared(_STEPS, share)))
    if seen[-1].steps < 0.9 * wanted:
        raise SystemExit(f"stopped after {seen[-1].steps:,} of {wanted:,} steps")
    for used in (seen[5], seen[len(seen) // 2], seen[-1]):
        yield row(f"{used.steps:,}", f"{used.megabytes:.0f}", used.files, used.threads)


def without_pictures() -> AbstractContextManager[object]:
    """A context in which runs draw no pictures, which take most of the time of short ones."""
    return patch("rnnlab.training.run_directory.RunDirectory.plot")


def head(*columns: str) -> list[str]:
    """The first lines of a table."""
    return [row(*columns), "|---" * len(columns) + "|"]


def row(*cells: object) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def shared(count: float, share: float) -> int:
    """A share of a count, at least 1."""
    return max(1, round(share * count))


TABLES = {
    "kills": kills,
    "files": lambda recipe_tables, *rest: damaged_files(next(iter(recipe_tables.values())), *rest),
    "steps": lambda recipe_tables, *rest: steps(next(iter(recipe_tables.values())), *rest),
}


def write(name: str, lines: list[str]) -> None:
    """Write a table between its two marks in the page."""
    marked = re.compile(f"(?<=<!-- {name} -->\n).*(?=<!-- end of {name} -->)", re.DOTALL)
    page = _PAGE.read_text(encoding="utf-8")
    assert marked.search(page), f"{_PAGE} has no marks of {name}"
    text = "\n".join(lines)
    _PAGE.write_text(marked.sub(lambda _: f"{text}\n", page), encoding="utf-8")


def main() -> int:
    """Make the tables, print them, and write them."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=TABLES, default=[*TABLES], help="the tables (all)")
    parser.add_argument("--share", type=float, default=1.0, help="of the full numbers (1)")
    parser.add_argument("--report", action="store_true", help="write the tables into docs/reliability.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        recipe_tables = recipes(folder)
        for name in options.only:
            lines = []
            for line in TABLES[name](recipe_tables, folder, options.share):
                print(line, flush=True)
                lines.append(line)
            print()
            if options.report:
                write(name, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
