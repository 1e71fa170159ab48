"""The update rules of flat parameters as kernels: one pass over memory, shared among the threads.

``w`` are the parameters, ``dw`` their gradient, and g = scale dw. A kernel that squares computes g first,
because dw^2 of an exploding gradient is infinite and scale^2 is zero. ``gain`` is the factor of g or g^2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rnnlab.ops.numba.kernel import kernel, primitive, reduction
from rnnlab.ops.numba.parallel import share, slice_of
from rnnlab.types import Array

_PARALLEL_FROM = 1 << 18
_TINY = 1e-30  # in float32 subnormal numbers begin at 1.2e-38; only a gradient that has exploded is scaled so
_BLOCK = 1 << 14  # elements per partial sum, so that the sum does not depend on the number of threads


@primitive
def sgd(w: Array, dw: Array, *, learning_rate: float, scale: float = 1.0) -> None:
    """w -= learning_rate g."""
    _sgd(w, *_without_tiny_factor(dw, learning_rate * scale))


@primitive
def momentum(
    w: Array, dw: Array, velocity: Array, *, learning_rate: float, momentum: float, scale: float = 1.0
) -> None:
    """velocity = momentum velocity - learning_rate g; w += velocity."""
    dw, rate = _without_tiny_factor(dw, learning_rate * scale)
    _momentum(w, dw, velocity, rate, momentum)


@primitive
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
    dw, scale = _without_tiny_factor(dw, scale)
    _divide_by_root(w, dw, cache, decay_rate, 1 - decay_rate, learning_rate, epsilon, scale)


@primitive
def adagrad(
    w: Array, dw: Array, cache: Array, *, learning_rate: float, epsilon: float, scale: float = 1.0
) -> None:
    """cache += g^2; w -= learning_rate g / (sqrt(cache) + epsilon)."""
    dw, scale = _without_tiny_factor(dw, scale)
    _divide_by_root(w, dw, cache, 1.0, 1.0, learning_rate, epsilon, scale)


@primitive
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
    """delta = sqrt(old delta_cache + epsilon) / sqrt(new cache + epsilon) g."""
    dw, scale = _without_tiny_factor(dw, scale)
    _adadelta(w, dw, cache, delta_cache, decay_rate, 1 - decay_rate, learning_rate, epsilon, scale)


@primitive
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
    """m, v = averages of g, g^2; with bias-corrected m', v', w -= learning_rate m' / (sqrt(v') + epsilon)."""
    _adam(w, dw, m, v, step, learning_rate, beta1, beta2, epsilon, 0.0, scale)


@primitive
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
    """:func:`adam` after w -= learning_rate weight_decay w."""
    _adam(w, dw, m, v, step, learning_rate, beta1, beta2, epsilon, weight_decay, scale)


def _adam(
    w: Array,
    dw: Array,
    m: Array,
    v: Array,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    scale: float,
) -> None:
    # m / c1 / (sqrt(v / c2) + e) = sqrt(c2) / c1 m / (sqrt(v) + sqrt(c2) e): bias corrections are scalars
    root = math.sqrt(1 - beta2**step)
    rate = learning_rate * root / (1 - beta1**step)
    keep = 1 - learning_rate * weight_decay
    dw, scale = _without_tiny_factor(dw, scale)
    _adamw(w, dw, m, v, beta1, beta2, 1 - beta1, 1 - beta2, rate, root * epsilon, keep, scale)


def _without_tiny_factor(dw: Array, factor: float) -> tuple[Array, float]:
    """The gradient and its factor, or their product and 1 if kernels would treat the factor as zero."""
    if not 0 < abs(factor) < _TINY:
        return dw, factor
    return np.multiply(dw, factor, dtype=np.float64).astype(dw.dtype), 1.0


@primitive
def decay_weights(w: Array, *, rate: float, scale: float = 1.0) -> None:
    """w -= rate w."""
    _multiply(w, 1 - rate)


@primitive
def move_towards(x: Array, target: Array, *, rate: float) -> None:
    """x += rate (target - x)."""
    _move_towards(x, target, rate)


@primitive
def sum_of_squares(x: Array) -> Any:
    """The sum of squares in float64."""
    sums = np.empty(-(-x.size // _BLOCK))
    _sums_of_squares(x, sums)
    return float(sums.sum())


@primitive
@kernel("T[::1], T", parallel_from=_PARALLEL_FROM)
def clip_values(part, parts, x, bound):
    """Clip every element to [-bound, bound]; NaN remains NaN."""
    x = slice_of(x, part, parts)
    for j in range(x.size):
        not_below = -bound if x[j] < -bound else x[j]
        x[j] = bound if not_below > bound else not_below


@primitive
def flush_subnormals(x: Array) -> None:
    """Set subnormal elements to zero."""
    _flush(x, float(np.finfo(x.dtype).tiny))


# ---------------------------------------------------------------- kernels


@kernel("T[::1], T[::1], T", parallel_from=_PARALLEL_FROM)
def _sgd(part, parts, w, dw, rate):
    w, dw = slice_of(w, part, parts), slice_of(dw, part, parts)
    for j in range(w.size):
        w[j] -= rate * dw[j]


@kernel("T[::1], T[::1], T[::1], T, T", parallel_from=_PARALLEL_FROM)
def _momentum(part, parts, w, dw, velocity, rate, decay):
    w, dw, velocity = slice_of(w, part, parts), slice_of(dw, part, parts), slice_of(velocity, part, parts)
    for j in range(w.size):
        velocity[j] = decay * velocity[j] - rate * dw[j]
        w[j] += velocity[j]


@kernel(
    "T[::1], T[::1], T[::1], T, T, T, T, T",
    arguments="w! (P,); dw (P,); cache! (P,)",
    parallel_from=_PARALLEL_FROM,
)
def _divide_by_root(part, parts, w, dw, cache, decay, gain, rate, epsilon, scale):
    w, dw, cache = slice_of(w, part, parts), slice_of(dw, part, parts), slice_of(cache, part, parts)
    for j in range(w.size):
        g = scale * dw[j]
        cache[j] = decay * cache[j] + gain * g * g
        w[j] -= rate * g / (math.sqrt(cache[j]) + epsilon)


@kernel("T[::1], T[::1], T[::1], T[::1], T, T, T, T, T", parallel_from=_PARALLEL_FROM)
def _adadelta(part, parts, w, dw, cache, delta_cache, decay, gain, rate, epsilon, scale):
    w, dw = slice_of(w, part, parts), slice_of(dw, part, parts)
    cache, delta_cache = slice_of(cache, part, parts), slice_of(delta_cache, part, parts)
    for j in range(w.size):
        g = scale * dw[j]
        cache[j] = decay * cache[j] + gain * g * g
        delta = math.sqrt(delta_cache[j] + epsilon) / math.sqrt(cache[j] + epsilon) * g
        delta_cache[j] = decay * delta_cache[j] + gain * delta * delta
        w[j] -= rate * delta


@kernel("T[::1], T[::1], T[::1], T[::1], T, T, T, T, T, T, T, T", parallel_from=_PARALLEL_FROM)
def _adamw(part, parts, w, dw, m, v, beta1, beta2, gain1, gain2, rate, epsilon, keep, scale):
    w, dw = slice_of(w, part, parts), slice_of(dw, part, parts)
    m, v = slice_of(m, part, parts), slice_of(v, part, parts)
    for j in range(w.size):
        g = scale * dw[j]
        m[j] = beta1 * m[j] + gain1 * g
        v[j] = beta2 * v[j] + gain2 * g * g
        w[j] = keep * w[j] - rate * m[j] / (math.sqrt(v[j]) + epsilon)


@kernel(
    "T[::1], T",
    arguments="w! (P,)",
    parallel_from=_PARALLEL_FROM,
)
def _multiply(part, parts, w, factor):
    w = slice_of(w, part, parts)
    for j in range(w.size):
        w[j] *= factor


@kernel("T[::1], T[::1], T", parallel_from=_PARALLEL_FROM)
def _move_towards(part, parts, x, target, rate):
    x, target = slice_of(x, part, parts), slice_of(target, part, parts)
    for j in range(x.size):
        x[j] += rate * (target[j] - x[j])


@kernel(
    "T[::1], float64[::1]",
    arguments="x (P,); sums! (B,) float64",
    parallel_from=_PARALLEL_FROM,
)
def _sums_of_squares(part, parts, x, sums):
    for block in share(sums.size, part, parts):
        sums[block] = _sum_of_block(x[block * _BLOCK : (block + 1) * _BLOCK])


@reduction
def _sum_of_block(x):
    total = 0.0
    for j in range(x.size):
        value = np.float64(x[j])
        total += value * value
    return total


@kernel(
    "T[::1], T",
    arguments="x! (P,)",
    parallel_from=_PARALLEL_FROM,
)
def _flush(part, parts, x, threshold):
    zero = x.dtype.type(0)
    x = slice_of(x, part, parts)
    for j in range(x.size):
        x[j] = zero if abs(x[j]) < threshold else x[j]
