"""Tables of recipes derived from constructors, so that an option is written once.

A constructor's signature gives a key's type, range and default, its numpydoc docstring the help:

    class Solver:                        # its docstring says: batch_size : int, number of examples in a batch
        def __init__(self, model: Model, *, batch_size: Count = 64): ...

    @derived_from(Solver, without=("model",))
    class TrainingTable(Table):         # a frozen dataclass with the field batch_size
        warm_start: EnvPath | None = None
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import re
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from rnnlab.errors import InputError
from rnnlab.options import annotations_of, option_annotations

T = TypeVar("T", bound="Table")


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of a recipe: a frozen dataclass whose fields are the keys."""

    if typing.TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def with_changes(self, **changes: Any) -> Self:
        """A copy with other values of some keys."""
        return dataclasses.replace(self, **changes)


class Unset(enum.Enum):
    """The value of a key that a table leaves out, which differs from None."""

    UNSET = enum.auto()


UNSET = Unset.UNSET


class Argument(NamedTuple):
    """An argument of a constructor."""

    annotation: Any
    default: Any  # inspect.Parameter.empty if it has none
    help: str


def derived_from(
    constructor: type[Any], *, without: Collection[str] = (), unset: bool = False
) -> Callable[[type[T]], type[T]]:
    """Decorator: add the arguments of a constructor to the keys of a table.

    Parameters
    ----------
    constructor : class
    without : collection of str
        Arguments that are not keys, because the data, the command line or the program itself provides them.
    unset : bool
        Whether every key may be left out, and is then UNSET.

    Raises
    ------
    ValueError
        If the constructor has no argument of a name in ``without``.
    """
    arguments = arguments_of(constructor)
    if unknown := set(without) - set(arguments):
        raise InputError(
            f"derived_from: without has {', '.join(sorted(unknown))}; "
            f"{constructor.__name__} has {', '.join(arguments)}"
        )
    return with_keys(
        {name: argument for name, argument in arguments.items() if name not in without}, unset=unset
    )


def with_keys(arguments: Mapping[str, Argument], *, unset: bool = False) -> Callable[[type[T]], type[T]]:
    """Decorator: add arguments to the keys of a table, after its own, and make it a frozen dataclass."""

    def decorate(table: type[T]) -> type[T]:
        own = inspect.get_annotations(table)
        annotations = {}
        for name, argument in arguments.items():
            annotations[name], field = _field(argument._replace(default=UNSET) if unset else argument)
            setattr(table, name, field)
        table.__annotations__ = own | annotations
        return dataclasses.dataclass(frozen=True)(table)

    return decorate


def arguments_of(constructor: type[Any]) -> dict[str, Argument]:
    """The arguments of a class's constructor, and with ``**options`` those of the class it inherits from.

    Parameters
    ----------
    constructor : class
        A NamedTuple's arguments are its fields.
    """
    if hasattr(constructor, "_fields"):
        hints = annotations_of(constructor)
        helps = help_texts(constructor.__doc__, "Attributes")
        defaults = constructor._field_defaults
        return {
            name: Argument(hint, defaults.get(name, inspect.Parameter.empty), helps.get(name, ""))
            for name, hint in hints.items()
        }
    found: dict[str, Argument] = {}
    for each in constructor.__mro__:
        if "__init__" not in vars(each):
            continue
        annotations, helps = option_annotations(each), help_texts(each.__doc__)
        parameters = list(inspect.signature(vars(each)["__init__"]).parameters.values())[1:]
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        for p in named:
            argument = Argument(annotations.get(p.name, Any), p.default, helps.get(p.name, ""))
            found.setdefault(p.name, argument)
        if len(named) == len(parameters):  # nothing is passed on
            break
    return found


def help_texts(docstring: str | None, section: str = "Parameters") -> dict[str, str]:
    """The descriptions in a section of a numpydoc docstring, by name, each as one line."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    heads = [k for k in range(len(lines) - 1) if re.fullmatch(r"-+", lines[k + 1]) and lines[k]]
    start = next((k + 2 for k in heads if lines[k] == section), len(lines))
    stop = next((k for k in heads if k >= start), len(lines))
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in lines[start:stop]:
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
            found |= {name: [] for name in names}
        elif line:
            for name in names:
                found[name].append(line.strip())
    return {name: " ".join(text) for name, text in found.items()}


def help_of(table: Any) -> dict[str, str]:
    """The help of each key of a table: from its constructor, or from the Attributes of the docstrings."""
    own = dict[str, str]()
    for each in reversed(table.__mro__):
        own |= help_texts(each.__doc__, "Attributes")
    return {
        field.name: field.metadata.get("help", own.get(field.name, "")) for field in dataclasses.fields(table)
    }


def _field(argument: Argument) -> tuple[Any, Any]:
    """The annotation and the dataclass field of a key."""
    annotation, metadata = argument.annotation, {"help": argument.help}
    if hasattr(annotation, "_fields"):  # options grouped in a NamedTuple are a nested table
        table = _nested(annotation)
        return table, dataclasses.field(default_factory=table, metadata=metadata)
    if argument.default is inspect.Parameter.empty:
        return annotation, dataclasses.field(metadata=metadata)
    return annotation, dataclasses.field(default=_stored(argument.default), metadata=metadata)


@functools.cache
def _nested(options: type) -> type[Table]:
    name = f"{options.__name__.removesuffix('Options')}Table"
    # copies in other processes: the class has no name there by which it could be found
    members = {"__doc__": options.__doc__, "__reduce__": lambda self: (_of_nested, (options, vars(self)))}
    return derived_from(options)(type(name, (Table,), members))


def _of_nested(options: type, values: Mapping[str, Any]) -> Table:
    return _nested(options)(**values)


def _stored(default: Any) -> Any:
    """A default as recipes hold it: a dtype is its name."""
    return (
        np.dtype(default).name if isinstance(default, type) and issubclass(default, np.generic) else default
    )
