"""Arrays on CuPy: allocation, copies to and from the device, and moves of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import DTypeLike

from rnnlab.ops.cuda.checks import checked
from rnnlab.ops.cuda.graphs import copied, fetched, uploaded
from rnnlab.ops.cuda.launch import check_contiguous, each, stride
from rnnlab.types import Array, Shape

CHUNK = 16  # a GPU has a larger cache, and fewer chunks mean fewer launches


def empty(shape: int | Shape, dtype: DTypeLike = float) -> Array:
    return cp.empty(shape, dtype)


def zeros(shape: int | Shape, dtype: DTypeLike = float) -> Array:
    return cp.zeros(shape, dtype)


def asarray(x: Any, dtype: DTypeLike | None = None) -> Array:
    return cp.asarray(x, dtype, order="C") if isinstance(x, cp.ndarray) else uploaded(x, dtype)


def asnumpy(x: Array) -> Array:
    return cp.asnumpy(x)


def fetch(x: Array) -> Callable[[], Array]:
    computed = cp.cuda.Event(disable_timing=True)
    computed.record()
    return lambda: fetched(x, computed)


def indices(x: Array) -> Array:
    return asarray(x, np.int64)


def scalar(x: Any) -> Any:
    return x if isinstance(x, cp.ndarray) else float(x)


def prefetch(x: Array, like: Array) -> Array:
    if isinstance(x, cp.ndarray):
        return x.astype(like.dtype, copy=False)
    return copied(np.asarray(x, like.dtype), like.device)


def concatenate(arrays: Any, axis: int = 0) -> Array:
    return cp.concatenate(arrays, axis)


@checked
def take(x: Array, rows: Array, out: Array) -> None:
    _move("take", x, rows, out)


@checked
def clear(x: Array) -> None:
    x[...] = 0


@checked
def put(x: Array, rows: Array, out: Array) -> None:
    _move("put", x, rows, out)


def _move(name: str, x: Array, rows: Array, out: Array) -> None:
    check_contiguous(rows)
    strides = stride(x), stride(out)
    each(name, rows.size * x.shape[1], x, x, rows, out, rows.size, x.shape[1], *strides)
