"""The maximum over a set of vectors, and the multi-label margin loss, on CuPy."""

from __future__ import annotations

import cupy as cp
import numpy as np

from rnnlab.ops.cuda.checks import checked
from rnnlab.ops.cuda.launch import by_rows, check_contiguous, each
from rnnlab.types import Array


@checked
def max_pool(x: Array, values: Array) -> Array:
    check_contiguous(x, values)
    n, L, V = x.shape
    slots = cp.empty((n, V), np.int64)
    each("max_pool", n * V, x, x, values, slots, n, L, V)
    return slots


@checked
def max_pool_gradient(dvalues: Array, slots: Array, dx: Array) -> None:
    check_contiguous(dvalues, slots, dx)
    each("max_pool_gradient", dx.size, dvalues, dvalues, slots, dx, *dx.shape)


@checked
def multilabel_margin(scores: Array, words: Array, scale: float, dscores: Array) -> Array:
    check_contiguous(scores, words, dscores)
    (M, V), K = scores.shape, words.shape[1]
    losses = cp.empty(M, scores.dtype)
    by_rows("multilabel_margin", M, V, scores, scores, words, dscores, losses, M, V, K, float(scale))
    return losses
