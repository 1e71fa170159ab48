"""The door of every layer: helpers that check shapes, dtypes and numbers of what comes in."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from rnnlab.ops import ops_for
from rnnlab.types import Array


def check_shapes(function: str, /, **arguments: tuple[Array, str]) -> dict[str, int]:
    """Check arrays against a specification such as ``"N T D"`` or ``"D 4H"``.

    Parameters
    ----------
    function : str
        Named in the errors.
    **arguments : (array, str)
        Each array with its axes, separated by spaces: a letter is bound by the first array that has it and
        must agree from then on, a number before a letter multiplies it. Give the arrays that bind first.

    Returns
    -------
    dict of str to int
        The size of each letter.

    Raises
    ------
    ValueError
        If a shape differs: ``lstm_forward: Wx has shape (5, 12), expected (D, 4H) = (5, 16)``.
    TypeError
        If an array is not floating point, or the arrays differ in dtype.
    """
    sizes: dict[str, int] = {}
    dtypes: dict[str, np.dtype] = {}
    for name, (array, specification) in arguments.items():
        axes = _axes(specification)
        shape = getattr(array, "shape", None)
        if shape is None:
            raise TypeError(f"{function}: {name} is a {type(array).__name__}, expected an array")
        if len(shape) == len(axes):
            for size, (factor, letter) in zip(shape, axes, strict=True):
                if factor == 1:
                    sizes.setdefault(letter, size)
        expected = tuple(factor * sizes[letter] if letter in sizes else None for factor, letter in axes)
        if len(shape) != len(axes) or any(
            e is not None and e != s for e, s in zip(expected, shape, strict=True)
        ):
            raise ValueError(
                f"{function}: {name} has shape {shape}, expected {_written(specification, expected)}"
            )
        dtypes[name] = array.dtype
    _check_dtypes(function, dtypes)
    return sizes


def check_gradient(
    function: str, dout: Array, shape: tuple[int, ...], dtype: np.dtype, name: str = "dout"
) -> None:
    """Check that a gradient has the shape and the dtype of what it is the gradient of.

    ``name`` is what the function calls it.

    Raises
    ------
    ValueError, TypeError
        If it has not.
    """
    if dout.shape != shape:
        raise ValueError(f"{function}: {name} has shape {dout.shape}, expected {shape}")
    if dout.dtype != dtype:
        raise TypeError(f"{function}: {name} has dtype {dout.dtype}, expected {dtype}")


def gradient_room(
    function: str, shapes: dict[str, tuple[int, ...]], like: Array, into: Sequence[Array] | None
) -> Sequence[Array]:
    """Arrays of these shapes to add gradients into: ``into`` once it is checked, or zeros.

    Raises
    ------
    ValueError, TypeError
        If ``into`` is not a tuple of as many arrays, or one has another shape or dtype than ``like``.
    """
    if into is None:
        return [ops_for(like).zeros(shape, like.dtype) for shape in shapes.values()]
    if not isinstance(into, tuple | list) or len(into) != len(shapes):
        found = f"{len(into)} arrays" if isinstance(into, tuple | list) else type(into).__name__
        raise ValueError(f"{function}: into is {found}, expected a tuple of {', '.join(shapes)}")
    for (name, shape), array in zip(shapes.items(), into, strict=True):
        if not hasattr(array, "shape"):
            raise TypeError(f"{function}: into has a {type(array).__name__} for {name}, expected an array")
        if array.shape != shape or array.dtype != like.dtype:
            raise ValueError(
                f"{function}: into has {name} of shape {array.shape} and dtype {array.dtype}, "
                f"expected {shape} and {like.dtype}"
            )
    return into


def check_mask(function: str, mask: Array, shape: tuple[int, ...], like: Array) -> Array:
    """Check a mask (N, T) of the library and the dtype of ``like``; return it.

    Raises
    ------
    ValueError, TypeError
        If its shape or its dtype is another.
    """
    ops_for(mask, like)
    if mask.shape != shape or mask.dtype != like.dtype:
        raise ValueError(
            f"{function}: mask has shape {mask.shape} and dtype {mask.dtype}, "
            f"expected (N, T) = {shape} and {like.dtype}"
        )
    return mask


def check_tokens(function: str, name: str, tokens: Array, size: int) -> None:
    """Check that ``tokens`` are integers in [0, size).

    Raises
    ------
    TypeError
        If they are not integers.
    IndexError
        If one is out of range: the error names it and the size of the vocabulary.
    """
    if tokens.dtype.kind not in "iu":
        raise TypeError(f"{function}: {name} has dtype {tokens.dtype}, expected integers")
    if tokens.size and (tokens.min() < 0 or tokens.max() >= size):
        wrong = tokens.max() if tokens.max() >= size else tokens.min()
        raise IndexError(f"{function}: {name} holds the token {wrong}, the vocabulary has {size} words")


def check_probability(function: str, name: str, value: float) -> None:
    """Check that ``value`` is a number in [0, 1): the share of units that dropout may drop.

    Raises
    ------
    ValueError
        If it is not.
    """
    if not isinstance(value, Real) or not 0 <= value < 1:
        raise ValueError(f"{function}: {name} is {value!r}, expected a probability in [0, 1)")


def check_rng(function: str, rng: Any) -> None:
    """Check that ``rng`` is a numpy Generator, or None for no noise: a seed would give the same noise always.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise TypeError(f"{function}: rng is {rng!r}, expected a numpy Generator or None")


def check_size(function: str, name: str, value: int, least: int = 1) -> None:
    """Check that ``value`` is an integer of at least ``least``.

    Raises
    ------
    ValueError
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{function}: {name} is {value!r}, expected an integer of at least {least}")


def check_weight(function: str, name: str, value: float) -> None:
    """Check that ``value`` is a finite number of at least 0: the weight of a loss.

    Raises
    ------
    ValueError
        If it is not.
    """
    if not isinstance(value, Real) or not 0 <= value < float("inf"):
        raise ValueError(f"{function}: {name} is {value!r}, expected a finite number of at least 0")


@functools.cache
def _axes(specification: str) -> tuple[tuple[int, str], ...]:
    found = (re.fullmatch(r"(\d*)([A-Za-z]+)", text) for text in specification.split())
    return tuple((int(match[1] or 1), match[2]) for match in found if match)


def _written(specification: str, expected: tuple[int | None, ...]) -> str:
    letters = specification.split()
    names = ", ".join(letters) + ("," if len(letters) == 1 else "")
    if any(size is None for size in expected):
        return f"({names})"
    return f"({names}) = {expected}"


def _check_dtypes(function: str, dtypes: dict[str, np.dtype]) -> None:
    first, *rest = dtypes.items()
    for name, dtype in dtypes.items():
        if dtype.kind != "f":
            raise TypeError(f"{function}: {name} has dtype {dtype}, expected a floating-point array")
    for name, dtype in rest:
        if dtype != first[1]:
            raise TypeError(f"{function}: {name} has dtype {dtype}, expected {first[1]} as {first[0]}")
