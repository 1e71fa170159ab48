"""Changes of the ratios between two runs of the command that noise does not explain.

Each run has measured a ratio over several rounds. The confidence interval of a ratio is that of the
bootstrap: the rounds are drawn with replacement a thousand times, and 95 % of the draws are in the interval.
A change is printed where the intervals of the two runs do not overlap.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import table

_DRAWS = 1000
_COLUMNS = ("case", "compared with", "ratio before", "ratio now", "change")
_WIDTHS = (60, 20, 22, 22, 8)

Report = Mapping[str, Any]


def read(path: str) -> Report:
    """The report that ``--json`` wrote.

    Raises
    ------
    ValueError
        If there is none, or it has no rounds, like the reports of older versions.
    """
    try:
        report = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    try:
        rounds = [result["rounds"] for result in report["results"]]
        known = [(row["suite"], row["case"], row["rival"], row["ratio"]) for row in report["rows"]]
    except (KeyError, TypeError):
        raise ValueError(f"{path} is not a report of --json, or was written by an older version") from None
    if not known or not all(rounds):
        raise ValueError(f"{path} has no measurements")
    return report


def changes(before: Report, now: Report, *, markdown: bool) -> str:
    """A table of the cases in both reports, followed by the names of those in only one."""
    lines = [table.head("changes", markdown=markdown, columns=_COLUMNS, widths=_WIDTHS)]
    old, new = _by_name(before), _by_name(now)
    for name in new:
        if name in old:
            cells = [f"{name[0]}: {name[1]}", name[2], *_compared(old[name], new[name])]
            lines.append(table.line(cells, markdown=markdown, widths=_WIDTHS))
    lines.append("")
    if before["about"] != now["about"]:
        lines.append(f"before: {before['about']}")
    for text, names in (("not measured now", old.keys() - new), ("not measured before", new.keys() - old)):
        if names:
            lines.append(f"{text}: {', '.join(sorted({f'{suite}: {case}' for suite, case, _ in names}))}")
    return "\n".join(lines).rstrip()


def interval(rounds: Mapping[str, Sequence[float]], rival: str, *, on_gpu: bool) -> tuple[float, float]:
    """The limits of the 95 % bootstrap interval of a ratio."""
    rng = np.random.default_rng(0)
    typical = np.median if on_gpu else np.min
    least = {
        name: np.min(
            [typical(_drawn(rng, values), axis=1) for side, values in rounds.items() if _is(side, name)],
            axis=0,
        )
        for name in (table.OURS, rival)
    }
    low, high = np.quantile(least[rival] / least[table.OURS], [0.025, 0.975])
    return float(low), float(high)


def _drawn(rng: np.random.Generator, values: Sequence[float]) -> np.ndarray:
    return rng.choice(values, (_DRAWS, len(values)))


def _is(side: str, name: str) -> bool:
    return side.split()[0] == name


def _by_name(report: Report) -> dict[tuple[str, str, str], tuple[float, tuple[float, float] | None]]:
    """Ratio and interval by suite, case and rival; no interval for a mean, which has no rounds."""
    rounds = {(result["suite"], result["case"]): result["rounds"] for result in report["results"]}
    on_gpu = "rnnlab graphs" in {side for sides in rounds.values() for side in sides}
    found = {}
    for row in report["rows"]:
        suite, case, rival = row["suite"], row["case"], row["rival"].split()[0] if row["rival"] else ""
        of_case = rounds.get((suite, case), {})
        known = all(any(_is(side, name) for side in of_case) for name in (table.OURS, rival))
        found[suite, case, rival] = row["ratio"], interval(of_case, rival, on_gpu=on_gpu) if known else None
    return found


def _compared(
    before: tuple[float, tuple[float, float] | None], now: tuple[float, tuple[float, float] | None]
) -> Iterable[str]:
    texts = [
        f"{ratio:.2f}" + (f" ({limits[0]:.2f} to {limits[1]:.2f})" if limits else "")
        for ratio, limits in (before, now)
    ]
    if before[1] is None or now[1] is None or (now[1][0] <= before[1][1] and before[1][0] <= now[1][1]):
        return [*texts, ""]
    return [*texts, f"{now[0] / before[0] - 1:+.0%}"]
