"""Update rules over flat arrays on CuPy; :mod:`rnnlab.ops.numpy.optim` has the equations.

``scale`` may be a number, or an array () of float64 on the device, which nobody has waited for; where it is
not finite nothing is updated.
"""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.ops.cuda.graphs import told_numbers
from rnnlab.ops.cuda.launch import THREADS, WARP, check_whole, each, launch
from rnnlab.types import Array

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamw",
    "clip_values",
    "first_non_finite",
    "flush_subnormals",
    "momentum",
    "rmsprop",
    "sgd",
    "sum_of_squares",
]


def sgd(w: Array, dw: Array, *, learning_rate: float, scale: float = 1.0) -> None:
    """Stochastic gradient descent."""
    _update("sgd", (w, dw), scale, learning_rate)


def momentum(
    w: Array, dw: Array, velocity: Array, *, learning_rate: float, momentum: float, scale: float = 1.0
) -> None:
    """Classical momentum."""
    _update("momentum", (w, dw, velocity), scale, learning_rate, momentum)


def rmsprop(
    w: Array,
    dw: Array,
    cache: Array,
    *,
    learning_rate: float,
    decay_rate: float,
    epsilon: float,
    scale: float = 1.0,
) -> None:
    """RMSProp."""
    _update("rmsprop", (w, dw, cache), scale, learning_rate, decay_rate, epsilon)


def adagrad(
    w: Array, dw: Array, cache: Array, *, learning_rate: float, epsilon: float, scale: float = 1.0
) -> None:
    """Adagrad."""
    _update("adagrad", (w, dw, cache), scale, learning_rate, epsilon)


def adadelta(
    w: Array,
    dw: Array,
    cache: Array,
    delta_cache: Array,
    *,
    learning_rate: float,
    decay_rate: float,
    epsilon: float,
    scale: float = 1.0,
) -> None:
    """Adadelta."""
    _update("adadelta", (w, dw, cache, delta_cache), scale, learning_rate, decay_rate, epsilon)


def adam(
    w: Array,
    dw: Array,
    m: Array,
    v: Array,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    scale: float = 1.0,
) -> None:
    """Adam."""
    rates = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    adamw(w, dw, m, v, step=step, weight_decay=0.0, scale=scale, **rates)


def adamw(
    w: Array,
    dw: Array,
    m: Array,
    v: Array,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    scale: float = 1.0,
) -> None:
    """Adam after w -= learning_rate weight_decay w."""
    root = math.sqrt(1 - beta2**step)
    rate, keep = learning_rate * root / (1 - beta1**step), 1 - learning_rate * weight_decay
    _update("adamw", (w, dw, m, v), scale, rate, beta1, beta2, root * epsilon, keep)


def _update(name: str, arrays: tuple[Array, ...], scale: Any, *numbers: float) -> None:
    check_whole(*arrays)
    on_device = isinstance(scale, cp.ndarray)
    told = told_numbers(numbers if on_device else (*numbers, scale))
    if told is not None:
        each(
            name, arrays[0].size, arrays[0], *arrays, arrays[0].size, told, scale if on_device else told[-1:]
        )


# ---------------------------------------------------------------- what the solver asks of a gradient


def sum_of_squares(x: Array) -> Any:
    """The sum of squares in double precision, an array () that nobody has waited for."""
    check_whole(x)
    blocks = min(max(1, -(-x.size // THREADS)), 512)
    partial, total = cp.empty(blocks, np.float64), cp.empty(1, np.float64)
    shared = THREADS // WARP * 8
    launch("sum_of_squares", x.dtype, blocks, THREADS, (x, partial, x.size), shared)
    launch("sum", x.dtype, 1, THREADS, (partial, total, blocks), shared)
    return total[0]


def first_non_finite(x: Array) -> int | None:
    """The index of the first NaN or infinity."""
    finite = cp.isfinite(x)
    return None if not x.size or bool(finite.all()) else int(finite.argmin())


def clip_values(x: Array, bound: float) -> None:
    """Bring every element into [-bound, bound]."""
    check_whole(x)
    each("clip_values", x.size, x, x, x.size, float(bound))


def flush_subnormals(x: Array) -> None:
    """Nothing: a GPU is as fast with subnormals."""
