"""Update rules over flat arrays on NumPy: in place, one block of the cache's size after another.

Every function here works on 1-D arrays of one dtype and size P: ``w`` the parameters, ``dw`` their gradient,
and a rule's state (``m``, ``v``, ``velocity``, ``cache``, ...). ``dw`` is only read, and is multiplied by
``scale`` on the way: clipping by norm so costs no pass of its own. The equations call the scaled gradient g.

A formula in NumPy is a chain of passes over its operands. Over whole parameters each pass goes to memory;
over blocks of 128 KiB all but the first find their operands in the cache. Beside its arguments a function
needs a block or two of scratch, however many parameters there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rnnlab.types import Array

_BLOCK_BYTES = 1 << 17


def sgd(w: Array, dw: Array, *, learning_rate: float, scale: float = 1.0) -> None:
    """w -= learning_rate g."""
    for scratch, w_, dw_ in _blocks(w, dw):
        np.multiply(dw_, learning_rate * scale, out=scratch)
        w_ -= scratch


def momentum(
    w: Array, dw: Array, velocity: Array, *, learning_rate: float, momentum: float, scale: float = 1.0
) -> None:
    """velocity = momentum velocity - learning_rate g; w += velocity (Polyak 1964)."""
    for scratch, w_, dw_, velocity_ in _blocks(w, dw, velocity):
        np.multiply(dw_, learning_rate * scale, out=scratch)
        velocity_ *= momentum
        velocity_ -= scratch
        w_ += velocity_


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
    """cache = decay_rate cache + (1 - decay_rate) g^2; w -= learning_rate g / (sqrt(cache) + epsilon)."""
    for scratch, w_, dw_, cache_ in _blocks(w, dw, cache):
        _mean_of_squares(cache_, dw_, decay_rate, scale, scratch)
        _divide_by_root(dw_, cache_, epsilon, scratch)
        scratch *= learning_rate * scale
        w_ -= scratch


def adagrad(
    w: Array, dw: Array, cache: Array, *, learning_rate: float, epsilon: float, scale: float = 1.0
) -> None:
    """cache += g^2; w -= learning_rate g / (sqrt(cache) + epsilon)."""
    for scratch, w_, dw_, cache_ in _blocks(w, dw, cache):
        np.multiply(dw_, dw_, out=scratch)
        if scale != 1.0:
            scratch *= scale * scale
        cache_ += scratch
        _divide_by_root(dw_, cache_, epsilon, scratch)
        scratch *= learning_rate * scale
        w_ -= scratch


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
    """Zeiler (2012), algorithm 1; ``cache`` is his E[g^2], ``delta_cache`` his E[dx^2].

    cache       = decay_rate cache + (1 - decay_rate) g^2
    delta       = sqrt(delta_cache + epsilon) / sqrt(cache + epsilon) g
    delta_cache = decay_rate delta_cache + (1 - decay_rate) delta^2
    w          -= learning_rate delta
    """
    for scratch, delta, w_, dw_, cache_, delta_cache_ in _blocks(w, dw, cache, delta_cache, scratch=2):
        _mean_of_squares(cache_, dw_, decay_rate, scale, scratch)
        np.add(delta_cache_, epsilon, out=delta)
        np.add(cache_, epsilon, out=scratch)
        delta /= scratch
        np.sqrt(delta, out=delta)
        delta *= dw_
        if scale != 1.0:
            delta *= scale
        _mean_of_squares(delta_cache_, delta, decay_rate, 1.0, scratch)
        delta *= learning_rate
        w_ -= delta


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
    """Kingma and Ba (2015), algorithm 1; ``step`` is their t, 1 at the first update.

    m  = beta1 m + (1 - beta1) g
    v  = beta2 v + (1 - beta2) g^2
    w -= learning_rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
    """
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
    """:func:`adam` after w -= learning_rate weight_decay w (Loshchilov and Hutter 2019, algorithm 2).

    Their schedule multiplier is part of ``learning_rate``, so the decay follows the schedule as well.
    """
    # m / c1 / (sqrt(v / c2) + e) = sqrt(c2) / c1 m / (sqrt(v) + sqrt(c2) e): the corrections become numbers
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


# ---------------------------------------------------------------- what the solver asks of a gradient


def sum_of_squares(x: Array) -> Any:
    """The sum of squares of x (P,); inf or NaN if an element is, or if a float cannot hold the sum."""
    size = max(1, _BLOCK_BYTES // x.itemsize)
    blocks = (x[start : start + size] for start in range(0, x.size, size))
    # Each product is in x's dtype, their sum in float64: a long float32 sum keeps its digits.
    with np.errstate(over="ignore", invalid="ignore"):
        return sum((float(np.dot(block, block)) for block in blocks), 0.0)


def first_non_finite(x: Array) -> int | None:
    """The index of the first element of x (P,) that is NaN or infinite, None if all are finite."""
    finite = np.isfinite(x)
    index = int(finite.argmin()) if x.size else 0
    return None if finite.all() else index


def clip_values(x: Array, bound: float) -> None:
    """Bring every element of x (P,) into [-bound, bound], in place."""
    np.clip(x, -bound, bound, out=x)


def flush_subnormals(x: Array) -> None:
    """Set to zero, in place, the elements of x (P,) that are subnormal or will soon be.

    An average that decays towards zero, such as the momentum of a word that no longer occurs, gets stuck at
    the smallest numbers of its dtype, and arithmetic with those is many times slower than with all others.
    The threshold is 1e8 times the smallest normal number, 1e-30 in float32.
    """
    threshold = float(np.finfo(x.dtype).tiny) * 1e8
    for scratch, x_ in _blocks(x):
        np.abs(x_, out=scratch)
        x_[scratch < threshold] = 0


# ---------------------------------------------------------------- helpers


def _blocks(*arrays: Array, scratch: int = 1) -> Iterator[tuple[Array, ...]]:
    """For each block: ``scratch`` arrays to write, then the views of ``arrays``, all of the same length."""
    first = arrays[0]
    size = max(1, min(first.size, _BLOCK_BYTES // first.itemsize))
    free = np.empty((scratch, size), first.dtype)
    for start in range(0, first.size, size):
        views = [array[start : start + size] for array in arrays]
        yield (*free[:, : views[0].size], *views)


def _mean_of_squares(mean: Array, x: Array, decay: float, scale: float, scratch: Array) -> None:
    """mean = decay mean + (1 - decay) (scale x)^2."""
    np.multiply(x, x, out=scratch)
    scratch *= (1 - decay) * scale * scale
    mean *= decay
    mean += scratch


def _divide_by_root(x: Array, square: Array, epsilon: float, out: Array) -> None:
    """out = x / (sqrt(square) + epsilon)."""
    np.sqrt(square, out=out)
    out += epsilon
    np.divide(x, out, out=out)
