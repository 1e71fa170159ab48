"""The differences between the recipes of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rnnlab.reporting.record import UNKNOWN, Record

ABSENT = "-"  # the value of a key that a recipe does not have


class DifferingKey(NamedTuple):
    """A key whose value differs between recipes."""

    key: str
    values: list[str]  # one for each run


def differences(records: Sequence[Record]) -> list[DifferingKey]:
    """The keys of the recipes whose values differ, in the order of the recipes.

    For recipes of different tasks, only the keys that all of them have are compared. A run without a recipe
    is not compared; its values are absent.
    """
    tables = [None if record.recipe is None else dict(recipe_rows(record)) for record in records]
    compared = [table for table in tables if table is not None]
    keys = dict.fromkeys(key for table in compared for key in table)
    if len({record.task for record in records} - {UNKNOWN}) > 1:
        keys = {key: None for key in keys if all(key in table for table in compared)}
    differing = [key for key in keys if len({table.get(key, ABSENT) for table in compared}) > 1]
    return [DifferingKey(key, [(table or {}).get(key, ABSENT) for table in tables]) for key in differing]


def equality_text(records: Sequence[Record]) -> str:
    """The sentence about recipes that do not differ."""
    missing = [record.name for record in records if record.recipe is None]
    if not missing:
        return "The recipes are equal."
    others = " The other recipes are equal." if len(records) - len(missing) > 1 else ""
    return f"Not trained by a recipe: {', '.join(missing)}.{others}"


def recipe_rows(record: Record) -> list[tuple[str, str]]:
    """All keys of a recipe with their values; none without a recipe."""
    return list(_flat(record.recipe or {}))


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The keys of a table and of the tables in it, dotted, with their values as text."""
    for key, value in table.items():
        if key == "stage" and not value:
            continue
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            value = {str(number): item for number, item in enumerate(value, start=1)}
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _text(value)


def _text(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)
