"""Patterns of parameter names, as in :mod:`fnmatch`, and values by such patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby

from rnnlab.errors import InputError
from rnnlab.parameters import Parameters, merged


def matching(names: Iterable[str], patterns: Sequence[str]) -> set[str]:
    """The names that match at least one of the patterns."""
    return {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}


def values_by_name(
    option: str, patterns: Mapping[str, float], params: Parameters, default: float
) -> dict[str, float]:
    """The value of each parameter: that of the first pattern that matches its name, or the default.

    Raises
    ------
    ValueError
        If a pattern matches no parameter, or a single one before it matches all of its parameters. The error
        begins with ``option``.
    """
    matches = {pattern: matching(params, [pattern]) for pattern in patterns}
    for place, (pattern, names) in enumerate(matches.items()):
        if not names:
            raise InputError(f"{option} has {pattern!r}, which matches none of {', '.join(params)}")
        if before := [each for each in [*matches][:place] if names <= matches[each]]:
            raise InputError(
                f"{option} has {pattern!r} after {before[0]!r}, which matches the same parameters: put "
                f"{pattern!r} first"
            )
    first = {name: next((each for each in patterns if fnmatchcase(name, each)), None) for name in params}
    return {name: default if pattern is None else patterns[pattern] for name, pattern in first.items()}


def places_of_values(
    params: Parameters, names: Sequence[str], values: Mapping[str, float]
) -> list[tuple[slice, float]]:
    """The slices of the flat buffer that hold these parameters, each with their value.

    Adjacent parameters with the same value are one slice.
    """
    return [
        (place, value)
        for value, of_value in groupby(names, values.__getitem__)
        for place in merged(map(params.place, of_value))
    ]
