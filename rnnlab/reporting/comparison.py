"""Runs side by side as text: facts, scores, curves, and what differs between their recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rnnlab.reporting.curves import Chart, charts
from rnnlab.reporting.differences import ABSENT, differences, equality_text
from rnnlab.reporting.record import Record, facts_side_by_side
from rnnlab.reporting.results import Results, notes_of, notes_on_runs, score_rows, splits_of
from rnnlab.reporting.seeds import TITLE, means_over_seeds
from rnnlab.reporting.significance import difference_rows

_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = "_.-=+*#@"  # for terminals that have no block characters
_WIDEST = 40  # maximum characters of a sparkline
_LONGEST = 40  # maximum characters of a recipe's value


def comparison_text(
    records: Sequence[Record],
    results: Sequence[Results] = (),
    *,
    bootstrap: int | None = None,
    encoding: str = "utf-8",
) -> str:
    """Runs side by side.

    Parameters
    ----------
    records : sequence of Record
    results : sequence of Results, optional
        One for each record; without them there are no scores.
    bootstrap : int, optional
        The number of samples of a paired bootstrap of the scores of each run against those of the first.
    encoding : str
        The encoding of the output, which determines the characters of sparklines.
    """
    names = [record.name for record in records]
    parts = [_table("Runs", names, facts_side_by_side(records))]
    if rows := score_rows(results):
        shown = [(name, [value or ABSENT for value in values]) for name, values in rows]
        parts.append(_table(f"Scores of {splits_of(results)}", names, shown))
    if means := means_text(records, results):
        parts.append(means)
    remarks: list[str] = []
    if bootstrap is not None:
        found, remarks = difference_rows(names, results, bootstrap)
        if found:
            parts.append(_table(f"Differences from {names[0]}", names[1:], found))
    blocks = _blocks(encoding)
    parts += [_chart(chart, names, blocks) for chart in charts(records) if chart.is_validation]
    if len(records) > 1:
        parts.append(differences_text(records))
    if notes := [*notes_on_runs(records, results), *notes_of(names, results), *remarks]:
        parts.append(_notes(notes))
    return "\n\n".join(parts)


def differences_text(records: Sequence[Record]) -> str:
    """The keys on which the recipes of runs differ."""
    rows = [(each.key, [_short(value) for value in each.values]) for each in differences(records)]
    if not rows:
        return equality_text(records)
    return _table("Recipes: what differs", [record.name for record in records], rows)


def means_text(records: Sequence[Record], results: Sequence[Results]) -> str:
    """The means over seeds, a line for each model; empty if no two runs differ only in their seed."""
    columns, rows = means_over_seeds(records, results)
    return _table(TITLE, columns, rows) if rows else ""


def states_text(
    states: Mapping[str, str],
    records: Sequence[Record] = (),
    results: Sequence[Results] = (),
    *,
    notes: Sequence[str] = (),
) -> str:
    """The states and the scores of runs, a line for each run.

    Parameters
    ----------
    states : mapping of str to str
        The state of each run, such as "finished", by its name.
    records : sequence of Record
        The records of the runs that have scores.
    results : sequence of Results, optional
        One for each record; without them there are no scores.
    notes : sequence of str
        Shown below, before the notes on the scores.
    """
    names, scores = [record.name for record in records], score_rows(results)
    found = {name: [values[k] for _, values in scores] for k, name in enumerate(names)}
    empty = [""] * len(scores)
    rows = [(name, [state, *found.get(name, empty)]) for name, state in states.items()]
    title = f"Scores of {splits_of(results)}" if scores else "Runs"
    parts = [_table(title, ["state", *(name for name, _ in scores)], rows)]
    if means := means_text(records, results):
        parts.append(means)
    if notes := [*notes, *notes_on_runs(records, results), *notes_of(names, results)]:
        parts.append(_notes(notes))
    return "\n\n".join(parts)


def _notes(notes: Sequence[str]) -> str:
    return "\n".join(f"note: {note}" for note in notes)


def _table(title: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A title, the names of the runs, and a line for each row."""
    first = max(len(title), *(len(key) for key, _ in rows))
    widths = [max(len(name), *(len(values[k]) for _, values in rows)) for k, name in enumerate(names)]
    lines = [(title, names), *rows]
    return "\n".join(
        "  ".join([key.ljust(first), *(v.rjust(w) for v, w in zip(values, widths, strict=True))])
        for key, values in lines
    )


def _chart(chart: Chart, names: Sequence[str], blocks: str) -> str:
    """A line for each curve: its first value, a sparkline of the epochs, the last value, and the best."""
    bounds = [value for curve in chart.curves for value in curve.values.values()]
    labels = [f"{names[curve.run]}  {curve.label}".rstrip() for curve in chart.curves]
    width = max(map(len, labels))
    lines = [f"{chart.heading}, by epoch"]
    for label, curve in zip(labels, chart.curves, strict=True):
        values = list(curve.values.values())
        drawn = _sparkline(values, min(bounds), max(bounds), blocks)
        line = f"  {label:<{width}}  {values[0]:9.4g} {drawn} {values[-1]:.4g}"
        best = "" if curve.best is None else f"   best {curve.values[curve.best]:.4g} in epoch {curve.best}"
        lines.append(line + best)
    return "\n".join(lines)


def _sparkline(values: Sequence[float], least: float, greatest: float, blocks: str) -> str:
    """A character for each value, or for the mean of several, on a scale from ``least`` to ``greatest``."""
    parts = np.array_split(np.asarray(values), min(_WIDEST, len(values)))
    scale = (len(blocks) - 1) / ((greatest - least) or 1.0)
    return "".join(blocks[round((float(part.mean()) - least) * scale)] for part in parts)


def _blocks(encoding: str) -> str:
    """The characters of sparklines that an encoding supports."""
    try:
        _BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return _PLAIN
    return _BLOCKS


def _short(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[:10]}...{value[13 - _LONGEST :]}"
