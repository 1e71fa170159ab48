"""Scores of classes on CuPy: softmax, the largest scores, and draws."""

from __future__ import annotations

import cupy as cp
import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops.arguments import check_scale, normal_divisor
from rnnlab.ops.cuda.checks import checked
from rnnlab.ops.cuda.launch import NULL, THREADS, by_rows, check_contiguous
from rnnlab.types import Array


@checked
def softmax_cross_entropy(
    scores: Array, targets: Array, scale: float | Array, dscores: Array, smoothing: float = 0.0
) -> Array:
    factor, scales = (1.0, scale) if isinstance(scale, cp.ndarray) else (float(scale), NULL)
    check_contiguous(scores, targets, dscores, scales)
    M, V = scores.shape
    check_scale("softmax_cross_entropy", scale, M)
    if scales is scale and scale.dtype != scores.dtype:
        raise InputTypeError(
            f"softmax_cross_entropy: scale has dtype {scale.dtype}, expected {scores.dtype} as scores has"
        )
    losses = cp.empty(M, scores.dtype)
    arguments = scores, targets, scales, dscores, losses, M, V, factor, float(smoothing)
    by_rows("softmax_cross_entropy", M, V, scores, *arguments)
    return losses


@checked
def log_softmax(scores: Array, out: Array | None = None) -> Array:
    out = cp.empty(scores.shape, scores.dtype) if out is None else out
    check_contiguous(scores, out)
    by_rows("log_softmax", scores.shape[0], scores.shape[1], scores, scores, out, *scores.shape)
    return out


@checked
def top(scores: Array, count: int) -> tuple[Array, Array]:
    n, V = scores.shape
    if not V and n and count:
        raise InputError(f"top: scores has shape {scores.shape}, expected at least one column")
    columns, values = cp.empty((n, count), np.int64), cp.empty((n, count), scores.dtype)
    scores = cp.ascontiguousarray(scores)
    by_rows("top", n, V, scores, scores, columns, values, n, V, count, workspace=3 * THREADS)
    return columns, values


@checked
def draw(scores: Array, uniform: Array, temperature: float = 1.0) -> Array:
    n, V = scores.shape
    columns, scores = cp.empty(n, np.int64), cp.ascontiguousarray(scores)
    inverse = 1 / normal_divisor(temperature, scores.dtype)
    uniform = cp.ascontiguousarray(uniform)
    by_rows("draw", n, V, scores, scores, uniform, columns, n, V, inverse, workspace=3 * THREADS)
    return columns
