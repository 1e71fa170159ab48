"""The stand-in of the module ``cupy``."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import cuda
from .array import REDUCTIONS, arrays_in, call, elementwise, evaluate, from_host, ndarray, operand, write
from .cuda import launches  # noqa: F401
from .kernels import RawKernel, RawModule  # noqa: F401

__version__ = "14.0.0"

transfers = cuda.transfers

SAME = """bool_ dtype finfo float32 float64 floating iinfo inf int8 int32 int64 integer intp issubdtype nan
newaxis result_type uint8 uint32 uint64"""
UFUNCS = """abs absolute add arctan2 bitwise_and bitwise_or ceil copysign cos divide equal exp expm1 floor
floor_divide fmax fmin greater greater_equal invert isfinite isinf isnan ldexp less less_equal log log1p
log2 logical_and logical_not logical_or logical_xor matmul maximum minimum multiply negative nextafter
not_equal power reciprocal remainder rint sign signbit sin sqrt square subtract tanh true_divide"""
FUNCTIONS = """broadcast_to clip concatenate cumsum diff dot expand_dims flip hstack moveaxis outer ravel
repeat reshape roll shares_memory sort split squeeze stack swapaxes take take_along_axis tensordot tile
transpose tril triu vstack where"""


def _ufunc(ufunc: Any) -> Any:
    return lambda *args, **kwargs: elementwise(ufunc, *args, **kwargs)


def _function(function: Any) -> Any:
    return lambda *args, **kwargs: call(function, *args, **kwargs)


def _reduction(name: str) -> Any:
    def reduction(a: ndarray, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(a, ndarray):
            raise TypeError(f"{name}: expected a CuPy array, got {type(a)}")
        return getattr(a, name)(*args, **kwargs)

    return reduction


# From here on abs, all, any, max, min and sum are functions of arrays.
globals().update({name: getattr(np, name) for name in SAME.split()})
globals().update({name: _ufunc(getattr(np, name)) for name in UFUNCS.split()})
globals().update({name: _function(getattr(np, name)) for name in FUNCTIONS.split()})
globals().update({name: _reduction(name) for name in (*REDUCTIONS, "nonzero", "argsort")})


def array(obj: Any, dtype: Any = None, copy: bool = True, order: str = "K") -> ndarray:
    if isinstance(obj, ndarray):
        return evaluate(np.array, (obj._array,), {"dtype": dtype, "copy": copy or None, "order": order}, obj)
    if isinstance(obj, list | tuple) and arrays_in(obj):
        return evaluate(np.array, ([operand(element) for element in obj],), {"dtype": dtype})
    return from_host(np.array(obj, dtype=dtype, order=order))


def asarray(a: Any, dtype: Any = None, order: str = "K") -> ndarray:
    return array(a, dtype=dtype, copy=False, order=order)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    return array(a, dtype=dtype, copy=False, order="C")


def asnumpy(
    a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True
) -> np.ndarray:
    return a.get(stream, order=order, out=out) if isinstance(a, ndarray) else np.asarray(a, order=order)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return ndarray(shape, dtype, order=order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    value = operand(fill_value)
    result = ndarray(shape, np.asarray(value).dtype if dtype is None else dtype, order=order)
    result[...] = fill_value
    return result


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return full(shape, 0, dtype, order)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return full(shape, 1, dtype, order)


def _like(make: Any) -> Any:
    def like(prototype: ndarray, dtype: Any = None, order: str = "K", *, shape: Any = None) -> ndarray:
        flags = prototype.flags
        if order in "KA":
            order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
        shape = prototype.shape if shape is None else shape
        return make(shape, dtype=prototype.dtype if dtype is None else dtype, order=order)

    return like


empty_like, zeros_like, ones_like = map(_like, (empty, zeros, ones))


def full_like(a: ndarray, fill_value: Any, dtype: Any = None) -> ndarray:
    return full(a.shape, fill_value, a.dtype if dtype is None else dtype)


def arange(*args: Any, dtype: Any = None) -> ndarray:
    return evaluate(np.arange, args, {"dtype": dtype})


def flatnonzero(a: ndarray) -> ndarray:
    return a.ravel().nonzero()[0]


def copyto(dst: ndarray, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    if not isinstance(dst, ndarray):
        raise TypeError(f"copyto: dst is {type(dst)}, expected a CuPy array")
    if isinstance(src, np.ndarray) and src.ndim:
        raise ValueError("non-scalar numpy.ndarray cannot be used for copyto")
    write(np.copyto, dst, operand(src), casting=casting, where=True if where is None else operand(where))


def get_array_module(*args: Any) -> Any:
    return sys.modules[__name__] if arrays_in(args) else np


def get_default_memory_pool() -> cuda.MemoryPool:
    return cuda.pool


def is_available() -> bool:
    return True
