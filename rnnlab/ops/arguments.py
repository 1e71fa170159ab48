"""The arguments of the array primitives that index memory, declared once and checked before it is touched.

A declaration lists the arrays of a function with their axes:

    gates! (n, 4H); prev_c (n, H); slots (n, L) -1..R; dscores! (M, V) = scores

- ``(n, 4H)``: the axes. A letter has one value in all arrays of a call; ``4H`` is four times H; ``(*)`` is
  any shape, the same in all arrays that are declared so.
- ``!``: the function writes this array. It must not overlap any other array, but it may be identical to the
  array that ``=`` names.
- ``-1..R``: an array of integers below R, where those below 0 mean "no row". The other arrays are float32 or
  float64, all of the same dtype and in native byte order. ``float64``, ``uint32`` or ``int64`` after the axes
  declares an array of that dtype, independent of the others.

:func:`checked` checks the arguments of a function in NumPy. Compiled kernels check theirs in compiled code
(:mod:`rnnlab.ops.numba.guard`) and come here for the message.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rnnlab.errors import InputError, InputTypeError, OutOfRangeError
from rnnlab.types import Array

__all__ = [
    "PRIMITIVES",
    "Argument",
    "Declaration",
    "add_seen",
    "check_scale",
    "checked",
    "is_unusual",
    "normal_divisor",
]
_form = operator.attrgetter("shape", "dtype")
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_ARGUMENT = re.compile(r"(\w+)(!?) \(([^)]*)\)(?: (-1|0)\.\.(\w+))?(?: (float64|uint32|int64))?(?: = (\w+))?")
_AXIS = re.compile(r"(\d*)(\w+)")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _owner(array: Any) -> int:
    """The identity of what owns the memory of an array, the same for all arrays in that memory.

    Raises
    ------
    AttributeError
        If it is neither a NumPy array nor a lease (:mod:`rnnlab.ops.numba.memory`).
    """
    base = array.base
    if base is None:
        return id(array)
    if isinstance(base, np.ndarray):
        return _owner(base)
    return id(base.lease_of)


def add_seen(seen: set[Any], forms: Any) -> None:
    """Add the shapes and dtypes of a call to those of past calls, which are forgotten if there are many."""
    if len(seen) >= 4096:
        seen.clear()
    seen.add(forms)


class Argument(NamedTuple):
    """The declaration of one array.

    Attributes
    ----------
    name : str
    written : bool
    axes : (factor, letter) of each axis, or None
        None is any shape.
    lowest : int
        Of an array of integers: the smallest index.
    size : str
        Of an array of integers: the letter that the indices are below. Empty for floating-point arrays.
    own_dtype : str
        The array's dtype if the others do not determine it.
    may_be : str
        The array that this one may be identical with.
    """

    name: str
    written: bool
    axes: tuple[tuple[int, str], ...] | None
    lowest: int
    size: str
    own_dtype: str
    may_be: str


class Declaration:
    """The arrays of one function.

    Parameters
    ----------
    text : str
        See the module's docstring.
    """

    def __init__(self, text: str) -> None:
        self.arguments = tuple(map(_parse, text.split("; ")))
        numbered = tuple(enumerate(self.arguments))
        self._written = tuple(k for k, argument in numbered if argument.written)
        self._pairs = tuple(
            (i, j, a.may_be == b.name or b.may_be == a.name)
            for i, a in numbered
            for j, b in numbered
            if i < j and (a.written or b.written)
        )
        self._indices = tuple(
            (k, argument.lowest, *self.axis_of(argument.size)) for k, argument in numbered if argument.size
        )
        self._fitting: set[tuple[Any, ...]] = set()  # shapes and dtypes of past calls

    def axis_of(self, letter: str) -> tuple[int, int]:
        """The number of the first array that has an axis of a letter's size, and the number of this axis."""
        for k, argument in enumerate(self.arguments):
            for axis, (factor, name) in enumerate(argument.axes or ()):
                if factor == 1 and name == letter:
                    return k, axis
        raise InputError(f"no axis has the size {letter}")

    def check(self, function: str, arrays: Mapping[str, Any]) -> None:
        """Check the arrays of one call by name; those that are missing or None are left out.

        Raises
        ------
        TypeError
            If an argument is not a NumPy array, or its dtype is not as declared.
        ValueError
            If a shape does not fit, an array to write is read-only, or arrays overlap.
        IndexError
            If an index is out of range.
        """
        present = [argument for argument in self.arguments if arrays.get(argument.name) is not None]
        self._check_dtypes(function, present, arrays)
        sizes = _check_shapes(function, present, arrays)
        for argument in present:
            array = arrays[argument.name]
            if argument.size and argument.size in sizes:
                _check_indices(function, argument, array, sizes[argument.size])
            if argument.written and isinstance(array, np.ndarray) and not array.flags.writeable:
                raise InputError(f"{function}: {argument.name} is read-only, and this function writes it")
        self._check_overlaps(function, present, arrays)

    def fits(self, arrays: tuple[Any, ...]) -> bool:
        """A quick check: true if the arrays certainly fit, false if :meth:`check` has to decide.

        Parameters
        ----------
        arrays
            All arrays of the declaration, in its order.
        """
        try:
            forms = tuple(map(_form, arrays))
            owners = list(map(_owner, arrays))
            writeable = all([arrays[k].flags.writeable for k in self._written])
        except AttributeError:
            return False
        if not writeable or forms not in self._fitting:
            return False
        if len(set(owners)) < len(owners):
            for i, j, may_be in self._pairs:
                if owners[i] != owners[j] or (may_be and arrays[i] is arrays[j]):
                    continue
                if np.may_share_memory(arrays[i], arrays[j]):
                    return False
        for k, lowest, place, axis in self._indices:
            array = arrays[k]
            if array.size and not (array.max() < arrays[place].shape[axis] and (lowest or array.min() >= 0)):
                return False
        return True

    def remember(self, arrays: tuple[Any, ...]) -> None:
        """Store the shapes and dtypes of these arrays as fitting ones, for :meth:`fits`."""
        add_seen(self._fitting, tuple(map(_form, arrays)))

    def copied(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call, with copies of arrays that are not contiguous, aligned and writeable.

        Arrays that the call writes stay as they are.
        """
        read = {argument.name for argument in self.arguments if not argument.written}
        return {
            name: array.copy() if name in read and is_unusual(array) else array
            for name, array in arrays.items()
        }

    def _check_dtypes(self, function: str, present: list[Argument], arrays: Mapping[str, Any]) -> None:
        first = None
        for argument in present:
            array = arrays[argument.name]
            if not hasattr(array, "dtype") or not hasattr(array, "shape"):
                kind = f"{type(array).__module__}.{type(array).__name__}"
                raise InputTypeError(f"{function}: {argument.name} is {kind}, expected a NumPy array")
            if argument.size:
                if array.dtype.kind not in "iu":
                    raise InputTypeError(
                        f"{function}: {argument.name} has dtype {array.dtype}, expected integers"
                    )
                continue
            if argument.own_dtype:
                if array.dtype != np.dtype(argument.own_dtype):
                    raise InputTypeError(
                        f"{function}: {argument.name} has dtype {array.dtype}, expected {argument.own_dtype}"
                    )
                continue
            if array.dtype not in _FLOATS:
                order = "" if array.dtype.isnative else " in the other byte order"
                raise InputTypeError(
                    f"{function}: {argument.name} has dtype {array.dtype.name}{order}, "
                    "expected float32 or float64; convert it with astype"
                )
            first = first or (argument.name, array.dtype)
            if array.dtype != first[1]:
                raise InputTypeError(
                    f"{function}: {argument.name} has dtype {array.dtype}, "
                    f"expected {first[1]}, the dtype of {first[0]}"
                )

    def _check_overlaps(self, function: str, present: list[Argument], arrays: Mapping[str, Any]) -> None:
        for argument in present:
            written = arrays[argument.name]
            if not argument.written or not isinstance(written, np.ndarray):
                continue
            for other in present:
                array = arrays[other.name]
                if other is argument or not isinstance(array, np.ndarray):
                    continue
                may_be = argument.name == other.may_be or other.name == argument.may_be
                if may_be and _identical(written, array):
                    continue
                if np.may_share_memory(written, array) and np.shares_memory(written, array):
                    raise InputError(
                        f"{function}: {argument.name}, which is written, overlaps {other.name} in memory; "
                        "pass a copy of one of them"
                    )


def is_unusual(array: Any) -> bool:
    """Whether an array is strided, unaligned or read-only: compiled kernels do not take it."""
    return isinstance(array, np.ndarray) and not array.flags.carray


def checked(function: _Function) -> _Function:
    """Check the arguments of a primitive, declared in :data:`PRIMITIVES`, before it runs."""
    name = function.__name__
    declaration = PRIMITIVES[name]
    signature = inspect.signature(function)
    positions = {key: place for place, key in enumerate(signature.parameters)}
    places = [positions[argument.name] for argument in declaration.arguments]
    count = max(places) + 1
    arrays_of = operator.itemgetter(*places) if len(places) > 1 else lambda arguments: (arguments[places[0]],)

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        arrays = arrays_of(arguments) if len(arguments) >= count else ()
        if not arrays or not declaration.fits(arrays):
            declaration.check(name, signature.bind(*arguments, **options).arguments)
            if arrays and all(isinstance(array, np.ndarray) for array in arrays):
                declaration.remember(arrays)
        return function(*arguments, **options)

    return run  # type: ignore[return-value]


def _parse(text: str) -> Argument:
    found = _ARGUMENT.fullmatch(text)
    if found is None:
        raise InputError(f"{text!r} declares no argument; see rnnlab.ops.arguments")
    name, written, axes, lowest, size, own_dtype, may_be = found.groups()
    parsed = None
    if axes != "*":
        parts = (_AXIS.fullmatch(axis) for axis in axes.rstrip(",").split(", "))
        parsed = tuple((int(part[1] or 1), part[2]) for part in parts if part)
    return Argument(name, bool(written), parsed, int(lowest or 0), size or "", own_dtype or "", may_be or "")


def _check_shapes(function: str, present: list[Argument], arrays: Mapping[str, Any]) -> dict[str, int]:
    """The size of each letter."""
    sizes: dict[str, int] = {}
    whole: tuple[str, Any] | None = None
    for argument in present:
        shape = arrays[argument.name].shape
        if argument.axes is None:
            whole = whole or (argument.name, shape)
            if shape != whole[1]:
                raise InputError(
                    f"{function}: {argument.name} has shape {shape}, expected {whole[1]}, "
                    f"the shape of {whole[0]}"
                )
        elif len(shape) != len(argument.axes):
            raise InputError(
                f"{function}: {argument.name} has shape {shape}, expected {len(argument.axes)} axes, "
                f"{_axes(argument)}"
            )
    votes: dict[str, dict[int, int]] = {}
    for argument in present:
        for (factor, letter), size in zip(argument.axes or (), arrays[argument.name].shape, strict=False):
            if factor == 1:
                counts = votes.setdefault(letter, {})
                counts[size] = counts.get(size, 0) + 1
            elif size % factor == 0:
                counts = votes.setdefault(letter, {})
                counts[size // factor] = counts.get(size // factor, 0) + 1
    for letter, counts in votes.items():  # the size of most arrays, so that the message names the odd one out
        sizes[letter] = max(counts, key=lambda size: counts[size])
    for argument in present:
        if argument.axes is None:
            continue
        shape = arrays[argument.name].shape
        expected = tuple(factor * sizes.get(letter, 0) for factor, letter in argument.axes)
        if shape != expected:
            raise InputError(
                f"{function}: {argument.name} has shape {shape}, expected {_axes(argument)} = {expected}"
            )
    return sizes


def _axes(argument: Argument) -> str:
    axes = [f"{factor if factor > 1 else ''}{letter}" for factor, letter in argument.axes or ()]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"


def _check_indices(function: str, argument: Argument, array: Array, size: int) -> None:
    if isinstance(array, np.ndarray) and array.size:
        least, most = int(array.min()), int(array.max())
        if (argument.lowest == 0 and least < 0) or most >= size:
            raise OutOfRangeError(
                f"{function}: {argument.name} has indices from {least} to {most}, "
                f"expected indices from {argument.lowest} to {size - 1}"
            )


def _identical(a: Array, b: Array) -> bool:
    same = a.__array_interface__["data"] == b.__array_interface__["data"]
    return same and a.shape == b.shape and a.strides == b.strides


_STEP_FORWARD = "prev_h (n, H); h! (n, H)"
_ATTENTION = "memory (R, C); slots (n, L) -1..R"
_UPDATE = "w! (P,); dw (P,)"
PRIMITIVES: dict[str, Declaration] = {
    name: Declaration(text)
    for name, text in {
        # arrays and products
        "take": "x (M, D); rows (n,) 0..M; out! (n, D)",
        "put": "x (n, D); rows (n,) 0..M; out! (M, D)",
        "clear": "x! (P,)",
        "affine": "x (M, D); w (D, H); b (H,)",
        "affine_into": "x (n, K); w (K, G); b (G,); out! (n, G)",
        "matmul_into": "x (n, K); w (K, G); out! (n, G)",
        "matmul_add": "x (n, K); w (K, G); out! (n, G)",
        "add_column_sums": "x (M, N); out! (N,)",
        "add_affine_gradients": "x (n, K); dout (n, G); dW! (K, G); db! (G,)",
        # words and scores
        "embedding_gradient": "dout (M, W); tokens (M,) 0..V; dW! (V, W)",
        "softmax_cross_entropy": "scores (M, V); targets (M,) 0..V; dscores! (M, V) = scores",
        "log_softmax": "scores (M, V); out! (M, V) = scores",
        "top": "scores (n, V)",
        "draw": "scores (n, V); uniform (n,) float64",
        "max_pool": "x (n, L, V); values! (n, V)",
        "max_pool_gradient": "dvalues (n, V); slots (n, V) 0..L; dx! (n, L, V)",
        "multilabel_margin": "scores (M, V); words (M, K) -1..V; dscores! (M, V)",
        # steps of recurrent cells
        "rnn_forward": "gates! (n, H); h! (n, H)",
        "rnn_backward": "dh (n, H); gates (n, H); da! (n, H) = dh",
        "lstm_forward": "gates! (n, 4H); prev_c (n, H); c! (n, H); tanh_c! (n, H); h! (n, H)",
        "lstm_backward": "dh (n, H); dc! (n, H); gates (n, 4H); prev_c (n, H); tanh_c (n, H); da! (n, 4H)",
        "lstm_dropped_forward": (
            "gates! (n, 4H); mask (n, H); prev_c (n, H); c! (n, H); tanh_c! (n, H); h! (n, H)"
        ),
        "lstm_dropped_backward": (
            "dh (n, H); dc! (n, H); gates (n, 4H); mask (n, H); prev_c (n, H); tanh_c (n, H); da! (n, 4H)"
        ),
        "gru_gates_forward": "gates! (n, 3H); prev_h (n, H); reset_h! (n, H)",
        "gru_gates_backward": "dreset_h! (n, H); dh! (n, H); gates (n, 3H); prev_h (n, H); da! (n, 3H)",
        "gru_candidate_forward": f"gates! (n, 3H); {_STEP_FORWARD}",
        "gru_candidate_backward": "dh! (n, H); gates (n, 3H); prev_h (n, H); da! (n, 3H)",
        "gru_candidate_dropped_forward": f"gates! (n, 3H); mask (n, H); {_STEP_FORWARD}",
        "gru_candidate_dropped_backward": (
            "dh! (n, H); gates (n, 3H); mask (n, H); prev_h (n, H); da! (n, 3H)"
        ),
        "simplified_gru_forward": f"gates! (n, 2H); {_STEP_FORWARD}",
        "simplified_gru_backward": "dh! (n, H); gates (n, 2H); prev_h (n, H); da! (n, 2H)",
        "simplified_gru_dropped_forward": f"gates! (n, 2H); mask (n, H); {_STEP_FORWARD}",
        "simplified_gru_dropped_backward": (
            "dh! (n, H); gates (n, 2H); mask (n, H); prev_h (n, H); da! (n, 2H)"
        ),
        # dropout and zoneout
        "dropout": "x (*); out! (*) = x",
        "dropout_mask": "out! (*)",
        "zoneout_forward": "prev (n, H); h! (n, H)",
        "zoneout_backward": "dh! (n, H); dprev! (n, H)",
        # attention
        "additive_attention_forward": (
            f"query (n, A); keys (R, A); v (A,); {_ATTENTION}; weights! (n, L); context! (n, C)"
        ),
        "additive_attention_backward": (
            f"dcontext (n, C); query (n, A); keys (R, A); v (A,); {_ATTENTION}; weights (n, L); "
            "dscores! (n, L); dquery! (n, A); dkeys! (R, A); dv! (n, A)"
        ),
        "dot_attention_forward": (
            f"query (n, A); keys (R, A); {_ATTENTION}; weights! (n, L); context! (n, C)"
        ),
        "dot_attention_backward": (
            f"dcontext (n, C); query (n, A); keys (R, A); {_ATTENTION}; weights (n, L); "
            "dscores! (n, L); dquery! (n, A); dkeys! (R, A)"
        ),
        "attention_memory_gradient": "dcontext (n, C); weights (n, L); slots (n, L) -1..R; dmemory! (R, C)",
        # updates of flat parameters
        "sgd": _UPDATE,
        "momentum": f"{_UPDATE}; velocity! (P,)",
        "rmsprop": f"{_UPDATE}; cache! (P,)",
        "adagrad": f"{_UPDATE}; cache! (P,)",
        "adadelta": f"{_UPDATE}; cache! (P,); delta_cache! (P,)",
        "adam": f"{_UPDATE}; m! (P,); v! (P,)",
        "adamw": f"{_UPDATE}; m! (P,); v! (P,)",
        "decay_weights": "w! (P,)",
        "move_towards": "x! (P,); target (P,)",
        "sum_of_squares": "x (P,)",
        "clip_values": "x! (P,)",
        "flush_subnormals": "x! (P,)",
    }.items()
}


def check_scale(function: str, scale: Any, rows: int) -> None:
    """Check that a scale is a number, or a factor (M,) of each row.

    Raises
    ------
    ValueError, TypeError
        If the array has another shape, or a dtype that is not of floating-point numbers.
    """
    shape = getattr(scale, "shape", None)  # numpy.shape would copy an array from a GPU
    shape = np.shape(scale) if shape is None else shape
    if not shape:
        return
    if shape != (rows,):
        raise InputError(f"{function}: scale has shape {shape}, expected a number or (M,) = {(rows,)}")
    if getattr(scale, "dtype", None) not in _FLOATS:
        found = getattr(scale, "dtype", type(scale).__name__)
        raise InputTypeError(f"{function}: scale has dtype {found}, expected float32 or float64")


def normal_divisor(value: float, dtype: np.dtype) -> float:
    """The positive number nearest to ``value`` that is, like its inverse, a normal number of the dtype.

    Kernels treat subnormal numbers as zero, and minus infinity times zero is NaN.
    """
    least = float(np.finfo(dtype).tiny)
    return min(max(float(value), least), 0.5 / least)
