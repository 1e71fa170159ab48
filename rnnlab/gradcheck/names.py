"""The names of cases and parameters that a pattern selects."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Sequence

from rnnlab.errors import InputError


def matching(names: Sequence[str], pattern: str | None, argument: str) -> list[str]:
    """The names that contain a pattern, in which ``*``, ``?`` and ``[...]`` are wildcards; case is ignored.

    Raises
    ------
    ValueError
        If there are none. The error names ``argument``, similar names, and what the names begin with.
    """
    if pattern is None:
        return list(names)
    found = [name for name in names if fnmatch.fnmatchcase(name.lower(), f"*{pattern.lower()}*")]
    if not found:
        close = difflib.get_close_matches(pattern, names, n=3)
        such = f", such as {', '.join(close)}" if close else ""
        beginnings = dict.fromkeys(re.split("[ ,]", name)[0] for name in names)
        raise InputError(
            f"{argument} is {pattern!r}, which matches no name, expected a part of a name{such}. Names begin "
            f"with {', '.join(beginnings)}"
        )
    return found
