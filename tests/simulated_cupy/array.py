"""The stand-in of ``cupy.ndarray``: as strict as CuPy's array, but in NumPy's memory."""

from __future__ import annotations

import functools
import numbers
import operator
from typing import Any

import numpy as np

from . import cuda

REDUCTIONS = ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin")
NUMPY_ONLY = {"initial", "kind", "mode", "where"}  # options that CuPy's functions lack
METHODS = (
    "cumsum",
    "take",
    "repeat",
    "clip",
    "reshape",
    "ravel",
    "flatten",
    "transpose",
    "swapaxes",
    "squeeze",
)


class Flags:
    def __init__(self, array: ndarray) -> None:
        flags = array._array.flags
        self.c_contiguous = flags.c_contiguous
        self.f_contiguous = flags.f_contiguous
        self.owndata = array.base is None

    def __getitem__(self, name: str) -> bool:
        return getattr(self, name.lower())


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """A wrapper of a NumPy array, so that NumPy cannot read its elements by accident."""

    __module__ = "cupy"
    __slots__ = ("_array", "_memory", "base")
    __hash__ = None

    def __init__(self, shape: Any, dtype: Any = float, *, order: str = "C") -> None:
        dtype = np.dtype(dtype)
        self._memory = cuda.alloc(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize).mem
        self._array = self._memory.view(shape, dtype, order)
        self.base: ndarray | None = None

    def _view(self, array: np.ndarray) -> ndarray:
        view = ndarray.__new__(ndarray)
        view._array, view._memory, view.base = array, self._memory, self if self.base is None else self.base
        return view

    # NumPy's protocols.

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            raise TypeError(f"numpy.{ufunc.__name__}.{method} on a CuPy array")
        return elementwise(ufunc, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from . import module

        ours = getattr(module, function.__name__, None)
        if function.__module__ != "numpy" or not callable(ours):
            raise TypeError(f"{function.__module__}.{function.__name__} on a CuPy array")
        return ours(*args, **kwargs)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._array.__array_interface__, "version": 3, "stream": 1}

    # Attributes.

    dtype = property(lambda self: self._array.dtype)
    shape = property(lambda self: self._array.shape)
    strides = property(lambda self: self._array.strides if self.size else (0,) * self.ndim)  # as CuPy's
    size = property(lambda self: self._array.size)
    ndim = property(lambda self: self._array.ndim)
    nbytes = property(lambda self: self._array.nbytes)
    itemsize = property(lambda self: self._array.itemsize)
    T = property(lambda self: self.transpose())
    flags = property(Flags)
    device = property(lambda self: cuda.Device(0))

    @property
    def data(self) -> Any:
        return cuda.MemoryPointer(self._memory, self._array.ctypes.data)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Any:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return repr(self._array)

    # Transfers to and from the host.

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> np.ndarray:
        _to_host(stream)
        if out is None:
            return self._array.copy(order=order)
        if not isinstance(out, np.ndarray) or out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError(f"get: out is not a NumPy array of shape {self.shape} and dtype {self.dtype}")
        np.copyto(out, self._array)
        return out

    def set(self, arr: np.ndarray, stream: Any = None) -> None:
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not (self._array.flags.c_contiguous or self._array.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        _to_device(stream)
        self._array[...] = arr

    def item(self) -> Any:
        _to_host()
        return self._array.item()

    def tolist(self) -> Any:
        _to_host()
        return self._array.tolist()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    # Elements.

    def __getitem__(self, key: Any) -> ndarray:
        return evaluate(_elements, (self._array, _index(key)), {}, self)

    def __setitem__(self, key: Any, value: Any) -> None:
        write(operator.setitem, self, _index(key), operand(value))

    def fill(self, value: Any) -> None:
        write(np.ndarray.fill, self, operand(value))

    def nonzero(self) -> tuple[ndarray, ...]:
        if cuda.thread.recording is not None:
            cuda.thread.recording.refuse("D2H transfers")
        cuda.transfers.synchronisations += 1  # the host needs the number of elements
        return wrap(self._array.nonzero())

    def argsort(self, axis: int | None = -1) -> ndarray:
        return evaluate(np.argsort, (self._array,), {"axis": axis, "kind": "stable"})

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", copy: bool = True) -> ndarray:
        options = {"order": order, "casting": casting, "copy": copy}
        return evaluate(np.ndarray.astype, (self._array, dtype), options, self)

    def copy(self, order: str = "C") -> ndarray:
        return evaluate(np.ndarray.copy, (self._array,), {"order": order})

    def view(self, dtype: Any = None) -> ndarray:
        return self._view(self._array.view() if dtype is None else self._array.view(dtype))

    def dot(self, other: ndarray, out: Any = None) -> ndarray:
        return call(np.dot, self, other, out=out)

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    def __reduce__(self) -> Any:
        return from_host, (self.get(),)


def _method(name: str, options: set[str] | None = None) -> Any:
    def function(array: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, name)(*args, **kwargs)

    def method(self: ndarray, *args: Any, **kwargs: Any) -> ndarray:
        if options is not None and kwargs.keys() - options:
            raise TypeError(f"{name}() got an unexpected keyword argument {min(kwargs.keys() - options)!r}")
        return call(function, self, *args, **kwargs)

    return method


for _name in REDUCTIONS:
    setattr(ndarray, _name, _method(_name, {"axis", "dtype", "out", "keepdims", "ddof"}))
for _name in METHODS:
    setattr(ndarray, _name, _method(_name))


def _to_host(stream: Any = None) -> None:
    recorder = cuda.thread.recording if stream is None else stream.recorder
    if recorder is not None:
        recorder.refuse("D2H transfers")
    cuda.transfers.to_host += 1


def _to_device(stream: Any = None) -> None:
    recorder = cuda.thread.recording if stream is None else stream.recorder
    if recorder is not None:
        recorder.refuse("H2D transfers")
    cuda.transfers.to_device += 1


def host(value: Any) -> Any:
    """The NumPy array inside a simulated one, also within tuples and lists; TypeError for NumPy arrays."""
    if isinstance(value, ndarray):
        return value._array
    if isinstance(value, np.ndarray):  # of any number of axes
        raise TypeError(f"Unsupported type {type(value)}: a CuPy function was given a NumPy array")
    if isinstance(value, tuple | list):
        return type(value)(map(host, value))
    return value


def operand(value: Any) -> Any:
    """As :func:`host` for an assigned value: a simulated array, a scalar, or a 0-d array of NumPy."""
    if isinstance(value, ndarray | numbers.Number | np.generic):
        return host(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value[()]  # the current value of the scalar
    raise TypeError(f"Unsupported type {type(value)}: expected a CuPy array or a scalar")


def wrap(result: Any, *sources: ndarray) -> Any:
    """A view of the source that shares the result's memory, or a new array; each element of a tuple."""
    if isinstance(result, tuple | list):
        return type(result)(wrap(element, *sources) for element in result)
    if not isinstance(result, np.ndarray | np.generic):
        return result
    result = np.asarray(result)
    for source in sources:
        if result is source._array:
            return source
        if np.may_share_memory(result, source._array):
            return source._view(result)
    order = "F" if result.flags.f_contiguous and not result.flags.c_contiguous else "C"
    array = ndarray(result.shape, result.dtype, order=order)
    if cuda.thread.recording is None:
        array._array[...] = result
    return array


def evaluate(function: Any, args: tuple[Any, ...], options: dict[str, Any], *sources: ndarray) -> Any:
    """The wrapped result of a function of NumPy arrays, computed now or by the captured graph."""
    if cuda.thread.recording is not None:
        return cuda.thread.recording.evaluate(function, args, options, lambda result: wrap(result, *sources))
    with np.errstate(all="ignore"):
        return wrap(function(*args, **options), *sources)


def write(function: Any, target: ndarray, *args: Any, **options: Any) -> None:
    """Call ``function(target, *args, **options)``, which writes ``target``, now or in the captured graph."""
    if cuda.thread.recording is not None:
        cuda.thread.recording.write(function, args, options, target._array)
        return
    with np.errstate(all="ignore"):
        function(target._array, *args, **options)


def from_host(array: np.ndarray) -> ndarray:
    _to_device()
    return wrap(array)


def call(function: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """Call a function of NumPy with simulated arrays and return a simulated one."""
    if kwargs.keys() & NUMPY_ONLY:
        raise TypeError(f"CuPy has no option {min(kwargs.keys() & NUMPY_ONLY)} here")
    options = {name: host(value) for name, value in kwargs.items()}
    if out is None:
        return evaluate(function, host(args), options, *arrays_in(args))
    write(_into(function), _output(out), *host(args), **options)
    return out


@functools.cache
def _into(function: Any) -> Any:
    """The function with its output as the first argument."""

    def into(out: np.ndarray, *args: Any, **options: Any) -> None:
        function(*args, out=out, **options)

    into.function = function
    return into


def elementwise(ufunc: Any, *inputs: Any, out: Any = None, **options: Any) -> Any:
    """Call a universal function with arrays and scalars."""
    if options.keys() - {"dtype", "casting"}:
        raise TypeError(f"Wrong arguments {sorted(options)}")
    operands = [host(value) if isinstance(value, np.ndarray) else operand(value) for value in inputs]
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if out is None:
        return evaluate(ufunc, tuple(operands), {"order": "C", **options})
    target = _output(out)._array
    if ufunc is np.matmul and any(np.may_share_memory(target, value) for value in operands):
        raise ValueError("matmul: out overlaps a factor")
    write(_into(ufunc), out, *operands, **options)
    return out


def _output(out: Any) -> ndarray:
    if not isinstance(out, ndarray):
        raise TypeError(f"return arrays must be of ArrayType, got {type(out)} as out")
    return out


def arrays_in(values: Any) -> list[ndarray]:
    found = []
    for value in values:
        if isinstance(value, ndarray):
            found.append(value)
        elif isinstance(value, tuple | list):
            found += arrays_in(value)
    return found


def _index(key: Any) -> tuple[Any, ...]:
    """The index for NumPy. The transfers and synchronisations that it needs are counted."""
    keys = key if isinstance(key, tuple) else (key,)
    for part in keys:
        if isinstance(part, np.ndarray):
            raise TypeError("a CuPy array is indexed with a NumPy array")
        if isinstance(part, list):
            _to_device()
        if isinstance(part, ndarray) and part.dtype == bool:
            if cuda.thread.recording is not None:
                cuda.thread.recording.refuse("D2H transfers")
            cuda.transfers.synchronisations += 1
    return tuple(_slice(part) if isinstance(part, slice) else host(part) for part in keys)


def _slice(part: slice) -> slice:
    """The slice with numbers in place of arrays."""
    ends = part.start, part.stop, part.step
    return slice(*(end.item() if isinstance(end, ndarray) else end for end in ends))


def _elements(array: np.ndarray, key: tuple[Any, ...]) -> np.ndarray:
    result = array[key]
    return result if isinstance(result, np.ndarray) else array[(*key, Ellipsis)]
