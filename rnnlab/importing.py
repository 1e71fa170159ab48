"""Objects that users name as "package.module:Name"."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar

from rnnlab.errors import InputError, InputTypeError

__all__ = ["created", "imported", "is_built_in"]

T = TypeVar("T")


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
    if module.startswith("."):
        raise InputError(f"{argument} is {path!r}, expected the full name of a module, without a first dot")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, SyntaxError) as error:
        is_absent = isinstance(error, ModuleNotFoundError)
        remedy = "; install the package or add its folder to PYTHONPATH" if is_absent else ""
        raise InputError(f"{argument} is {path!r}, which cannot be imported: {error}{remedy}") from error


def created(argument: str, path: str, found: Callable[..., T]) -> T:
    """An object of a class that :func:`imported` has found, created without arguments.

    Parameters
    ----------
    argument, path : str
        As in :func:`imported`.
    found : class

    Raises
    ------
    TypeError
        If the class needs arguments.
    """
    variadic = Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD
    needed = [
        each.name
        for each in signature(found).parameters.values()
        if each.default is each.empty and each.kind not in variadic
    ]
    if needed:
        raise InputTypeError(
            f"{argument} is {path!r}, which needs {', '.join(needed)}, expected a class that is created "
            "without arguments"
        )
    return found()


def is_built_in(kind: type) -> bool:
    """Whether a class is defined in rnnlab, not by a user."""
    return kind.__module__.startswith("rnnlab.")
