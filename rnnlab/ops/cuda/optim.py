"""Update rules over flat arrays on CuPy.

The hyperparameters and ``scale`` are stored on the device, so that a graph can replace them. ``scale`` may be
an array () of float64 that was computed there. If it is not finite, nothing is updated.
"""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.ops.cuda.checks import checked
from rnnlab.ops.cuda.graphs import graph_numbers
from rnnlab.ops.cuda.launch import THREADS, WARP, check_contiguous, each, launch
from rnnlab.types import Array


@checked
def sgd(w: Array, dw: Array, *, learning_rate: float, scale: float = 1.0) -> None:
    _update("sgd", (w, dw), scale, learning_rate)


@checked
def momentum(
    w: Array, dw: Array, velocity: Array, *, learning_rate: float, momentum: float, scale: float = 1.0
) -> None:
    _update("momentum", (w, dw, velocity), scale, learning_rate, momentum)


@checked
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
    _update("rmsprop", (w, dw, cache), scale, learning_rate, decay_rate, epsilon)


@checked
def adagrad(
    w: Array, dw: Array, cache: Array, *, learning_rate: float, epsilon: float, scale: float = 1.0
) -> None:
    _update("adagrad", (w, dw, cache), scale, learning_rate, epsilon)


@checked
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
    _update("adadelta", (w, dw, cache, delta_cache), scale, learning_rate, decay_rate, epsilon)


@checked
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
    rates = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    adamw(w, dw, m, v, step=step, weight_decay=0.0, scale=scale, **rates)


@checked
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
    root = math.sqrt(1 - beta2**step)
    rate, keep = learning_rate * root / (1 - beta1**step), 1 - learning_rate * weight_decay
    _update("adamw", (w, dw, m, v), scale, rate, beta1, beta2, root * epsilon, keep)


@checked
def decay_weights(w: Array, *, rate: float, scale: float = 1.0) -> None:
    _update("decay_weights", (w,), scale, 1 - rate)


@checked
def move_towards(x: Array, target: Array, *, rate: float) -> None:
    check_contiguous(x, target)
    each("move_towards", x.size, x, x, target, x.size, float(rate))


def _update(name: str, arrays: tuple[Array, ...], scale: Any, *numbers: float) -> None:
    check_contiguous(*arrays)
    on_device = isinstance(scale, cp.ndarray)
    placed = graph_numbers(numbers if on_device else (*numbers, scale))
    if placed is not None:
        size = arrays[0].size
        each(name, size, arrays[0], *arrays, size, placed, scale if on_device else placed[-1:])


# ---------------------------------------------------------------- sums and checks of a gradient


@checked
def sum_of_squares(x: Array) -> Any:
    check_contiguous(x)
    blocks = min(max(1, -(-x.size // THREADS)), 512)
    partial, total = cp.empty(blocks, np.float64), cp.empty(1, np.float64)
    shared = THREADS // WARP * 8
    launch("sum_of_squares", x.dtype, blocks, THREADS, (x, partial, x.size), shared)
    launch("sum", x.dtype, 1, THREADS, (partial, total, blocks), shared)
    return total[0]


def first_non_finite(x: Array) -> int | None:
    finite = cp.isfinite(x)
    return None if not x.size or bool(finite.all()) else int(finite.argmin())


@checked
def clip_values(x: Array, bound: float) -> None:
    check_contiguous(x)
    each("clip_values", x.size, x, x, x.size, float(bound))


def flush_subnormals(x: Array) -> None:
    """Do nothing: a GPU is as fast with subnormals."""
