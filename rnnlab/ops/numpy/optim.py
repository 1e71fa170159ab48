"""Update rules over flat arrays on NumPy, in place, one block after another.

A formula in NumPy is a chain of passes over its operands. Over all parameters, each pass reads from memory;
over blocks of 128 KiB, all passes but the first find their operands in the cache. A function needs one or two
blocks of scratch memory, independent of the number of parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rnnlab.ops.arguments import checked
from rnnlab.types import Array

_BLOCK_BYTES = 1 << 17


@checked
def sgd(w: Array, dw: Array, *, learning_rate: float, scale: float = 1.0) -> None:
    for scratch, w_, dw_ in _blocks(w, dw):
        np.multiply(dw_, learning_rate * scale, out=scratch)
        w_ -= scratch


@checked
def momentum(
    w: Array, dw: Array, velocity: Array, *, learning_rate: float, momentum: float, scale: float = 1.0
) -> None:
    for scratch, w_, dw_, velocity_ in _blocks(w, dw, velocity):
        np.multiply(dw_, learning_rate * scale, out=scratch)
        velocity_ *= momentum
        velocity_ -= scratch
        w_ += velocity_


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
    for scratch, g, w_, dw_, cache_ in _blocks(w, dw, cache, scratch=2):
        np.multiply(dw_, scale, out=g)
        _mean_of_squares(cache_, g, decay_rate, 1.0, scratch)
        _divide_by_root(g, cache_, epsilon, scratch)
        scratch *= learning_rate
        w_ -= scratch


@checked
def adagrad(
    w: Array, dw: Array, cache: Array, *, learning_rate: float, epsilon: float, scale: float = 1.0
) -> None:
    for scratch, g, w_, dw_, cache_ in _blocks(w, dw, cache, scratch=2):
        np.multiply(dw_, scale, out=g)
        np.multiply(g, g, out=scratch)
        cache_ += scratch
        _divide_by_root(g, cache_, epsilon, scratch)
        scratch *= learning_rate
        w_ -= scratch


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
    for scratch, g, delta, w_, dw_, cache_, delta_cache_ in _blocks(w, dw, cache, delta_cache, scratch=3):
        np.multiply(dw_, scale, out=g)
        _mean_of_squares(cache_, g, decay_rate, 1.0, scratch)
        np.add(delta_cache_, epsilon, out=delta)
        np.sqrt(delta, out=delta)
        np.add(cache_, epsilon, out=scratch)
        delta /= np.sqrt(scratch, out=scratch)
        delta *= g
        _mean_of_squares(delta_cache_, delta, decay_rate, 1.0, scratch)
        delta *= learning_rate
        w_ -= delta


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
    adamw(
        w,
        dw,
        m,
        v,
        step=step,
        learning_rate=learning_rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        weight_decay=0.0,
        scale=scale,
    )


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
    # m / c1 / (sqrt(v / c2) + e) = sqrt(c2) / c1 m / (sqrt(v) + sqrt(c2) e): bias corrections are scalars
    root = math.sqrt(1 - beta2**step)
    rate = learning_rate * root / (1 - beta1**step)
    for scratch, w_, dw_, m_, v_ in _blocks(w, dw, m, v):
        np.multiply(dw_, (1 - beta1) * scale, out=scratch)
        m_ *= beta1
        m_ += scratch
        _mean_of_squares(v_, dw_, beta2, scale, scratch)
        _divide_by_root(m_, v_, root * epsilon, scratch)
        scratch *= rate
        if weight_decay:
            w_ *= 1 - learning_rate * weight_decay
        w_ -= scratch


@checked
def decay_weights(w: Array, *, rate: float, scale: float = 1.0) -> None:
    w *= 1 - rate


@checked
def move_towards(x: Array, target: Array, *, rate: float) -> None:
    for scratch, x_, target_ in _blocks(x, target):
        np.subtract(target_, x_, out=scratch)
        scratch *= rate
        x_ += scratch


# ---------------------------------------------------------------- sums and checks of a gradient


@checked
def sum_of_squares(x: Array) -> Any:
    size = _BLOCK_BYTES // x.itemsize
    blocks = (x[start : start + size] for start in range(0, x.size, size))
    # Each product has the dtype of x, but their sum is float64, so that a long sum keeps its precision.
    with np.errstate(over="ignore", invalid="ignore"):
        return sum((float(np.dot(block, block)) for block in blocks), 0.0)


def first_non_finite(x: Array) -> int | None:
    finite = np.isfinite(x)
    return None if finite.all() else int(finite.argmin())


@checked
def clip_values(x: Array, bound: float) -> None:
    np.clip(x, -bound, bound, out=x)


@checked
def flush_subnormals(x: Array) -> None:
    threshold = np.finfo(x.dtype).tiny
    for scratch, x_ in _blocks(x):
        np.abs(x_, out=scratch)
        x_[scratch < threshold] = 0


# ---------------------------------------------------------------- helpers


def _blocks(*arrays: Array, scratch: int = 1) -> Iterator[tuple[Array, ...]]:
    """Yield, for each block, ``scratch`` arrays to write and views of ``arrays``, all of the same length."""
    first = arrays[0]
    size = max(1, min(first.size, _BLOCK_BYTES // first.itemsize))
    free = np.empty((scratch, size), first.dtype)
    for start in range(0, first.size, size):
        views = [array[start : start + size] for array in arrays]
        yield (*free[:, : views[0].size], *views)


def _mean_of_squares(mean: Array, x: Array, decay: float, scale: float, scratch: Array) -> None:
    """mean = decay mean + (1 - decay) (scale x)^2; x is scaled first, because x^2 may be infinite."""
    np.multiply(x, math.sqrt(1 - decay) * scale, out=scratch)
    scratch *= scratch
    mean *= decay
    mean += scratch


def _divide_by_root(x: Array, square: Array, epsilon: float, out: Array) -> None:
    """out = x / (sqrt(square) + epsilon)."""
    np.sqrt(square, out=out)
    out += epsilon
    np.divide(x, out, out=out)
