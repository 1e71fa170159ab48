"""Rows of the table: our number and a rival's, their ratio, the target, and whether it is met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from benchmarks.turns import Result

OURS = "rnnlab"
PRECISIONS = ("tf32x3",)  # words in the names of our sides that have rows of their own


class AtMost(float):
    """An upper limit for our own number. A target that is a plain number is a lower limit for the ratio."""


class Row(NamedTuple):
    """A row of the table."""

    suite: str
    case: str
    unit: str
    ours: float | None  # None in a mean of ratios
    rival: str
    theirs: float | None
    ratio: float  # theirs over ours: above 1, rnnlab needs less
    target: float | None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        if isinstance(self.target, AtMost):
            return self.ours is not None and self.ours <= self.target
        return self.ratio >= self.target

    def as_dict(self) -> dict[str, Any]:
        """The row as an object for JSON."""
        return self._asdict() | {"target": self._target(), "met": self.met}

    def cells(self) -> list[str]:
        """The texts of the columns."""
        theirs = f"{self._number(self.theirs)} {self.rival}".strip()
        met = {None: "", True: "yes", False: "NO"}[self.met]
        return [self.case, self._number(self.ours), theirs, f"{self.ratio:.2f}", self._target(), met]

    def _number(self, value: float | None) -> str:
        return "" if value is None else f"{value:.{2 if value < 10 else 1}f} {self.unit}".strip()

    def _target(self) -> str:
        if isinstance(self.target, AtMost):
            return f"at most {self._number(self.target)}"
        return "" if self.target is None else f"{self.target:.2f}"


COLUMNS = ("case", OURS, "compared with", "ratio", "target", "met")
_WIDTHS = (52, 12, 28, 8, 18, 4)


def line(cells: Iterable[str], *, markdown: bool, widths: Sequence[int] = _WIDTHS) -> str:
    """A line of the table."""
    if markdown:
        return f"| {' | '.join(cells)} |"
    return "".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def head(
    title: str, *, markdown: bool, columns: Sequence[str] = COLUMNS, widths: Sequence[int] = _WIDTHS
) -> str:
    """The lines above the rows of a suite or of another table, whose title is that of the first column."""
    if markdown:
        rule = "|---" * len(columns) + "|"
        return f"\n### {title}\n\n{line(columns, markdown=True)}\n{rule}"
    return "\n" + line((title, *columns[1:]), markdown=False, widths=widths)


def summary(rows: Sequence[Row], *, markdown: bool) -> str:
    """All rows that have a target, in one table, and how many of them miss it."""
    columns, widths = ("work", "compared with", "ratio", "target", "met"), (68, 20, 8, 18, 4)
    aimed = [row for row in rows if row.met is not None]
    lines = [head("summary", markdown=markdown, columns=columns, widths=widths)] if aimed else []
    for row in aimed:
        _, ours, _, ratio, target, met = row.cells()
        reached = ours if isinstance(row.target, AtMost) else ratio
        cells = (f"{row.suite}: {row.case}", row.rival, reached, target, met)
        lines.append(line(cells, markdown=markdown, widths=widths))
    missed = sum(not row.met for row in aimed)
    return "\n".join([*lines, f"\n{len(aimed)} targets, {missed} missed"])


def precision_of(side: str) -> str:
    """The precision of products in the name of a side; empty for the precision of the case."""
    return next((word for word in side.split() if word in PRECISIONS), "")


def rows(result: Result, targets: Mapping[str, float | None]) -> list[Row]:
    """A row for each rival of a case, and one without a target for each other precision of ours."""
    found = []
    for precision in sorted(set(map(precision_of, result.measured))):
        _, ours = result.best(OURS, precision)
        case = f"{result.case}, rnnlab in {precision}" if precision else result.case
        for name, target in targets.items():
            rival, theirs = result.best(name)
            least = None if precision else target
            found.append(Row(result.suite, case, result.unit, ours, rival, theirs, theirs / ours, least))
    return found


def means(cases: Sequence[Row], targets: Mapping[str, float]) -> list[Row]:
    """The geometric means of the ratios, by rival and by the part of the cases' names before a colon."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for row in cases:
        family, colon, _ = row.case.partition(":")
        rival = row.rival.split()[0]
        if rival in targets:
            ratios.setdefault((family if colon else "", rival), []).append(row.ratio)
    return [
        Row(
            cases[0].suite,
            f"{family}: geometric mean".removeprefix(": "),
            "",
            None,
            rival,
            None,
            exp(sum(map(log, found)) / len(found)),
            targets[rival],
        )
        for (family, rival), found in ratios.items()
    ]
