"""The names of cases and parameters that a pattern selects."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Sequence

from rnnlab.errors import InputError


def matching(names: Sequence[str], pattern: str | None, argument: str) -> list[str]:
    """The names that contain a pattern, in which ``*``, ``?`` and ``[...]`` are wildcards; case is ignored.

    Raises
    ------
    ValueError
        If there are none; ``argument`` names the pattern in the message.
    """
    if pattern is None:
        return list(names)
    found = [name for name in names if fnmatch.fnmatchcase(name.lower(), f"*{pattern.lower()}*")]
    if not found:
        close = difflib.get_close_matches(pattern, names, n=3, cutoff=0.3) or list(names[:3])
        raise InputError(f"{argument} is {pattern!r}, which matches no name, such as {', '.join(close)}")
    return found
