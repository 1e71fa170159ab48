"""The results of the papers' tables: a small JSON file for each training, in ``benchmarks/results``.

    training         name and seed, ``NAME-seedN``
    rnnlab_version   version of the library that trained the model
    commands         commands that repeat the training
    config           the complete recipe of the training
    num_parameters, peak_megabytes, cpu_minutes
    history          a row for each epoch
    evaluations      the scores, by the options of rnnlab evaluate

The tables are printed from these files alone, on a machine without data and runs. The same results give the
same bytes: numbers have six digits, and there are no dates.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnlab.files import atomic_text

RESULTS = Path(__file__).parent / "results"

_DIGITS = 6


def load(entry: str, results: Path = RESULTS) -> dict[str, Any] | None:
    """The results of an entry of the tables; None if there are none."""
    path = results / f"{entry}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def store(entry: str, content: Mapping[str, Any], results: Path = RESULTS) -> None:
    """Write the results of an entry, with one line for each epoch and each evaluation."""
    with atomic_text(results / f"{entry}.json") as file:
        file.write(_text(rounded(content)) + "\n")


def key_of(options: Sequence[str]) -> str:
    """The key of an evaluation: the options of rnnlab evaluate."""
    return " ".join(options)


def read_history(path: Path) -> list[dict[str, float]]:
    """The epochs of a history.csv; a metric that an epoch lacks is left out."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: float(text) for name, text in row.items() if text} for row in csv.DictReader(file)]


def rounded(value: Any) -> Any:
    """The value with its numbers as :func:`store` writes them."""
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    if isinstance(value, float):
        short = float(f"{value:.{_DIGITS}g}")
        return int(short) if short.is_integer() and abs(short) < 10**_DIGITS else short
    return value


def _text(value: Any, depth: int = 0) -> str:
    """JSON with a line for each key of the first two levels and for each item of a list."""
    if depth == 2 or not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    indent, brackets = " " * (depth + 1), "{}" if isinstance(value, dict) else "[]"
    items = value.items() if isinstance(value, dict) else (("", each) for each in value)
    lines = [
        f"{indent}{json.dumps(key) + ': ' if key or isinstance(value, dict) else ''}{_text(each, depth + 1)}"
        for key, each in items
    ]
    return f"{brackets[0]}\n" + ",\n".join(lines) + f"\n{' ' * depth}{brackets[1]}"
