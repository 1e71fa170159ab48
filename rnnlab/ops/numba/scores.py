"""Scores of classes as kernels: softmax."""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from rnnlab.ops.numba.embedding import as_indices
from rnnlab.ops.numba.kernel import inlined, kernel, primitive, reduction
from rnnlab.ops.numba.math import exp, maximum
from rnnlab.ops.numba.memory import empty, empty_like
from rnnlab.types import Array


@primitive
def softmax_cross_entropy(
    scores: Array, targets: Array, scale: float | Array, dscores: Array, smoothing: float = 0.0
) -> Array:
    """losses = -q . log p; dscores = scale (p - q); q = (1 - smoothing) onehot(target) + smoothing / V."""
    losses, by_row = empty(scores.shape[0], scores.dtype), np.ndim(scale) > 0
    factor = 1.0 if by_row else scale
    _softmax_cross_entropy(scores, as_indices(targets), factor, smoothing, dscores, losses)
    if by_row:
        dscores *= np.expand_dims(scale, 1)
    return losses


@primitive
def log_softmax(scores: Array) -> Array:
    """scores - log(sum over the row of exp(scores))."""
    out = empty_like(scores)
    _log_softmax(scores, out)
    return out


@kernel(
    "T[:,::1], int64[::1], T, T, T[:,::1], T[::1]",
    arguments="scores (M, V); targets (M,) 0..V; dscores! (M, V) = scores; losses! (M,)",
    parallel_from=1 << 16,
)
def _softmax_cross_entropy(scores, targets, scale, smoothing, dscores, losses):
    certain, shared = scores.dtype.type(1) - smoothing, smoothing / scores.dtype.type(scores.shape[1])
    in_place = scores.ctypes.data == dscores.ctypes.data  # a loop over both would not vectorise
    for row in prange(scores.shape[0]):
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


@kernel(
    "T[:,::1], T[:,::1]",
    arguments="scores (M, V); out! (M, V)",
    parallel_from=1 << 16,
)
def _log_softmax(scores, out):
    for row in prange(scores.shape[0]):
        x, y = scores[row], out[row]
        most = _largest(x)
        for j in range(x.size):
            y[j] = exp(x[j] - most)
        log_total = math.log(_sum(y))
        for j in range(x.size):
            y[j] = (x[j] - most) - log_total


# ---------------------------------------------------------------- of one row


@inlined
def _largest(x):
    most = x[0]
    for j in range(x.size):
        most = maximum(most, x[j])  # type: ignore[call-arg]
    return most


@inlined
def _exp(x, shift):
    for j in range(x.size):
        x[j] = exp(x[j] - shift)


@reduction
def _sum(x):
    total = x.dtype.type(0)
    for j in range(x.size):
        total += x[j]
    return total


@reduction
def _sum_from(x, origin):
    total = x.dtype.type(0)
    for j in range(x.size):
        total += x[j] - origin
    return total
