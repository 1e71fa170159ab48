"""Tables as Markdown, and the document that contains them.

In the document a table is between two markers. The text around them is written by hand and is not changed:

    <!-- table NAME -->
    ...
    <!-- end of table NAME -->
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks import results
from benchmarks.columns import Column
from benchmarks.trainings import Row, Table, Training

_MARKERS = re.compile(r"<!-- table (?P<name>\S+) -->\n.*?<!-- end of table (?P=name) -->\n", re.DOTALL)
_BEGIN = re.compile(r"<!-- (?:end of )?table (\S+) -->")


def markdown(table: Table, of: Path = results.RESULTS) -> str:
    """A table, followed by the trainings of reduced precision and by the entries without results.

    A number is the mean over the seeds, followed by the standard deviation if they differ, and by the number
    of seeds that have it if some lack it. A dash is an unknown number.
    """
    several = any(len(row.entries) > 1 for row in table.rows)
    lines = [["", *(["seeds"] if several else []), *table.columns]]
    lines.append(["---"] * len(lines[0]))
    untrained: list[str] = []
    unevaluated: list[str] = []
    for row in table.rows:
        found = _evaluated(row, of)
        for entry in row.entries:
            if entry.id not in found:
                lacking = [each.id for each in entry.members if results.load(each.id, of) is None]
                untrained += lacking
                unevaluated += [] if lacking else [entry.id]
        seeds = [_seeds(row, len(found))] if several else []
        lines.append(
            [row.label, *seeds, *(_cell(column, list(found.values())) for column in table.columns.values())]
        )
        if row.paper:
            lines.append(
                [f"*{table.paper}*", *([""] * several), *(_printed(row, name) for name in table.columns)]
            )
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    absent = {"trained": untrained, "evaluated for this table": unevaluated}
    notes = [f"Not {done} yet: {_named(entries)}." for done, entries in absent.items() if entries]
    if rounded := [each.id for each in table.trainings() if _is_rounded(each, of)]:
        notes.insert(0, f"Trained with [products in bfloat16](#products-in-bfloat16): {_named(rounded)}.")
    return "\n\n".join([text, " ".join(notes)]) if notes else text


def _is_rounded(training: Training, of: Path) -> bool:
    """Whether the model was trained with products in bfloat16."""
    known = results.load(training.id, of) or {}
    return bool(known.get("config", {}).get("training", {}).get("matmul") == "bfloat16")


def _named(entries: Sequence[str]) -> str:
    """The names of entries, with the seeds of one training grouped."""
    seeds: dict[str, list[str]] = {}
    for entry in dict.fromkeys(entries):
        name, _, seed = entry.partition("-seed")
        seeds.setdefault(name, []).append(seed)
    return ", ".join(
        f"{name} (seed{'s' * (len(some) > 1)} {', '.join(some)})" if some[0] else name
        for name, some in seeds.items()
    )


def _evaluated(row: Row, of: Path) -> dict[str, tuple[Mapping[str, Any], Mapping[str, float]]]:
    """Results and evaluation of the entries of a row that have them."""
    found = {}
    for entry in row.entries:
        known = results.load(entry.id, of)
        if known is not None and results.key_of(row.options) in known["evaluations"]:
            found[entry.id] = known, known["evaluations"][results.key_of(row.options)]
    return found


def _seeds(row: Row, found: int) -> str:
    return str(found) if found == len(row.entries) else f"{found} of {len(row.entries)}"


def _cell(column: Column, found: Sequence[tuple[Mapping[str, Any], Mapping[str, float]]]) -> str:
    numbers = [number for one in found if (number := column.find(*one)) is not None]
    if not numbers:
        return "-"
    text = f"{fmean(numbers):{column.form}}"
    if min(numbers) < max(numbers):
        text = f"{text} ± {stdev(numbers):{column.form}}"
    return text if len(numbers) == len(found) else f"{text} ({len(numbers)} of {len(found)})"


def _printed(row: Row, name: str) -> str:
    """The paper's number, as it is printed there."""
    return str(row.paper.get(name, ""))


def commands(table: Table, of: Path = results.RESULTS) -> str:
    """The commands that made the results of each row, and those of the trainings without results."""
    found = []
    for row in table.rows:
        for entry in row.entries:
            found += (results.load(entry.id, of) or {}).get("commands", ())
    for training in table.trainings():
        if results.load(training.id, of) is None:
            found.append(f"rnnlab {shlex.join(training.command())}")
    return "\n".join(f"    {command}" for command in dict.fromkeys(found))


def block(name: str, table: Table, of: Path = results.RESULTS) -> str:
    """The markers of a table and the text between them."""
    body = f"{table.title}:\n\n{markdown(table, of)}\n\n    python -m benchmarks.papers {name}"
    return f"<!-- table {name} -->\n{body}\n<!-- end of table {name} -->\n"


def rewritten(text: str, tables: Mapping[str, Table], of: Path = results.RESULTS) -> str:
    """The document with its tables rewritten from the results.

    Raises
    ------
    ValueError
        If a marker names no table, or has no partner.
    """
    names = [match["name"] for match in _MARKERS.finditer(text)]
    for name in _BEGIN.findall(text):
        if name not in tables:
            raise ValueError(
                f"rewritten: a marker names the table {name}, expected one of {', '.join(tables)}"
            )
        if names.count(name) != 1:
            raise ValueError(
                f"rewritten: expected one <!-- table {name} --> and one <!-- end of table {name} --> after it"
            )
    return _MARKERS.sub(lambda match: block(match["name"], tables[match["name"]], of), text)
