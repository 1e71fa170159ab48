"""Moving rows and clearing memory on all threads if the arrays are large. NumPy uses only one thread."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.errors import InputTypeError
from rnnlab.ops.numba.guard import address
from rnnlab.ops.numba.kernel import DTYPES, inlined, kernel, primitive, shared_by
from rnnlab.ops.numba.memory import SMALLEST, empty
from rnnlab.ops.numba.parallel import share, slice_of
from rnnlab.ops.numba.registers import copy_bytes
from rnnlab.ops.numpy import arrays as on_one_thread
from rnnlab.types import Array, Shape

__all__ = ["as_indices", "clear", "put", "take", "zeros"]
_PARALLEL_FROM = 1 << 17  # numbers to move, some 50 microseconds, worth waking other threads


@primitive
def take(x: Array, rows: Array, out: Array) -> None:
    if x.flags.writeable:
        _take.run(shared_by(out.size, _PARALLEL_FROM), x, as_indices(rows), out)
    else:  # kernels take no read-only array, and a copy would cost more than one thread
        on_one_thread.take(x, rows, out)


@primitive
def put(x: Array, rows: Array, out: Array) -> None:
    if x.flags.writeable:
        _put.run(shared_by(x.size, _PARALLEL_FROM), x, as_indices(rows), out)
    else:
        on_one_thread.put(x, rows, out)


@primitive
def clear(x: Array) -> None:
    _clear.run(shared_by(x.size, _PARALLEL_FROM), x)


def zeros(shape: int | Shape, dtype: DTypeLike = float) -> Array:
    dtype = np.dtype(dtype)
    if math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize < SMALLEST:
        return np.zeros(shape, dtype)
    out = empty(shape, dtype)
    if out.dtype.char in DTYPES:
        _clear.run(shared_by(out.size, _PARALLEL_FROM), out.reshape(-1))
    else:
        out.fill(0)
    return out


def as_indices(numbers: Array) -> Array:
    """Integers of any width and layout as the index array that kernels take."""
    if numbers.dtype.kind not in "iu":
        raise InputTypeError(f"expected integers, got {numbers.dtype}")
    return np.ascontiguousarray(numbers, np.int64)


# ---------------------------------------------------------------- kernels


@inlined
def _copy(x, out):
    if x.strides[0] == x.itemsize and out.strides[0] == out.itemsize:
        copy_bytes(address(out), address(x), x.size * x.itemsize)
    else:
        for j in range(out.size):
            out[j] = x[j]


@kernel("T[:,:], int64[::1], T[:,:]")
def _take(part, parts, x, rows, out):
    for row in share(rows.size, part, parts):
        _copy(x[rows[row]], out[row])


@kernel("T[:,:], int64[::1], T[:,:]")
def _put(part, parts, x, rows, out):
    for row in share(rows.size, part, parts):
        _copy(x[row], out[rows[row]])


@kernel("T[::1]")
def _clear(part, parts, x):
    mine = slice_of(x, part, parts)
    for j in range(mine.size):
        mine[j] = 0
