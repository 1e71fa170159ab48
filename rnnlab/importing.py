"""Objects that users name as "package.module:Name"."""

from __future__ import annotations

import importlib
from typing import Any

from rnnlab.errors import InputError

__all__ = ["imported"]


def imported(argument: str, path: str) -> Any:
    """The object of a path "package.module:Name".

    Parameters
    ----------
    argument : str
        What holds the path, for the error.
    path : str

    Raises
    ------
    ValueError
        If there is no such module or object, or the module cannot be imported.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, SyntaxError) as error:
        raise InputError(
            f"{argument} is {path!r}, which cannot be imported: {error}; install the package or add its "
            "folder to PYTHONPATH"
        ) from error
