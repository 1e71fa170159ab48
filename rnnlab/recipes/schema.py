"""Tables checked against dataclasses: the annotations of the fields are the schema.

    bool, int, float, str           a value of that type; a float may be written as an integer
    EnvPath                         a path in which $NAME is an environment variable
    Literal["a", "b"]               one of the values
    Annotated[int, Interval(...)]   a number inside the interval
    X | None                        X or null
    list[X], dict[str, Any]         an array of X, in errors counted from 1; a table of anything
    a dataclass                     a table with the fields as keys; a field without a default is required
    a union of dataclasses          the one whose field ``kind``, a Literal, has the table's value

A dataclass may check more in ``__post_init__``, by a ValueError or TypeError that starts with a field's name.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import types
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class ConfigError(ValueError):
    """A table that does not follow its schema; the message has the source, the key, found and expected."""


class Interval:
    """An interval in its mathematical notation: ``Interval("[0, 1)")``, ``Interval("(0, inf)")``."""

    def __init__(self, notation: str) -> None:
        low, high = notation[1:-1].split(",")
        self.notation = notation
        self._low, self._high = float(low), float(high)

    def __contains__(self, number: float) -> bool:
        above = number >= self._low if self.notation[0] == "[" else number > self._low
        below = number <= self._high if self.notation[-1] == "]" else number < self._high
        return above and below


Count = Annotated[int, Interval("[1, inf)")]
Natural = Annotated[int, Interval("[0, inf)")]
Positive = Annotated[float, Interval("(0, inf)")]
NotNegative = Annotated[float, Interval("[0, inf)")]
Fraction = Annotated[float, Interval("[0, 1)")]


class EnvPath(os.PathLike[str]):
    """A path as it was written, ``$NAME``, ``${NAME}`` and ``~`` in it; expanded when it is used as a path.

    Kept as written, so that a configuration that was stored on one machine names the same data on another.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __fspath__(self) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if name not in os.environ:
                raise ValueError(
                    f"path {self.text!r} needs the environment variable {name}, which is not set"
                )
            return os.environ[name]

        return os.path.expanduser(re.sub(r"\$(?:(\w+)|\{(\w+)\})", value, self.text))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"EnvPath({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvPath) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@dataclass(frozen=True)
class Place:
    """Where a value stands, for errors: a file and a dotted key.

    The keys in ``overrides``, and all inside them, come from the command line and not from the file.
    """

    source: str
    key: str = ""
    overrides: Collection[str] = ()

    def __truediv__(self, name: object) -> Place:
        return dataclasses.replace(self, key=f"{self.key}.{name}" if self.key else str(name))

    def __str__(self) -> str:
        overridden = any(f"{self.key}.".startswith(f"{key}.") for key in self.overrides)
        source = "--set" if overridden else self.source
        return f"{source}: {self.key}" if self.key else source


def from_table(schema: type[T], table: Any, place: Place) -> T:
    """An instance of the dataclass ``schema`` with the values of ``table``.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value is not what the schema says.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place} is {table!r}, expected a table")
    fields = {field.name: field for field in dataclasses.fields(schema)}  # type: ignore[arg-type]
    annotations = get_type_hints(schema, include_extras=True)
    for key in table:
        if key not in fields:
            raise ConfigError(f"{place / key} is unknown; {_suggestion(key, list(fields))}")
    for name, field in fields.items():
        if name not in table and _is_required(field):
            raise ConfigError(f"{place / name} is missing, expected {_expectation(annotations[name])}")
    values = {key: _value(annotations[key], value, place / key) for key, value in table.items()}
    try:
        return schema(**values)
    except (ValueError, TypeError) as error:
        start = f"{place}." if place.key else f"{place}: "
        raise ConfigError(f"{start}{error}") from error


def to_table(instance: Any) -> Any:
    """The inverse of :func:`from_table`: dictionaries, lists, strings, numbers, booleans and None."""
    if dataclasses.is_dataclass(instance):
        names = [field.name for field in dataclasses.fields(instance)]
        return {name: to_table(getattr(instance, name)) for name in names}
    if isinstance(instance, list):
        return [to_table(item) for item in instance]
    return instance.text if isinstance(instance, EnvPath) else instance


def _value(annotation: Any, value: Any, place: Place) -> Any:
    """``value`` as the annotation wants it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _union(arguments, value, place)
    if dataclasses.is_dataclass(annotation):
        return from_table(annotation, value, place)  # type: ignore[arg-type]
    if origin is list and isinstance(value, list):
        return [_value(arguments[0], item, place / number) for number, item in enumerate(value, start=1)]
    scalar, interval = arguments if origin is Annotated else (annotation, None)
    if not _is_a(scalar, value) or (interval and value not in interval):
        raise ConfigError(f"{place} is {value!r}, expected {_expectation(annotation)}")
    return scalar(value) if scalar in (float, EnvPath) else value


def _is_a(annotation: Any, value: Any) -> bool:
    if get_origin(annotation) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(annotation))
    if get_origin(annotation) is dict:
        return isinstance(value, dict)
    if annotation is float:
        return type(value) in (int, float)
    return type(value) is (str if annotation is EnvPath else annotation)


def _union(members: tuple[Any, ...], value: Any, place: Place) -> Any:
    if value is None and type(None) in members:
        return None
    members = tuple(member for member in members if member is not type(None))
    if len(members) == 1:
        return _value(members[0], value, place)
    kinds = {get_args(get_type_hints(member)["kind"])[0]: member for member in members}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place} is {value!r}, expected a table")
    if "kind" not in value:
        raise ConfigError(f"{place / 'kind'} is missing, expected one of {', '.join(map(repr, kinds))}")
    _value(Literal[tuple(kinds)], value["kind"], place / "kind")
    return from_table(kinds[value["kind"]], value, place)


def _expectation(annotation: Any) -> str:
    """What a value of ``annotation`` is, in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _expectation(arguments[0])
    if origin is Annotated:
        return f"{_expectation(arguments[0])} in {arguments[1].notation}"
    if origin is Literal:
        return f"one of {', '.join(map(repr, arguments))}" if len(arguments) > 1 else repr(arguments[0])
    if dataclasses.is_dataclass(annotation):
        return "a table"
    names = {bool: "true or false", int: "an integer", float: "a number", str: "a string", EnvPath: "a path"}
    return {**names, list: "an array", dict: "a table"}[origin or annotation]


def _suggestion(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
