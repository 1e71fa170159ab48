"""Charts as positions on axes, in percent of width and height, from which the template draws SVG.

The drawing is stretched to its place on the page. Labels are text of the page and are not stretched, so that
they stay readable on a narrow screen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rnnlab.reporting.curves import Chart, Curve

NUM_COLORS = 8  # number of colours in style.css
_MOST_DOTS = 60  # maximum number of points drawn as dots; longer curves are lines only


class Tick(NamedTuple):
    """A label of an axis."""

    place: float  # in percent, from the left or from the top
    text: str


class Line(NamedTuple):
    """A curve as the template draws it."""

    name: str
    color: int
    is_training: bool
    path: str
    dots: str  # a path of points
    best: str  # likewise, of the best epoch


class Plot(NamedTuple):
    """A chart as the template draws it."""

    heading: str
    summary: str  # alternative text for the picture
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    lines: list[Line]
    rows: list[tuple[int, list[str]]]  # the table: an epoch, and a value for each line
    notes: list[str]


def plot_of(chart: Chart, names: list[str]) -> Plot:
    """A chart on its axes. ``names`` are those of the runs; they are not shown if there is only one run.

    The axes include the value of every epoch. Larger losses of the first iterations are cut off.
    """
    notes = list(chart.notes)
    values = [value for curve in chart.curves for value in curve.values.values()]
    x_points = [x for curve in chart.curves for x, _ in curve.points]
    least = min(y for curve in chart.curves for _, y in curve.points)
    y_values = _round_values(min(least, *values), max(values))
    left, right = 0.0 if min(x_points) < 1 else 1.0, max(x_points)
    if left == right:
        left, right = left - 0.5, right + 0.5
    x_values = _ticks(left, right, integer=True, nbins=8, min_n_ticks=1)

    def across(x: float) -> float:
        return round(100 * (x - left) / (right - left), 2)

    def down(y: float) -> float:
        return round(100 * (y_values[-1] - y) / (y_values[-1] - y_values[0]), 2)

    lines = []
    for curve in chart.curves:
        shown = _below(y_values[-1], curve.points)
        if len(shown) < len(curve.points):
            notes.append(f"The first losses of {_name(curve, names)} are above the axis.")
        points = [(across(x), down(y)) for x, y in shown]
        is_training = curve.label == "training"
        lines.append(
            Line(
                _name(curve, names),
                curve.run % NUM_COLORS if len(names) > 1 else int(is_training),
                is_training,
                "M" + " L".join(f"{x:g} {y:g}" for x, y in points),
                "" if is_training or len(points) > _MOST_DOTS else _dots(points),
                _dots([(across(x), down(y)) for x, y in shown if x == curve.best]),
            )
        )
    epochs = sorted({epoch for curve in chart.curves for epoch in curve.values})
    return Plot(
        chart.heading,
        _summary(chart, names),
        [Tick(across(x), f"{x:g}") for x in x_values if left <= x <= right],
        [Tick(down(y), f"{y:g}") for y in y_values],
        lines,
        [(epoch, [_number(curve.values.get(epoch)) for curve in chart.curves]) for epoch in epochs],
        notes,
    )


def _round_values(least: float, greatest: float) -> list[float]:
    """Round values, evenly spaced, the first at most ``least`` and the last at least ``greatest``."""
    if least == greatest:
        reach = abs(least) / 2 or 1.0
        least, greatest = least - reach, greatest + reach
    return _ticks(least, greatest, nbins=5, steps=[1, 2, 2.5, 5, 10])


def _ticks(least: float, greatest: float, **options: Any) -> list[float]:
    """Values that matplotlib would label on an axis; options as those of its MaxNLocator."""
    from matplotlib.ticker import MaxNLocator  # importing matplotlib takes half a second

    return [float(value) for value in MaxNLocator(**options).tick_values(least, greatest)]


def _below(top: float, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points from the first one within the axes on; later points above the axes are moved down."""
    first = next((k for k, (_, y) in enumerate(points) if y <= top), len(points))
    return [(x, min(y, top)) for x, y in points[first:]]


def _dots(points: list[tuple[float, float]]) -> str:
    """Lines of length zero, whose round ends appear as circles of the same size at any scale."""
    return " ".join(f"M{x:g} {y:g}h0" for x, y in points)


def _name(curve: Curve, names: list[str]) -> str:
    parts = [names[curve.run]] if len(names) > 1 or not curve.label else []
    return ", ".join([*parts, curve.label] if curve.label else parts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _summary(chart: Chart, names: list[str]) -> str:
    """A description of the curves in words."""
    parts = []
    for curve in chart.curves:
        values = list(curve.values.values())
        if values:
            best = "" if curve.best is None else f", best in epoch {curve.best}"
            parts.append(f"{_name(curve, names)} from {values[0]:.4g} to {values[-1]:.4g}{best}")
    return f"{chart.heading} over epochs: {'; '.join(parts)}."
