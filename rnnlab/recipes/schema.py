"""Tables checked against dataclasses: the annotations of the fields are the schema.

The annotations are those of :mod:`rnnlab.options`, and in addition:

    EnvPath                 a path in which $NAME is an environment variable
    X | None                X, or "none", since TOML has no null; in JSON null
    list[X], Sequence[X]    an array of X; errors count its items from 1
    a dataclass             a table with the fields as keys; a field without a default is required
    a union of dataclasses  the one whose field ``kind``, a Literal, has the table's value

A dataclass may check more in ``__post_init__``, by a ValueError or TypeError that begins with a field's name.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from rnnlab.errors import InputError
from rnnlab.options import accepts, annotations_of, expectation, suggestion
from rnnlab.recipes.derived import UNSET

T = TypeVar("T")


class RecipeError(InputError):
    """A table that does not follow its schema; the message has the source, the key, found and expected."""


class EnvPath(os.PathLike[str]):
    """A path with ``$NAME``, ``${NAME}`` and ``~``, which are expanded when it is used as a path.

    It is stored as written, so that a configuration from one machine refers to the same data on another.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __fspath__(self) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if not os.environ.get(name):
                state = "empty" if name in os.environ else "not set"
                raise InputError(
                    f"path {self.text!r} needs the environment variable {name}, which is {state}"
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
    """The place of a value, for errors: a file and a dotted key.

    The keys in ``overrides``, and all keys below them, come from the command line and not from the file.
    """

    source: str
    key: str = ""
    overrides: Collection[str] = ()

    def __truediv__(self, name: object) -> Place:
        return dataclasses.replace(self, key=f"{self.key}.{name}" if self.key else str(name))

    def of_unknown(self) -> Place:
        """The place of an unknown key: the command line if it sets the key or one below it."""
        through = any(key.startswith(f"{self.key}.") for key in self.overrides)
        return dataclasses.replace(self, overrides=[self.key]) if through else self

    def message(self, error: Exception) -> str:
        """An error's message that begins with a key of this table, with the source of that key.

        After a colon, the key of a nested table may follow: "optim_config: learning_rate is -1, ..." or
        "schedule exponential: unknown key 'rate'; ...".
        """
        text = str(error)
        key = re.split(r"[^\w.]", text, maxsplit=1)[0]
        place, rest = self / key, text.removeprefix(key)
        within = re.match(r"[^:.]*: (?:(?=\w+ is )|unknown key ')(\w+)", rest)
        if within and (place / within[1])._is_overridden:
            place = dataclasses.replace(place, source="--set")
        return f"{place}{rest}"

    @property
    def _is_overridden(self) -> bool:
        return any(f"{self.key}.".startswith(f"{key}.") for key in self.overrides)

    def __str__(self) -> str:
        source = "--set" if self._is_overridden else self.source
        return f"{source}: {self.key}" if self.key else source


def from_table(schema: type[T], table: Any, place: Place) -> T:
    """An instance of the dataclass ``schema`` with the values of ``table``.

    Raises
    ------
    RecipeError
        If a key is unknown or missing, or a value does not match the schema.
    """
    if not isinstance(table, Mapping):
        raise RecipeError(f"{place} is {table!r}, expected a table")
    fields = {field.name: field for field in dataclasses.fields(schema)}  # type: ignore[arg-type]
    annotations = annotations_of(schema)
    for key in table:
        if key not in fields:
            hint = getattr(schema, "ELSEWHERE", {}).get(key) or _within(annotations, key)
            hint = hint or suggestion(key, fields)
            raise RecipeError(f"{(place / key).of_unknown()} is unknown; {hint}")
    for name, field in fields.items():
        if name not in table and _is_required(field):
            raise RecipeError(f"{place / name} is missing, expected {toml_expectation(annotations[name])}")
    values = {key: _value(annotations[key], value, place / key) for key, value in table.items()}
    try:
        return schema(**values)
    except (ValueError, TypeError) as error:
        raise RecipeError(place.message(error)) from error


def to_table(instance: Any) -> Any:
    """The inverse of :func:`from_table`: dictionaries, lists, strings, numbers, booleans and None.

    Keys that are UNSET are left out.
    """
    if dataclasses.is_dataclass(instance):
        values = {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance)}
        return {name: to_table(value) for name, value in values.items() if value is not UNSET}
    if isinstance(instance, list | tuple):
        return [to_table(item) for item in instance]
    return instance.text if isinstance(instance, EnvPath) else instance


def _value(annotation: Any, value: Any, place: Place) -> Any:
    """``value``, checked and converted according to the annotation."""
    members, optional = _members(annotation)
    if optional and (value is None or (value == "none" and str not in members)):
        return None
    if all(map(dataclasses.is_dataclass, members)):
        return _table(members, value, place)
    member = members[0]
    if get_origin(member) in (list, Sequence) and isinstance(value, list):
        (item,) = get_args(member)
        return [_value(item, each, place / number) for number, each in enumerate(value, start=1)]
    if isinstance(value, str) and "\0" in value:
        allowed = toml_expectation(annotation)
        raise RecipeError(f"{place} is {value!r}, expected {allowed} without the character 0")
    if isinstance(value, int) and value.bit_length() > 63:
        raise RecipeError(f"{place} is {value}, expected {toml_expectation(annotation)}, of 64 bits")
    if member is EnvPath and isinstance(value, str):
        if any(character < " " for character in value):
            raise RecipeError(
                f"{place} is {value!r}, expected a path without control characters: in double quotes, TOML "
                "reads \\t and \\n as such; write / instead of \\, or use single quotes"
            )
        return EnvPath(value)
    if not accepts(annotation, value):
        allowed = toml_expectation(annotation)
        raise RecipeError(f"{place} is {value!r}, expected {allowed}{_meant(member, value)}")
    return float(value) if _scalar(member) is float and not isinstance(value, Mapping) else value


def _members(annotation: Any) -> tuple[list[Any], bool]:
    """The members of a union, without None, and whether None is one; an annotation alone is its own."""
    union = get_origin(annotation) in (Union, types.UnionType)
    members = list(get_args(annotation)) if union else [annotation]
    some = [member for member in members if member is not type(None)]
    return some, len(some) < len(members)


def _scalar(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _table(schemas: Sequence[Any], value: Any, place: Place) -> Any:
    """The table of the only schema, or of the one that its ``kind`` names."""
    if len(schemas) == 1:
        return from_table(schemas[0], value, place)
    kinds = {kind_of(schema): schema for schema in schemas}
    if not isinstance(value, Mapping):
        raise RecipeError(f"{place} is {value!r}, expected a table")
    if "kind" not in value:
        raise RecipeError(f"{place / 'kind'} is missing, expected one of {', '.join(map(repr, kinds))}")
    _value(Literal[tuple(kinds)], value["kind"], place / "kind")
    return from_table(kinds[value["kind"]], value, place)


def kind_of(schema: Any) -> str:
    """The value of the field ``kind`` that selects this dataclass in a union."""
    return get_args(annotations_of(schema)["kind"])[0]


_NAMES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    EnvPath: "a path",
    Mapping: "a table",
}


def toml_expectation(annotation: Any) -> str:
    """The values that ``annotation`` allows in TOML, in words."""
    members, optional = _members(annotation)
    if any(map(dataclasses.is_dataclass, members)) or get_origin(members[0]) in (dict, Mapping):
        words = "a table"
    elif get_origin(members[0]) in (list, Sequence):
        (item,) = get_args(members[0])
        words = "an array" if item in (str, Any) else f"an array, each item {toml_expectation(item)}"
    else:
        words = expectation(annotation, _NAMES)
    return f"{words} or 'none'" if optional and str not in members else words


def _meant(annotation: Any, value: Any) -> str:
    """The choice that is closest to a misspelt one, or an item as an array, for the end of an error."""
    if get_origin(annotation) in (list, Sequence) and accepts(get_args(annotation)[0], value):
        return f", such as {json.dumps([value], ensure_ascii=False)}"
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    close = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def _within(annotations: Mapping[str, Any], key: str) -> str:
    """The hint that a table of a table has this key; empty if none has it."""
    found = [
        f"{name}.{key}"
        for name, annotation in annotations.items()
        for table in _members(annotation)[0]
        if dataclasses.is_dataclass(table) and key in (each.name for each in dataclasses.fields(table))
    ]
    return f"did you mean {' or '.join(dict.fromkeys(found))}?" if found else ""


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
