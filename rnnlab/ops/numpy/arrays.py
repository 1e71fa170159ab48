"""Arrays on NumPy: allocation and moves of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.ops.arguments import checked
from rnnlab.types import Array, Shape

CHUNK = 1


def empty(shape: int | Shape, dtype: DTypeLike = float) -> Array:
    return np.empty(shape, dtype)


def zeros(shape: int | Shape, dtype: DTypeLike = float) -> Array:
    return np.zeros(shape, dtype)


def asarray(x: Any, dtype: DTypeLike | None = None) -> Array:
    return np.asarray(x, dtype)


def asnumpy(x: Array) -> Array:
    return np.asarray(x)


def fetch(x: Array) -> Callable[[], Array]:
    return lambda: x


def indices(x: Array) -> Array:
    return np.asarray(x)


def scalar(x: Any) -> Any:
    return float(x)


def prefetch(x: Array, like: Array) -> Array:
    return np.asarray(x, like.dtype)


def concatenate(arrays: Any, axis: int = 0) -> Array:
    return np.concatenate(arrays, axis)


@checked
def clear(x: Array) -> None:
    x[...] = 0


@checked
def take(x: Array, rows: Array, out: Array) -> None:
    np.take(x, rows, axis=0, out=out, mode="clip")  # with the default mode NumPy would copy twice


@checked
def put(x: Array, rows: Array, out: Array) -> None:
    out[rows] = x
