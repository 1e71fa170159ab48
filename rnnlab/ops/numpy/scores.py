"""Scores of classes on NumPy: softmax, the largest scores, and draws."""

from __future__ import annotations

import numpy as np

from rnnlab.ops.arguments import check_scale, checked, normal_divisor
from rnnlab.types import Array

_BLOCK = 1 << 16  # elements per block of rows, so that a block stays in the cache for all passes


@checked
def softmax_cross_entropy(
    scores: Array, targets: Array, scale: float | Array, dscores: Array, smoothing: float = 0.0
) -> Array:
    M, V = scores.shape
    certain, shared = 1 - smoothing, smoothing / max(V, 1)
    check_scale("softmax_cross_entropy", scale, M)
    losses, scales = np.empty(M, scores.dtype), np.broadcast_to(np.array(scale), M)  # may be in dscores
    step = max(1, _BLOCK // max(V, 1))
    for start in range(0, M, step):
        block = slice(start, start + step)
        d, y = dscores[block], targets[block]
        rows, factor = np.arange(d.shape[0]), scales[block, None]
        np.subtract(scores[block], scores[block].max(axis=1, keepdims=True), out=d)
        expected = certain * d[rows, y]
        if smoothing:
            expected += shared * d.sum(axis=1)
        np.exp(d, out=d)
        total = d.sum(axis=1)
        losses[block] = np.log(total) - expected
        d *= factor / total[:, None]
        if smoothing:
            d -= factor * shared
        d[rows, y] -= factor[:, 0] * certain
    return losses


@checked
def log_softmax(scores: Array, out: Array | None = None) -> Array:
    shifted = np.subtract(scores, scores.max(axis=1, keepdims=True, initial=-np.inf), out=out)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


@checked
def top(scores: Array, count: int) -> tuple[Array, Array]:
    scores, rows = scores.copy(), np.arange(scores.shape[0])
    columns, values = np.empty((rows.size, count), np.int64), np.empty((rows.size, count), scores.dtype)
    for rank in range(count):  # few passes; a partition is not faster, and its order of equals is arbitrary
        best = scores.argmax(axis=1)
        columns[:, rank], values[:, rank] = best, scores[rows, best]
        scores[rows, best] = -np.inf
    return columns, values


@checked
def draw(scores: Array, uniform: Array, temperature: float = 1.0) -> Array:
    most = scores.max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        probs = scores - np.where(most > -np.inf, most, 0)
        probs /= normal_divisor(temperature, scores.dtype)
    np.exp(probs, out=probs)
    sums = np.cumsum(probs, axis=1, dtype=np.float64)
    total = sums[:, -1]
    point = np.minimum(uniform * total, np.nextafter(total, 0))  # rounding must not reach the total
    columns = (sums <= point[:, None]).sum(axis=1)
    columns[most[:, 0] == -np.inf] = scores.shape[1] - 1
    unknown = np.isnan(most[:, 0])
    columns[unknown] = np.isnan(scores[unknown]).argmax(axis=1)
    return columns
