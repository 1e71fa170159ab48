"""Moving rows and clearing memory on all threads, where the arrays are large. NumPy uses one."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import DTypeLike

from rnnlab.ops.numba.embedding import as_indices
from rnnlab.ops.numba.kernel import DTYPES, Kernel, inlined, kernel, primitive, shared_by
from rnnlab.ops.numba.memory import empty
from rnnlab.ops.numba.parallel import share, slice_of
from rnnlab.ops.numpy import arrays as on_one_thread
from rnnlab.types import Array, Shape

__all__ = ["clear", "put", "take", "zeros"]
_PARALLEL_FROM = 1 << 17  # numbers to move, some 50 microseconds, worth waking other threads


@primitive
def take(x: Array, rows: Array, out: Array) -> None:
    _move(_take, on_one_thread.take, out.size, x, rows, out)


@primitive
def put(x: Array, rows: Array, out: Array) -> None:
    _move(_put, on_one_thread.put, x.size, x, rows, out)


def _move(
    kernel: Kernel, alone: Callable[..., None], numbers: int, x: Array, rows: Array, out: Array
) -> None:
    parts = shared_by(numbers, _PARALLEL_FROM)
    if parts == 1:
        alone(x, rows, out)
    else:
        kernel.run(parts, x, as_indices(rows), out)


@primitive
def clear(x: Array) -> None:
    parts = shared_by(x.size, _PARALLEL_FROM)
    if parts == 1:
        on_one_thread.clear(x)
    else:
        _clear.run(parts, x)


def zeros(shape: int | Shape, dtype: DTypeLike = float) -> Array:
    out = empty(shape, dtype)
    if out.dtype.char in DTYPES:
        clear(out.reshape(-1))
    else:
        out.fill(0)
    return out


# ---------------------------------------------------------------- kernels


@inlined
def _copy(x, out):
    for j in range(out.size):
        out[j] = x[j]


@kernel("T[:,:], int64[::1], T[:,:]", arguments="x (M, D); rows (n,) 0..M; out! (n, D)")
def _take(part, parts, x, rows, out):
    for row in share(rows.size, part, parts):
        _copy(x[rows[row]], out[row])


@kernel("T[:,:], int64[::1], T[:,:]", arguments="x (n, D); rows (n,) 0..M; out! (M, D)")
def _put(part, parts, x, rows, out):
    for row in share(rows.size, part, parts):
        _copy(x[row], out[rows[row]])


@kernel("T[::1]", arguments="x! (P,)")
def _clear(part, parts, x):
    mine = slice_of(x, part, parts)
    for j in range(mine.size):
        mine[j] = 0
