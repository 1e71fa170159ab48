"""TOML from files and from the command line, with limits on size and depth.

The time to parse a dotted key grows with the square of its length, and Python's stack limits how deeply
tables may be nested: see :mod:`rnnlab.limits`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from rnnlab.limits import RECIPE_BYTES, RECIPE_DEPTH, RECIPE_LINE
from rnnlab.reading import PathLike, read_limited
from rnnlab.recipes.schema import RecipeError


def read_toml(path: PathLike) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises
    ------
    OSError
        If the file is missing, is not a regular file, or cannot be read.
    ValueError
        If it is larger than the limit.
    RecipeError
        If it is not TOML, or as :func:`parse_toml`. The message names the file.
    """
    content = read_limited(path, RECIPE_BYTES, "a recipe")
    try:
        return parse_toml(content.decode("utf-8-sig"), str(path))
    except RecipeError:
        raise
    except ValueError as error:
        raise RecipeError(f"{path}: not a TOML file: {error}") from error


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The tables of a TOML text; errors name ``source``.

    Raises
    ------
    RecipeError
        If a line is longer than the limit, or tables are nested deeper than Python can follow.
    ValueError
        If it is not TOML.
    """
    for line in text.split("\n"):
        if len(line) > RECIPE_LINE:
            raise RecipeError(
                f"{source}: found a line of {len(line):,} characters, {line[:40]!r} and so on, "
                f"expected at most {RECIPE_LINE:,}"
            )
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _too_deep(source) from None


def check_depth(tables: Any, source: str) -> None:
    """Raise RecipeError if tables and arrays are nested deeper than the limit."""
    level = [tables]
    for _ in range(RECIPE_DEPTH):
        inner = [each.values() if isinstance(each, Mapping) else each for each in level]
        level = [value for values in inner for value in values if isinstance(value, Mapping | list)]
    if level:
        raise _too_deep(source)


def _too_deep(source: str) -> RecipeError:
    return RecipeError(f"{source}: found tables or arrays nested deeper than {RECIPE_DEPTH}, expected fewer")
