"""Dataclasses whose fields are options: checked by their annotations, and made from a table of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from numbers import Real
from typing import Annotated, Any, TypeVar, get_args, get_origin

from rnnlab.errors import InputError
from rnnlab.options import annotations_of, check_option
from rnnlab.training.registry import Registry

T = TypeVar("T")


@dataclass(kw_only=True)
class Configured:
    """Checks its fields against their annotations; :meth:`config` returns them.

    Raises
    ------
    ValueError
        If an option does not match its annotation. The error names the option.
    """

    def __post_init__(self) -> None:
        hints = annotations_of(type(self))
        for field in fields(self):
            value = getattr(self, field.name)
            check_option(self._place(), field.name, hints[field.name], value)
            if _is_float(hints[field.name]) and isinstance(value, Real):
                setattr(self, field.name, float(value))

    def config(self) -> dict[str, Any]:
        """The options by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}

    def _place(self) -> str:
        """The beginning of error messages."""
        return type(self).__name__


@dataclass(kw_only=True)
class Named(Configured):
    """A :class:`Configured` object with the name under which :func:`make` found its class."""

    name = ""  # without an annotation, since it is not an option

    def config(self) -> dict[str, Any]:
        """The name and the options, as :func:`make` takes them."""
        return {"name": self.name} | super().config()


def make(argument: str, registry: Registry[T], config: Mapping[str, Any]) -> T:
    """An object of the class named by ``config["name"]``, with the other keys as its options.

    Raises
    ------
    ValueError
        If there is no such name, the class has no such option or lacks one, or one is out of its range.
    TypeError
        If the object of that name is not a class with the contract of the registry.
    """
    if not isinstance(config, Mapping):
        raise InputError(
            f"{argument} is {config!r}, expected a table with a name, one of {', '.join(registry)}"
        )
    options = dict(config)
    if "name" not in options:
        given = ", ".join(map(repr, options)) or "nothing"
        raise InputError(f"{argument} has no name, but {given}; expected one of {', '.join(registry)}")
    name: Any = options.pop("name")
    try:
        found = registry.find(name)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{argument}: {error}") from error
    check_names(f"{argument} {name}", found, options, "it")
    made: Any = found(**options)
    made.name = name
    return made


def check_names(place: str, configured: type, options: Mapping[str, Any], subject: str) -> None:
    """Raise ValueError if a class has no option of some name, or if one that has no default is missing."""
    known = fields(configured)
    names = [field.name for field in known if field.init]
    for key in options:
        if key not in names:
            raise InputError(f"{place}: unknown key {key!r}; {subject} has {', '.join(names) or 'none'}")
    for field in known:
        required = field.init and field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in options:
            raise InputError(f"{place}: {field.name} is missing")


def _is_float(annotation: Any) -> bool:
    return (get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation) is float
