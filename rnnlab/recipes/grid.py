"""Grids of overrides: ``--set key=value,value`` gives every combination of single overrides."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from rnnlab.recipes.overrides import literal
from rnnlab.recipes.schema import RecipeError

_LONGEST_NAME = 200  # bytes
_CLOSING = {"[": "]", "{": "}", "'": "'", '"': '"'}


class Point(NamedTuple):
    """One combination.

    Attributes
    ----------
    name : str
        The values of those keys that have several, as a file name: "hidden_dim=256,cell_type=gru". Empty if
        no key has several values.
    overrides : tuple of str
        ``key=value`` for each key.
    """

    name: str
    overrides: tuple[str, ...]


def grid(settings: Sequence[str]) -> list[Point]:
    """Every combination of the values of all keys; the values of the last key change fastest.

    Parameters
    ----------
    settings : sequence of str
        ``key.sub=value`` or ``key.sub=value,value`` each. A comma within brackets, braces or quotation marks
        is part of a value, such as a TOML array.

    Raises
    ------
    RecipeError
        If a key has no values, an empty one, the same one twice, or is given twice, or if brackets or
        quotation marks are not closed; or if two combinations have the same name.
    """
    axes = _axes(settings)
    short = short_names([key for key, values in axes.items() if len(values) > 1])
    points = []
    for combination in itertools.product(*axes.values()):
        chosen = dict(zip(axes, combination, strict=True))
        name = ",".join(f"{short[key]}={_as_file_name(chosen[key])}" for key in short)
        points.append(Point(name, tuple(f"{key}={value}" for key, value in chosen.items())))
    names = [point.name for point in points]
    if too_long := next((name for name in names if len(name.encode()) > _LONGEST_NAME), None):
        raise RecipeError(
            f"--set: a combination has the name {too_long[:80]}..., expected at most {_LONGEST_NAME} bytes"
        )
    if doubled := [name for name in names if names.count(name) > 1]:
        raise RecipeError(
            f"--set: two combinations have the name {doubled[0]}, expected values that differ in a letter, "
            "a digit, or one of . _ + -"
        )
    return points


def split_values(text: str) -> list[str]:
    """The values of ``value,value``: split at commas outside of brackets, braces and quotation marks.

    Raises
    ------
    RecipeError
        If a bracket, a brace or a quotation mark is not closed.

    Examples
    --------
    >>> split_values("1e-3, 1e-4")
    ['1e-3', '1e-4']
    >>> split_values("[32, 64],[64, 128]")
    ['[32, 64]', '[64, 128]']
    """
    values, open_until, start = [], list[str](), 0
    for place, character in enumerate(text):
        may_open = not text[start:place].strip() or open_until[-1:] in (["]"], ["}"])
        if open_until and character == open_until[-1]:
            open_until.pop()
        elif may_open and character in _CLOSING:
            open_until.append(_CLOSING[character])
        elif character == "," and not open_until:
            values.append(text[start:place].strip())
            start = place + 1
    if open_until:
        raise RecipeError(f"--set: {text!r} has no closing {open_until[-1]}")
    return [*values, text[start:].strip()]


def _axes(settings: Sequence[str]) -> dict[str, list[str]]:
    """The values of each key."""
    axes: dict[str, list[str]] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        key, values = key.strip(), split_values(text)
        if not key or not equals:
            raise RecipeError(f"--set: {setting!r}, expected key.sub=value or key.sub=value,value")
        if key in axes:
            raise RecipeError(f"--set: {key} is given twice, expected all of its values in one: {key}=1,2")
        if len(values) > 1 and not all(values):
            raise RecipeError(f"--set: {setting!r} has an empty value, expected values around each comma")
        if twice := _equal(values):
            raise RecipeError(f"--set: {setting!r} has a value twice, {twice}, expected different ones")
        axes[key] = values
    return axes


def _equal(texts: Sequence[str]) -> str:
    """The first two texts with the same value, "1e-3 and 0.001" or "1 and 1"; empty if all differ."""
    values = [literal(text) for text in texts]
    for (one, first), (other, second) in itertools.combinations(zip(texts, values, strict=True), 2):
        if first == second and isinstance(first, bool) == isinstance(second, bool):
            return f"{one} and {other}"
    return ""


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """The last part of each key, or the whole key if several end in the same part."""
    ends = [key.rpartition(".")[2] for key in keys]
    return {key: end if ends.count(end) == 1 else key for key, end in zip(keys, ends, strict=True)}


def _as_file_name(value: str) -> str:
    """A value as a file name: * becomes "all", ! becomes "not", and unusual characters an underscore."""
    return re.sub(r"[^\w.+-]+", "_", value.replace("*", "all").replace("!", "not ")).strip("_")
