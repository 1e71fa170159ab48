"""Options: the allowed values of an argument, written once as its annotation.

A constructor annotates its arguments with the types of this module. :func:`check_options` checks the values
against them, and a recipe derives its keys from the same signature (:mod:`rnnlab.recipes.tables`).

    bool, int, float, str              a value of that type; an integer is a float too, a bool is not a number
    Literal["a", "b"]                  one of the values
    Annotated[int, Range("[1, inf)")]  a number in the interval
    X | None, X | Y                    either
    list[X], Sequence[X]               a list of X
    dict[str, Any], Mapping[str, Any]  a mapping from strings
    Annotated[X, Stored(Y)]            Y in recipes and checkpoints, which cannot hold objects

Annotations of other kinds, such as arrays and generators, are not options and are not checked here.
"""

from __future__ import annotations

import difflib
import functools
import json
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.errors import InputError, InputTypeError

__all__ = [
    "AttentionScore",
    "CellType",
    "Count",
    "FloatType",
    "Initialisation",
    "LossAverage",
    "MatmulName",
    "Mode",
    "Natural",
    "Normalisation",
    "NotNegative",
    "Number",
    "Output",
    "Positive",
    "Probability",
    "Range",
    "SearchMethod",
    "Stored",
    "TokenizerName",
    "UpdateRuleName",
    "accepts",
    "annotations_of",
    "as_json",
    "as_plain",
    "check_option",
    "check_options",
    "described",
    "expectation",
    "option_annotations",
    "suggestion",
]


class Range:
    """An interval in mathematical notation: ``Range("[0, 1)")``, ``Range("(0, inf)")``.

    Parameters
    ----------
    notation : str
        "[" and "]" include the end, "(" and ")" exclude it.
    noun : str, optional
        The name of a number in this range, for errors, instead of "an integer" or "a number".
    """

    def __init__(self, notation: str, noun: str | None = None) -> None:
        low, high = notation[1:-1].split(",")
        self.notation, self.noun = notation, noun
        self.low, self.high = float(low), float(high)

    def __contains__(self, number: float) -> bool:
        above = number >= self.low if self.notation[0] == "[" else number > self.low
        below = number <= self.high if self.notation[-1] == "]" else number < self.high
        return bool(above and below)

    def __repr__(self) -> str:
        return f"Range({self.notation!r})"

    def described(self, noun: str) -> str:
        """A number of this range in words: "an integer of at least 1", "a number in [0, 1)"."""
        if self.noun is None and self.high == float("inf"):
            if self.notation == "(-inf, inf)":
                return noun.replace("a number", "a finite number")
            if self.notation == "(0, inf)":
                return noun.replace("a number", "a positive number").replace(
                    "an integer", "a positive integer"
                )
            if self.notation[0] == "[":
                return f"{noun.replace('a number', 'a finite number')} of at least {self.low:g}"
        return f"{self.noun or noun} in {self.notation}"


@dataclass(frozen=True)
class Stored:
    """The annotation of an argument in recipes and checkpoints, if its form there is different."""

    annotation: Any


Count: TypeAlias = Annotated[int, Range("[1, inf)")]
Natural: TypeAlias = Annotated[int, Range("[0, inf)")]
Number: TypeAlias = Annotated[float, Range("(-inf, inf)")]
Positive: TypeAlias = Annotated[float, Range("(0, inf)")]
NotNegative: TypeAlias = Annotated[float, Range("[0, inf)")]
Probability: TypeAlias = Annotated[float, Range("[0, 1)", "a probability")]

# Choices. Registered names and "package.module:Object" are valid cell types and update rules, too.
CellType: TypeAlias = Literal["rnn", "lstm", "gru", "simplified_gru"] | str
UpdateRuleName: TypeAlias = (
    Literal["sgd", "momentum", "rmsprop", "adagrad", "adadelta", "adam", "adamw"] | str
)
AttentionScore: TypeAlias = Literal["additive", "dot", "bilinear"]
Output: TypeAlias = Literal["linear", "concat", "deep"]
LossAverage: TypeAlias = Literal["batch", "token"]
Initialisation: TypeAlias = Literal["course", "uniform"]
FloatType: TypeAlias = Annotated[DTypeLike, Stored(Literal["float32", "float64"])]
Mode: TypeAlias = Literal["min", "max"]
MatmulName: TypeAlias = Literal["float32", "tf32", "tf32x3", "bfloat16"]
SearchMethod: TypeAlias = Literal["greedy", "beam", "sample"]
Normalisation: TypeAlias = Literal["power", "gnmt"]
TokenizerName: TypeAlias = Literal["simple", "ptb"]


def annotations_of(thing: Any) -> Mapping[str, Any]:
    """The annotations of a function or a class. Python alone would evaluate their texts in every call."""
    return _evaluated(thing)


@functools.cache
def _evaluated(thing: Any) -> Mapping[str, Any]:
    return types.MappingProxyType(get_type_hints(thing, include_extras=True))


def option_annotations(constructor: Callable[..., Any]) -> dict[str, Any]:
    """The annotation of each argument of a class's constructor, in the form that recipes hold.

    Parameters
    ----------
    constructor : class or function
    """
    function = constructor.__init__ if isinstance(constructor, type) else constructor  # type: ignore[misc]
    found = annotations_of(function).items()
    return {name: _stored(annotation) for name, annotation in found if name != "return"}


def check_options(function: str, constructor: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Check values against the annotations of a constructor's arguments.

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors.
    constructor : class or function
    values : mapping of str to any
        The values by the names of the arguments, in the form of recipes.

    Raises
    ------
    ValueError
        If a value does not match its annotation. The error names the argument.
    """
    annotations = option_annotations(constructor)
    for name, value in values.items():
        if name in annotations and _is_option(annotations[name]):
            check_option(function, name, annotations[name], value)


def check_option(function: str, name: str, annotation: Any, value: Any) -> None:
    """Raise ValueError unless ``value`` matches the annotation."""
    if not accepts(annotation, value):
        raise InputError(f"{function}: {name} is {value!r}, expected {expectation(annotation)}")


def accepts(annotation: Any, value: Any) -> bool:
    """Whether a value matches an annotation."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(accepts(member, value) for member in arguments)
    if origin is Annotated:
        ranges = [extra for extra in arguments[1:] if isinstance(extra, Range)]
        return accepts(arguments[0], value) and all(value in each for each in ranges)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in arguments)
    if _is_list(annotation):
        return isinstance(value, list | tuple) and all(accepts(arguments[0], item) for item in value)
    if _is_mapping(annotation):
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if annotation in (None, type(None)):
        return value is None
    if annotation is bool:
        return isinstance(value, bool | np.bool_)
    if annotation in (int, float):
        kind = Integral if annotation is int else Real
        return isinstance(value, kind) and not isinstance(value, bool)
    return isinstance(value, annotation)


def as_plain(value: Any) -> Any:
    """Convert NumPy scalars to Python numbers and tuples to lists, including those in lists and mappings."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {name: as_plain(each) for name, each in value.items()}
    return [as_plain(each) for each in value] if isinstance(value, list | tuple) else value


def as_json(value: Any, name: str) -> Any:
    """A value as it returns from JSON; TypeError, with its name, if JSON cannot hold it.

    NumPy's numbers become Python's, tuples become lists, and keys become strings.
    """
    try:
        return json.loads(json.dumps(as_plain(value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputTypeError(f"{name} cannot be represented in JSON: {error}") from None


_NAMES = {bool: "True or False", int: "an integer", float: "a number", str: "a string"}


def expectation(annotation: Any, names: Mapping[Any, str] = _NAMES) -> str:
    """The values that an annotation allows, in words.

    Parameters
    ----------
    annotation : type
    names : mapping of type to str, optional
        The names of types.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        members = [member for member in arguments if member is not type(None)]
        if len(members) == 2 and get_origin(members[0]) is Literal and members[1] is str:
            return f"{expectation(members[0])} or 'package.module:Object'"
        each = [expectation(member, names) for member in members]
        return " or ".join(each + ["None"] * (len(members) < len(arguments) and names is _NAMES))
    if origin is Annotated:
        inner = expectation(arguments[0], names)
        ranges = [extra for extra in arguments[1:] if isinstance(extra, Range)]
        return ranges[0].described(inner) if ranges else inner
    if origin is Literal:
        return f"one of {', '.join(map(repr, arguments))}" if len(arguments) > 1 else repr(arguments[0])
    if _is_list(annotation):
        item = expectation(arguments[0], names)
        return "a list of strings" if item == "a string" else f"a list, each item {item}"
    if _is_mapping(annotation):
        return names.get(Mapping, "a mapping")
    return names.get(annotation, f"a {getattr(annotation, '__name__', annotation)}")


def described(value: object) -> str:
    """What was found instead of an expected value, for errors.

    Examples
    --------
    >>> described(np.zeros((2, 3))), described((1.5, [])), described(None)
    ('an array of shape (2, 3) and dtype float64', 'a tuple of float, list', 'None')
    """
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, tuple):
        kinds = [type(each).__name__ for each in value[:8]] or ["nothing"]
        return f"a tuple of {', '.join(kinds)}{', ...' if len(value) > 8 else ''}"
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeioAEIO' else 'a'} {name}"


def suggestion(name: str, known: Collection[str], otherwise: str = "") -> str:
    """The known name that is closest to an unknown one, else ``otherwise`` or all known names, for errors."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else otherwise or f"there are {', '.join(known)}"


def _stored(annotation: Any) -> Any:
    """The annotation of the form in recipes."""
    if get_origin(annotation) is Annotated:
        for extra in get_args(annotation)[1:]:
            if isinstance(extra, Stored):
                return extra.annotation
    return annotation


def _is_option(annotation: Any) -> bool:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return all(_is_option(member) for member in arguments)
    if origin is Annotated:
        return _is_option(arguments[0])
    if _is_list(annotation):
        return _is_option(arguments[0])
    if _is_mapping(annotation):
        return arguments == (str, Any)
    return origin is Literal or annotation in (bool, int, float, str, type(None))


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) in (list, Sequence)


def _is_mapping(annotation: Any) -> bool:
    return get_origin(annotation) in (dict, Mapping)
