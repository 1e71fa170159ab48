"""Argument checks that all layers share: shapes, dtypes, masks, tokens and numbers.

Every helper takes the name of the calling function and the name of the argument, which the errors repeat.
"""

from __future__ import annotations

import functools
import re
from numbers import Real
from typing import Any

import numpy as np

from rnnlab.errors import InputError, InputTypeError, OutOfRangeError
from rnnlab.ops import Primitives, is_subclassed, ops_for
from rnnlab.options import described
from rnnlab.types import Array


def ops_of(function: str, /, **arrays: Array) -> Primitives:
    """The module of primitives for the library of these arrays, as :func:`~rnnlab.ops.ops_for`.

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors.
    **arrays : array
        The arguments of the function, by their names.

    Raises
    ------
    TypeError
        If an argument is not a NumPy or CuPy array, or the arrays are of different libraries.
    """
    try:
        return ops_for(*arrays.values())
    except TypeError as error:
        for name, array in arrays.items():
            check_plain(f"{function}: {name}", array)
            if type(array).__module__.partition(".")[0] not in ("numpy", "cupy"):
                raise InputTypeError(
                    f"{function}: {name} is a {type(array).__name__}, expected a NumPy or CuPy array"
                ) from None
        raise InputTypeError(f"{function}: {error}") from None


def check_plain(argument: str, array: Any) -> None:
    """Raise TypeError if an array is a matrix, a masked array or of another subclass of ``numpy.ndarray``."""
    if is_subclassed(array):
        raise InputTypeError(
            f"{argument} is a {type(array).__name__}, expected a plain array, as numpy.array makes"
        )


def check_shapes(function: str, /, **arguments: tuple[Array, str]) -> dict[str, int]:
    """Check the shapes and dtypes of arrays against specifications such as ``"N T D"`` or ``"D 4H"``.

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors.
    **arguments : (array, str)
        Each array with its specification. A specification names the axes, separated by spaces. The first
        array with an axis ``H`` fixes the size of H; every later ``H`` must have the same size, and ``4H``
        must be four times as large.

    Returns
    -------
    dict of str to int
        The size of each letter.

    Raises
    ------
    ValueError
        If a shape differs: ``lstm_forward: Wx has shape (5, 12), expected (D, 4H) = (5, 16)``.
    TypeError
        If an array is not of dtype float32 or float64, or the arrays differ in dtype.
    """
    sizes: dict[str, int] = {}
    dtypes: dict[str, np.dtype] = {}
    for name, (array, specification) in arguments.items():
        axes = _axes(specification)
        shape = getattr(array, "shape", None)
        if shape is None:
            raise InputTypeError(f"{function}: {name} is a {type(array).__name__}, expected an array")
        fits = len(shape) == len(axes)
        if fits:
            for size, (factor, letter) in zip(shape, axes, strict=True):
                if factor == 1:
                    sizes.setdefault(letter, size)
            for size, (factor, letter) in zip(shape, axes, strict=True):
                if letter in sizes and size != factor * sizes[letter]:
                    fits = False
        if not fits:
            expected = tuple(factor * sizes[letter] if letter in sizes else None for factor, letter in axes)
            raise InputError(
                f"{function}: {name} has shape {shape}, expected {_written(specification, expected)}"
            )
        check_plain(f"{function}: {name}", array)
        dtypes[name] = array.dtype
    _check_dtypes(function, dtypes)
    return sizes


def check_state(function: str, state: Any, count: int, names: str = "") -> None:
    """Check that a recurrent state is a tuple of ``count`` arrays; ``names`` are added to the error.

    Raises
    ------
    ValueError
        If it is not.
    """
    if not isinstance(state, tuple) or len(state) != count:
        found = f"a tuple of {len(state)}" if isinstance(state, tuple) else f"a {type(state).__name__}"
        raise InputError(f"{function}: state is {found}, expected a tuple of {count} arrays{names}")


def check_float(function: str, name: str, array: Array) -> None:
    """Check that an array has the dtype float32 or float64, in native byte order.

    The layers compute in these two dtypes only. Other arrays are refused rather than converted: half
    precision would overflow, a complex array would lose its imaginary part, and the compiled primitives read
    native byte order.

    Raises
    ------
    TypeError
        If the array has another dtype.
    """
    check_plain(f"{function}: {name}", array)
    _check_dtype(function, name, array.dtype)


def check_real(argument: str, array: Array) -> None:
    """Check that an array holds real numbers, which may be converted to float32 or float64.

    Parameters
    ----------
    argument : str
        The names of the calling function and of the argument, such as ``"CaptioningRNN.loss: features"``.
    array : array

    Raises
    ------
    TypeError
        If the array holds anything but booleans, integers or floating-point numbers. Complex numbers are
        refused because a conversion would drop their imaginary part.
    """
    check_plain(argument, array)
    if not isinstance(array.dtype, np.dtype):
        raise InputTypeError(f"{argument} is a {type(array).__name__}, expected a NumPy or CuPy array")
    if array.dtype.kind not in "biuf":
        raise InputTypeError(f"{argument} has dtype {array.dtype}, expected real numbers")


def check_gradient(
    function: str, dout: Array, shape: tuple[int, ...], dtype: np.dtype, name: str = "dout"
) -> None:
    """Check that a gradient has the shape and the dtype of the array it belongs to.

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors.
    dout : array
        The gradient.
    shape, dtype
        The shape and the dtype of the array it belongs to.
    name : str
        The name of the argument, for the errors.

    Raises
    ------
    ValueError
        If the shape differs.
    TypeError
        If it is not an array, or the dtype differs.
    """
    if not hasattr(dout, "shape"):
        raise InputTypeError(f"{function}: {name} is a {type(dout).__name__}, expected an array")
    check_plain(f"{function}: {name}", dout)
    if dout.shape != shape:
        raise InputError(f"{function}: {name} has shape {dout.shape}, expected {shape}")
    if dout.dtype != dtype:
        raise InputTypeError(f"{function}: {name} has dtype {dout.dtype}, expected {dtype}")


def check_cache(function: str, cache: Any, expected: type) -> None:
    """Check that a cache comes from the forward whose backward is called.

    Raises
    ------
    TypeError
        If it is not.
    """
    if not isinstance(cache, expected):
        forward = function.replace("_backward", "_forward")
        raise InputTypeError(
            f"{function}: cache is a {type(cache).__name__}, expected the {expected.__name__} of {forward}"
        )


def as_mask(function: str, name: str, mask: Array, shape: tuple[int, ...], axes: str) -> np.ndarray:
    """Check a mask and return it as a NumPy array of booleans.

    Parameters
    ----------
    function, name : str
        The names of the calling function and of the argument, for the errors.
    mask : array
        Booleans, or numbers that are exactly 0 or 1. NaN, 0.5 and -1 are errors: a mask of such values is
        a mistake, for example weights or lengths in its place.
    shape : tuple of int
        The shape that the mask must have.
    axes : str
        The axes as the error names them, such as ``"N, T"``.

    Returns
    -------
    array of bool

    Raises
    ------
    ValueError
        If the shape differs, or a value is neither 0 nor 1.
    TypeError
        If the mask does not hold booleans or real numbers.
    """
    check_plain(f"{function}: {name}", mask)
    mask = np.asarray(mask)
    if mask.shape != shape:
        raise InputError(f"{function}: {name} has shape {mask.shape}, expected ({axes}) = {shape}")
    if mask.dtype != bool:
        _check_mask_values(function, name, mask)
    return mask.astype(bool, copy=False)


def as_lengths(function: str, lengths: Array, N: int, most: int, axis: str) -> np.ndarray:
    """Check the numbers of real rows of N sequences and return them as a NumPy array (N,).

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors.
    lengths : (N,) integers in [0, most]
    N, most : int
    axis : str
        The axis whose size ``most`` is, for the errors.

    Raises
    ------
    ValueError
        If they are not in that range, one for each sequence.
    TypeError
        If they are not integers.
    """
    counts = as_array(f"{function}: lengths", lengths)
    if not counts.size:  # an empty list is an array of floats
        counts = counts.astype(np.intp)
    if counts.shape != (N,) or counts.dtype.kind not in "iu":
        raise (InputError if counts.shape != (N,) else InputTypeError)(
            f"{function}: lengths has shape {counts.shape} and dtype {counts.dtype}, expected {N} integers"
        )
    if counts.size and (counts.min() < 0 or counts.max() > most):
        wrong = counts.max() if counts.max() > most else counts.min()
        raise InputError(f"{function}: lengths holds {wrong}, expected numbers from 0 to {axis} = {most}")
    return counts.astype(np.intp)


def as_float_mask(function: str, name: str, mask: Array, shape: tuple[int, ...], like: Array) -> Array:
    """Check a mask (N, T) that a layer multiplies with; return its zeros and ones in the dtype of ``like``.

    The values of a mask on a GPU are not checked, because reading them would wait for the device.

    Raises
    ------
    ValueError
        If the mask has another shape than expected, or a value is neither 0 nor 1.
    TypeError
        If the mask and ``like`` belong to different libraries, or the mask has floats of another dtype.
    """
    ops_of(function, **{name: mask}, like=like)
    if mask.dtype.kind in "biu":
        mask = mask.astype(like.dtype)
    if mask.shape != shape or mask.dtype != like.dtype:
        raise (InputError if mask.shape != shape else InputTypeError)(
            f"{function}: {name} has shape {mask.shape} and dtype {mask.dtype}, "
            f"expected (N, T) = {shape} and {like.dtype}"
        )
    if isinstance(mask, np.ndarray):
        _check_mask_values(function, name, mask)
    return mask


def as_array(argument: str, values: Any) -> np.ndarray:
    """Nested lists, or a plain array, as a NumPy array. Errors begin with ``argument``.

    Raises
    ------
    ValueError
        If they are lists of different lengths.
    TypeError
        If it is a matrix, a masked array or of another subclass of ``numpy.ndarray``.
    """
    check_plain(argument, values)
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{argument} has rows of different lengths, expected an array") from None


def as_padded(function: str, name: str, rows: Any, expected: str = "rows padded with <NULL>") -> np.ndarray:
    """Sentences as an array; ``expected`` is what lists of different lengths should be.

    Raises
    ------
    ValueError
        If they are lists of different lengths.
    """
    check_plain(f"{function}: {name}", rows)
    try:
        return np.asarray(rows)
    except ValueError:
        raise InputError(f"{function}: {name} has rows of different lengths, expected {expected}") from None


def as_tokens(function: str, name: str, tokens: Array, size: int, *, of: str = "tokens") -> Array:
    """Check tokens or labels and return them as int64.

    A narrow dtype such as uint8 saves memory in a file. It must not reach arithmetic: a model with a
    vocabulary of 1,000 words writes tokens that uint8 cannot hold.

    Parameters
    ----------
    function, name : str
        The names of the calling function and of the argument, for the errors.
    tokens : array of integers
        Of any integer dtype and any shape.
    size : int
        The number of words in the vocabulary, or of classes.
    of : "tokens" or "classes"
        What the numbers are, for the errors.

    Returns
    -------
    array of int64
        ``tokens`` itself if it already has this dtype.

    Raises
    ------
    TypeError
        If the dtype is not an integer dtype. Booleans are refused too.
    IndexError
        If a token is not in [0, size).
    """
    check_plain(f"{function}: {name}", tokens)
    if tokens.dtype.kind not in "iu" and tokens.size:  # an empty list is an array of floats
        raise InputTypeError(f"{function}: {name} has dtype {tokens.dtype}, expected integers")
    if tokens.size and (tokens.min() < 0 or tokens.max() >= size):
        wrong = tokens.max() if tokens.max() >= size else tokens.min()
        if of == "classes":
            raise OutOfRangeError(f"{function}: {name} holds {wrong}, expected classes from 0 to {size - 1}")
        raise OutOfRangeError(f"{function}: {name} holds the token {wrong}, the vocabulary has {size} words")
    return tokens.astype(np.int64, copy=False)


def check_rng(function: str, rng: Any) -> None:
    """Check that ``rng`` is a NumPy Generator, or None, for a function that is called again and again.

    An integer seed is refused: it would give the same dropout masks in every iteration, or the same order in
    every epoch.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise InputTypeError(f"{function}: rng is {rng!r}, expected a numpy Generator or None")


def as_generator(function: str, rng: Any) -> np.random.Generator:
    """A generator, made from a seed unless it is one, for a function that is called once.

    None is refused: NumPy would take a seed from the system, and the results could not be repeated.

    Raises
    ------
    TypeError, ValueError
        If ``rng`` is neither a generator nor a seed.
    """
    kind: type[Exception] = InputTypeError
    if rng is not None and not isinstance(rng, bool | np.bool_):
        try:
            return np.random.default_rng(rng)
        except ValueError:
            kind = InputError
        except TypeError:
            pass
    raise kind(f"{function}: rng is {rng!r}, expected a numpy Generator or a seed, an integer of at least 0")


def as_scalar(function: str, name: str, value: Any) -> float:
    """A number, or an array () of one, as a float.

    Raises
    ------
    TypeError
        If it is neither.
    """
    is_number = isinstance(value, Real) or (getattr(value, "shape", None) == () and value.dtype.kind in "fiu")
    if not is_number:
        raise InputTypeError(f"{function}: {name} is {described(value)}, expected a number")
    return float(value)


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
        _check_dtype(function, name, dtype)
    for name, dtype in rest:
        if dtype != first[1]:
            raise InputTypeError(f"{function}: {name} has dtype {dtype}, expected {first[1]} as {first[0]}")


def _check_dtype(function: str, name: str, dtype: Any) -> None:
    if not isinstance(dtype, np.dtype):
        raise InputTypeError(
            f"{function}: {name} is an array with dtype {dtype}, expected a NumPy or CuPy array"
        )
    if dtype.kind != "f" or dtype.itemsize not in (4, 8) or not dtype.isnative:
        raise InputTypeError(
            f"{function}: {name} has dtype {dtype}, expected float32 or float64 in native byte order"
        )


def _check_mask_values(function: str, name: str, mask: np.ndarray) -> None:
    check_real(f"{function}: {name}", mask)
    wrong = mask[(mask != 0) & (mask != 1)]
    if wrong.size:
        raise InputError(f"{function}: {name} holds {wrong[0]}, expected booleans, or 0 and 1 only")
