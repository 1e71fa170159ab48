"""Overrides from the command line, ``--set key.sub=value``, applied to a recipe's tables before the check."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from rnnlab.limits import RECIPE_DEPTH
from rnnlab.recipes.schema import RecipeError
from rnnlab.recipes.toml_text import check_depth, parse_toml


def with_overrides(tables: Mapping[str, Any], overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """A copy of ``tables`` with the overrides applied, and the dotted keys of the overrides.

    Raises
    ------
    RecipeError
        If an override is not ``key.sub=value``, its key leads to no table, or it undoes an earlier one.
    """
    if isinstance(overrides, str):
        raise RecipeError(f"overrides is {overrides!r}, expected a list of texts, key.sub=value each")
    copied = copy.deepcopy(dict(tables))
    keys: list[str] = []
    for override in overrides:
        key, equals, text = map(str.strip, override.partition("="))
        *path, name = key.split(".")
        if not equals or not all([*path, name]):
            raise RecipeError(f"--set: {override!r}, expected key.sub=value")
        if len(path) >= RECIPE_DEPTH:
            raise RecipeError(
                f"--set: {key[:40]!r} has {len(path) + 1:,} parts, expected at most {RECIPE_DEPTH}"
            )
        _check_undone(key, keys)
        table: Any = copied
        if path[:1] == ["stage"] and not copied.get("stage"):
            raise RecipeError(
                f'--set: {key}: the recipe has no stages; --set "stage=[{{num_epochs=4}}]" makes one'
            )
        for step in path:
            table = _inside(table, step, key)
        table[_index(table, name, key)] = literal(text)
        keys.append(key)
    return copied, keys


def key_of(override: str) -> str:
    """The dotted key of an override."""
    return override.partition("=")[0].strip()


def _check_undone(key: str, earlier: Sequence[str]) -> None:
    """Raise RecipeError if a key, or a table that holds it, has been set before and would be replaced."""
    if key in earlier:
        raise RecipeError(f"--set: {key} is given twice, expected once")
    for each in earlier:
        if each.startswith(f"{key}."):
            raise RecipeError(f"--set: {key} replaces {each}, which is given before it: give {key} first")


def _inside(table: Any, step: str, key: str) -> Any:
    """The table or list to which one step of an override's key leads; a new table if there is none.

    There is none if the key is missing, None, or "none", as in the file of all keys.
    """
    if isinstance(table, dict) and table.get(step) in (None, "none"):
        table[step] = {}
    found = table[_index(table, step, key)]
    if not isinstance(found, dict | list):
        raise RecipeError(f"--set: {key}: {step} is {found!r}, expected a table")
    return found


def _index(table: Any, step: str, key: str) -> str | int:
    """The key of a table, or the index of a list, which overrides count from 1."""
    if isinstance(table, dict):
        return step
    if not step.isdecimal() or not 1 <= int(step) <= len(table):
        raise RecipeError(f"--set: {key}: there is no {step} here, expected a number from 1 to {len(table)}")
    return int(step) - 1


def literal(text: str) -> Any:
    """The value of a text in an override: a TOML value, or the text itself if it is not TOML.

    Raises
    ------
    RecipeError
        If it is nested too deeply.
    """
    try:
        tables = parse_toml(f"value = {text}", "--set")
    except RecipeError:
        raise
    except ValueError:
        return text
    check_depth(tables, "--set")
    return tables["value"] if len(tables) == 1 else text
