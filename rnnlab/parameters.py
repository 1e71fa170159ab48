"""Parameters: named arrays that are views of one contiguous buffer.

Because a model's parameters (and its gradients) are one flat array, clipping is one norm, an optimiser step
is one pass, and a sum over machines needs few messages.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.errors import InputError, InputTypeError, MissingDataError, OutOfRangeError
from rnnlab.types import Array, Shape, Shapes


class Parameters(MutableMapping[str, Array]):
    """A mapping from names to arrays, all of them views of :attr:`flat`.

    Parameters
    ----------
    shapes : mapping of str to tuple of int
        The name and the shape of each array, in the order of the buffer.
    dtype : dtype
        The dtype of all arrays.
    flat : 1-D array, optional
        The buffer that the arrays are views of. By default it is a new array of zeros.

    Attributes
    ----------
    on_complete : callable or None
        Called by :meth:`complete`, with the names.

    Raises
    ------
    ValueError
        If ``flat`` does not have the size and the dtype that the shapes ask for.
    TypeError, ValueError
        As :func:`checked_shapes`.

    Examples
    --------
    >>> params = Parameters({"W": (2, 3), "b": (3,)})
    >>> params["b"] = [1, 2, 3]               # copies into the view
    >>> params.flat[-3:]
    array([1., 2., 3.], dtype=float32)
    """

    def __init__(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        dtype: DTypeLike = np.float32,
        *,
        flat: Array | None = None,
    ) -> None:
        self.shapes = checked_shapes("Parameters", shapes)
        self._offsets = [0]
        for shape in self.shapes.values():
            self._offsets.append(self._offsets[-1] + prod(shape))
        size = self._offsets[-1]
        if flat is None:
            flat = np.zeros(size, dtype)
        elif flat.shape != (size,) or flat.dtype != np.dtype(dtype):
            raise InputError(
                f"Parameters: flat has shape {flat.shape} and dtype {flat.dtype}, "
                f"expected ({size},) and {np.dtype(dtype)}"
            )
        self._flat = flat
        self.on_complete: Callable[[Collection[str]], None] | None = None
        self._views = {
            name: flat[start:stop].reshape(shape)
            for (name, shape), start, stop in zip(
                self.shapes.items(), self._offsets, self._offsets[1:], strict=False
            )
        }

    @property
    def flat(self) -> Array:
        """All numbers, (P,). The arrays by name are views of it. What is assigned to it is copied."""
        return self._flat

    @flat.setter
    def flat(self, values: Array) -> None:
        if values is not self._flat:  # as it is after an operation in place, flat -= step
            _copy("flat", values, self._flat)

    @property
    def dtype(self) -> np.dtype:
        """The dtype that all arrays share."""
        return self._flat.dtype

    def __getitem__(self, name: str) -> Array:
        try:
            return self._views[name]
        except KeyError:
            raise MissingDataError(f"no parameter {name!r}; there are {', '.join(self.shapes)}") from None

    def __setitem__(self, name: str, value: Any) -> None:
        _copy(f"parameter {name!r}", value, self[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self).get("_views", ()) and name not in ("flat", "on_complete"):
            raise InputTypeError(f"parameter {name!r} is set by params[{name!r}] = ..., not as an attribute")
        super().__setattr__(name, value)

    def __delitem__(self, name: str) -> None:
        raise InputTypeError(f"parameter {name!r} is a view of a shared buffer and cannot be deleted")

    # Mapping's __eq__ would compare arrays, which does not give a single truth value.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def __repr__(self) -> str:
        rows = "".join(f"\n  {name}: {shape}" for name, shape in self.shapes.items())
        return f"Parameters({self.flat.size:,} x {self.dtype}){rows}"

    def scope(self, prefix: str) -> Scope:
        """The parameters whose names begin with ``prefix``, by the rest of their names.

        A layer with fixed parameter names can therefore be used several times in a model.

        Examples
        --------
        >>> params = Parameters({"encoder_W": (2, 3), "encoder_b": (3,), "decoder_W": (3, 1)})
        >>> list(params.scope("encoder_"))
        ['W', 'b']
        """
        return Scope(self, prefix)

    def zeros_like(self) -> Parameters:
        """Parameters with the same names and shapes, all zero, for gradients."""
        return Parameters(self.shapes, self.dtype, flat=_zeros_like(self.flat))

    def copy(self) -> Parameters:
        """A deep copy."""
        return Parameters(self.shapes, self.dtype, flat=self.flat.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        # for copy, deepcopy and pickle: new views of the copied buffer, without on_complete
        return _of_buffer, (self.shapes, self.flat)

    def on(self, asarray: Callable[[Array], Array]) -> Parameters:
        """Parameters over ``asarray(flat)``, for example on another device.

        They share memory with these if ``asarray`` returns the buffer itself.
        """
        return Parameters(self.shapes, self.dtype, flat=asarray(self.flat))

    def place(self, name: str) -> slice:
        """The slice of :attr:`flat` that holds a parameter."""
        size = self[name].size
        start = self._offsets[list(self.shapes).index(name)]
        return slice(start, start + size)

    def complete(self, names: Collection[str]) -> None:
        """Report that these gradients are complete: the backward pass will not read or write them again.

        A backward pass reports each name at most once, and in an order that does not depend on the batch.
        """
        if self.on_complete is not None:
            self.on_complete(names)

    def name_at(self, index: int) -> str:
        """The name of the parameter that ``flat[index]`` belongs to.

        Raises
        ------
        IndexError
            If ``index`` is outside the buffer.
        """
        if not 0 <= index < self.flat.size:
            raise OutOfRangeError(f"index {index} is outside the buffer of {self.flat.size} numbers")
        return list(self.shapes)[bisect_right(self._offsets, index) - 1]


class Scope(Mapping[str, Array]):
    """A view of the entries of a mapping whose names begin with a prefix, by the rest of their names.

    Parameters
    ----------
    whole : mapping of str to array
        Parameters or gradients.
    prefix : str
    """

    __eq__ = object.__eq__  # as in Parameters
    __hash__ = object.__hash__

    def __init__(self, whole: Mapping[str, Array], prefix: str) -> None:
        self._whole, self._prefix = whole, prefix

    def __getitem__(self, name: str) -> Array:
        return self._whole[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in self._whole if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Scope({self._prefix!r}: {', '.join(self)})"

    def scope(self, prefix: str) -> Scope:
        """A scope within this one."""
        return Scope(self._whole, self._prefix + prefix)


def check_parameters(function: str, name: str, value: Any, hint: str = ", as params.zeros_like()") -> None:
    """Check that an argument is Parameters.

    Raises
    ------
    TypeError
        If it is not.
    """
    if not isinstance(value, Parameters):
        raise InputTypeError(f"{function}: {name} is a {type(value).__name__}, expected Parameters{hint}")


def checked_shapes(function: str, shapes: Any) -> Shapes:
    """The shapes of parameters with Python's integers; ``function`` is the beginning of errors.

    Raises
    ------
    TypeError, ValueError
        If it is no mapping, a name is no text or empty, or a shape is no tuple of integers of at least 0.
    """
    if not isinstance(shapes, Mapping):
        raise InputTypeError(
            f"{function}: found a {type(shapes).__name__}, expected shapes by name, a mapping"
        )
    return {_checked_name(function, name): _checked_shape(function, name, shapes[name]) for name in shapes}


def _checked_name(function: str, name: Any) -> str:
    if not isinstance(name, str):
        raise InputTypeError(f"{function}: the name {name!r} is a {type(name).__name__}, expected a text")
    if not name:
        raise InputError(f"{function}: a name is empty, expected a text")
    return name


def _checked_shape(function: str, name: str, shape: Any) -> Shape:
    try:
        sizes = tuple(map(operator.index, shape)) if isinstance(shape, tuple | list) else None
    except TypeError:
        sizes = None
    if sizes is None:
        raise InputTypeError(f"{function}: the shape of {name!r} is {shape!r}, expected a tuple of integers")
    if min(sizes, default=0) < 0:
        raise InputError(f"{function}: the shape of {name!r} is {sizes}, expected sizes of at least 0")
    return sizes


def distinct(owner: str, *parts: Mapping[str, Shape], place: str = "the cell's recurrent_shapes") -> Shapes:
    """The shapes of all parts together.

    The error names ``owner``, the model that has the parts, and ``place``, where its user chooses names.

    Raises
    ------
    ValueError
        If two parts have a parameter of the same name, for example a custom cell and the model.
    """
    shapes: Shapes = {}
    for part in parts:
        if both := sorted(shapes.keys() & part.keys()):
            raise InputError(
                f"{owner}: two parts have a parameter {both[0]!r}, expected other names in {place}"
            )
        shapes |= part
    return shapes


def merged(places: Iterable[slice]) -> Iterator[slice]:
    """The slices of a buffer in their order, with adjacent ones merged and without empty ones.

    Examples
    --------
    >>> list(merged([slice(5, 8), slice(0, 3), slice(3, 4)]))
    [slice(0, 4, None), slice(5, 8, None)]
    """
    start = stop = 0
    for place in sorted(places, key=lambda place: place.start):
        if place.start > stop:
            if stop > start:
                yield slice(start, stop)
            start = place.start
        stop = place.stop
    if stop > start:
        yield slice(start, stop)


def scoped(prefix: str, shapes: Mapping[str, Shape]) -> Shapes:
    """Shapes whose names get a prefix, so that :meth:`Parameters.scope` of the prefix finds them."""
    return {prefix + name: shape for name, shape in shapes.items()}


def _of_buffer(shapes: Mapping[str, Shape], flat: Array) -> Parameters:
    return Parameters(shapes, flat.dtype, flat=flat)


def _zeros_like(array: Array) -> Array:
    zeros = array.copy()  # works in every library
    zeros[...] = 0
    return zeros


def _copy(name: str, value: Any, target: Array) -> None:
    """Copy real numbers of the target's shape into it, from the host or its own device."""
    if isinstance(value, np.ma.MaskedArray):  # its mask would be ignored
        raise InputTypeError(f"{name} is set to a MaskedArray, expected a plain array")
    value = value if isinstance(value, type(target)) else np.asarray(value)
    if value.dtype.kind not in "biuf":
        raise InputTypeError(f"{name} is set to {value.dtype}, expected real numbers")
    if value.shape != target.shape:
        raise InputError(f"{name} has shape {target.shape}, the array given has {value.shape}")
    if isinstance(value, np.ndarray):
        value = _converted(name, value, target.dtype)
    if isinstance(value, type(target)):
        target[...] = value
    else:
        target.set(value)  # CuPy's method to copy from the host


def _converted(name: str, value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The values in another dtype, unless finite ones would become infinite."""
    try:
        with np.errstate(over="raise"):
            return value.astype(dtype, copy=False)
    except FloatingPointError:
        raise InputError(f"{name}: a value is too large for {dtype}") from None
