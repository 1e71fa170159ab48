"""What the command line sets in a recipe: ``--set key.sub=value``, on its tables before they are checked."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from rnnlab.recipes.schema import ConfigError


def with_overrides(tables: Mapping[str, Any], overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """A copy of ``tables`` with the overrides in it, and the dotted keys of the overrides."""
    copied = copy.deepcopy(dict(tables))
    keys = []
    for override in overrides:
        key, equals, text = override.partition("=")
        *path, name = key.strip().split(".")
        if not equals or not all([*path, name]):
            raise ConfigError(f"--set: {override!r}, expected key.sub=value")
        table: Any = copied
        for step in path:
            table = _inside(table, step, key)
        table[_index(table, name, key)] = _literal(text.strip())
        keys.append(key.strip())
    return copied, keys


def check_reach(overrides: Sequence[str], stages: Any) -> None:
    """Raise ConfigError if a key is set for [training] and every stage has its own: nothing would change."""
    if not isinstance(stages, list) or not all(isinstance(stage, Mapping) for stage in stages):
        return  # which is said where the table is read
    for key in overrides:
        table, _, name = key.partition(".")
        if table == "training" and stages and all(_has(stage, name) for stage in stages):
            raise ConfigError(f"--set {key}: every stage has its own {name}, so set stage.1.{name} and so on")


def _inside(table: Any, step: str, key: str) -> Any:
    """The table or list that a step of an override's key leads to, a new table if there is none."""
    if isinstance(table, dict):
        table.setdefault(step, {})
    found = table[_index(table, step, key)]
    if not isinstance(found, dict | list):
        raise ConfigError(f"--set: {key}: {step} is {found!r}, expected a table")
    return found


def _index(table: Any, step: str, key: str) -> str | int:
    """A key of a table, or of a list the place, counted from 1 in overrides."""
    if isinstance(table, dict):
        return step
    if not step.isdecimal() or not 1 <= int(step) <= len(table):
        raise ConfigError(f"--set: {key}: found {step}, expected a number from 1 to {len(table)}")
    return int(step) - 1


def _literal(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _has(table: Any, key: str) -> bool:
    """Whether a table has a key, or a dotted one."""
    name, _, rest = key.partition(".")
    return isinstance(table, Mapping) and name in table and (not rest or _has(table[name], rest))
