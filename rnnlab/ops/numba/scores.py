"""Scores of classes as kernels: softmax, the largest scores, and draws."""

from __future__ import annotations

import math

import numpy as np

from rnnlab.ops.arguments import check_scale, normal_divisor
from rnnlab.ops.numba.arrays import as_indices
from rnnlab.ops.numba.kernel import inlined, kernel, primitive, reduction
from rnnlab.ops.numba.math import exp, maximum
from rnnlab.ops.numba.memory import empty, empty_like
from rnnlab.ops.numba.parallel import share
from rnnlab.types import Array

_BLOCK = 64  # scores that are skipped together if none of them is needed


@primitive
def softmax_cross_entropy(
    scores: Array, targets: Array, scale: float | Array, dscores: Array, smoothing: float = 0.0
) -> Array:
    """losses = -q . log p; dscores = scale (p - q); q = (1 - smoothing) onehot(target) + smoothing / V."""
    losses, by_row = empty(scores.shape[0], scores.dtype), np.ndim(scale) > 0
    check_scale("softmax_cross_entropy", scale, losses.size)
    factor, factors = (1.0, np.array(scale)) if by_row else (scale, None)  # the array may be in dscores
    _softmax_cross_entropy(scores, as_indices(targets), factor, smoothing, dscores, losses)
    if factors is not None:
        dscores *= factors[:, None]
    return losses


@primitive
def log_softmax(scores: Array, out: Array | None = None) -> Array:
    """scores - log(sum over the row of exp(scores))."""
    out = empty_like(scores) if out is None else out
    if scores.size:
        _log_softmax(scores, out)
    return out


@primitive
def top(scores: Array, count: int) -> tuple[Array, Array]:
    """The columns and values (n, count) of the largest scores of each row, largest first."""
    columns = np.zeros((scores.shape[0], count), np.int64)
    values = empty((scores.shape[0], count), scores.dtype)
    _top(scores, columns, values)
    return columns, values


@primitive
def draw(scores: Array, uniform: Array, temperature: float = 1.0) -> Array:
    """The first column of each row at which the sum of softmax(scores / temperature) exceeds ``uniform``."""
    columns = np.zeros(scores.shape[0], np.int64)
    inverse = 1 / normal_divisor(temperature, scores.dtype)
    _draw(scores, uniform, inverse, columns)
    return columns


@kernel(
    "T[:,::1], int64[::1], T, T, T[:,::1], T[::1]",
    arguments="scores (M, V); targets (M,) 0..V; dscores! (M, V) = scores; losses! (M,)",
    parallel_from=1 << 16,
)
def _softmax_cross_entropy(part, parts, scores, targets, scale, smoothing, dscores, losses):
    certain, shared = scores.dtype.type(1) - smoothing, smoothing / scores.dtype.type(scores.shape[1])
    in_place = scores.ctypes.data == dscores.ctypes.data  # a loop over both would not vectorise
    for row in share(scores.shape[0], part, parts):
        x, d, target = scores[row], dscores[row], targets[row]
        most = _largest(x)
        expected = certain * (x[target] - most)
        if smoothing > 0:
            expected += shared * _sum_from(x, most)
        if in_place:
            _exp(d, most)
        else:
            for j in range(x.size):
                d[j] = exp(x[j] - most)
        total = _sum(d)
        losses[row] = math.log(total) - expected
        factor, everywhere = scale / total, scale * shared
        for j in range(x.size):
            d[j] = d[j] * factor - everywhere
        d[target] -= scale * certain


@kernel("T[:,::1], T[:,::1]", parallel_from=1 << 16)
def _log_softmax(part, parts, scores, out):
    in_place = scores.ctypes.data == out.ctypes.data  # a loop over both would not vectorise
    for row in share(scores.shape[0], part, parts):
        x, y = scores[row], out[row]
        most = _largest(x)
        log_total = math.log(_sum_of_exp(x, most))
        if in_place:
            _subtract(y, most, log_total)
        else:
            for j in range(x.size):
                y[j] = (x[j] - most) - log_total


@kernel(
    "T[:,::1], int64[:,::1], T[:,::1]",
    arguments="scores (n, V); columns! (n, K) 0..V; values! (n, K)",
    parallel_from=1 << 16,
)
def _top(part, parts, scores, columns, values):
    V, K = scores.shape[1], values.shape[1]
    largest = np.empty((V + _BLOCK - 1) // _BLOCK, scores.dtype)  # of each block of a row
    for row in share(scores.shape[0] if K else 0, part, parts):
        x, best, where = scores[row], values[row], columns[row]
        best[:] = -np.inf
        for block in range(largest.size):
            largest[block] = _largest(x[block * _BLOCK : (block + 1) * _BLOCK])
            _insert(largest[block], 0, best, where)
        least = best[K - 1]  # K scores are at least as large
        best[:] = -np.inf
        for block in range(largest.size):
            if least > largest[block] or not _exceeds(largest[block], best[K - 1]):
                continue
            for j in range(block * _BLOCK, min(V, (block + 1) * _BLOCK)):
                if not x[j] <= best[K - 1]:  # larger, or one of them is NaN
                    _insert(x[j], j, best, where)


@kernel(
    "T[:,::1], float64[::1], T, int64[::1]",
    arguments="scores (n, V); uniform (n,) float64; columns! (n,) 0..V",
    parallel_from=1 << 14,
)
def _draw(part, parts, scores, uniform, inverse, columns):
    V = scores.shape[1]
    sums = np.empty((V + _BLOCK - 1) // _BLOCK)  # of the probabilities in each block of a row
    for row in share(scores.shape[0] if V else 0, part, parts):
        x = scores[row]
        most = _largest(x)
        columns[row] = V - 1
        if most != most:
            columns[row] = _first_nan(x)
        elif most > -np.inf:
            total = 0.0
            for block in range(sums.size):
                sums[block] = _sum_of_powers(x[block * _BLOCK : (block + 1) * _BLOCK], most, inverse)
                total += sums[block]
            point, before, passed, found = uniform[row] * total, 0.0, 0.0, 0
            for block in range(sums.size):
                if sums[block] > 0:
                    before, found = passed, block
                    passed += sums[block]
                    if passed > point:
                        break
            for j in range(found * _BLOCK, min(V, (found + 1) * _BLOCK)):
                probability = float(exp((x[j] - most) * inverse))
                if probability > 0:
                    columns[row] = j
                    before += probability
                    if before > point:
                        break


# ---------------------------------------------------------------- of one row


@inlined
def _exceeds(score, other):
    """Whether the score is larger, where NaN counts as larger than all numbers."""
    return score > other or (score != score and other == other)


@inlined
def _insert(score, column, best, where):
    """Insert the score into the best ones, in descending order and after equal ones, if it is among them."""
    rank = best.size
    while rank > 0 and _exceeds(score, best[rank - 1]):
        rank -= 1
    for k in range(best.size - 1, rank, -1):
        best[k], where[k] = best[k - 1], where[k - 1]
    if rank < best.size:
        best[rank], where[rank] = score, column


@inlined
def _largest(x):
    most = x[0]
    for j in range(x.size):
        most = maximum(most, x[j])
    return most


@inlined
def _first_nan(x):
    j = 0
    while x[j] == x[j]:
        j += 1
    return j


@inlined
def _exp(x, shift):
    for j in range(x.size):
        x[j] = exp(x[j] - shift)


@inlined
def _subtract(x, first, second):
    for j in range(x.size):
        x[j] = (x[j] - first) - second


@reduction
def _sum(x):
    total = x.dtype.type(0)
    for j in range(x.size):
        total += x[j]
    return total


@reduction
def _sum_of_exp(x, shift):
    total = x.dtype.type(0)
    for j in range(x.size):
        total += exp(x[j] - shift)
    return total


@reduction
def _sum_from(x, origin):
    total = x.dtype.type(0)
    for j in range(x.size):
        total += x[j] - origin
    return total


@reduction
def _sum_of_powers(x, shift, factor):
    total = 0.0
    for j in range(x.size):
        total += float(exp((x[j] - shift) * factor))
    return total
