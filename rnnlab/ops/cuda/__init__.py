"""The primitives on CuPy arrays: kernels of our own, matrix products by cuBLAS, the rest by CuPy.

The names and signatures are those of :mod:`rnnlab.ops.numpy`, whose docstrings tell what each does. No
module but this one and those that it is made of imports CuPy, and it is imported when a CuPy array arrives.

Index arrays, such as ``tokens`` and ``rows``, are int64. Nothing waits for the device but what returns a
Python number, and :func:`asnumpy`. The noise is that of NumPy, to the bit; other numbers differ in rounding.
"""

from __future__ import annotations

import functools
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.ops.cuda import cublas
from rnnlab.ops.cuda.attention import (
    additive_attention_backward,
    additive_attention_forward,
    attention_memory_gradient,
    dot_attention_backward,
    dot_attention_forward,
)
from rnnlab.ops.cuda.cells import (
    gru_candidate_backward,
    gru_candidate_forward,
    gru_candidate_regularised_backward,
    gru_candidate_regularised_forward,
    gru_gates_backward,
    gru_gates_forward,
    lstm_backward,
    lstm_backward_of_sum,
    lstm_forward,
    lstm_regularised_backward,
    lstm_regularised_forward,
    rnn_backward,
    rnn_forward,
    rnn_regularised_backward,
    rnn_regularised_forward,
    simplified_gru_backward,
    simplified_gru_forward,
    simplified_gru_regularised_backward,
    simplified_gru_regularised_forward,
)
from rnnlab.ops.cuda.graphs import copied, uploaded
from rnnlab.ops.cuda.launch import THREADS, by_rows, check_whole, each, stride
from rnnlab.ops.cuda.masks import dropout, dropout_mask, mask_seeds
from rnnlab.ops.cuda.optim import (
    adadelta,
    adagrad,
    adam,
    adamw,
    clip_values,
    first_non_finite,
    flush_subnormals,
    momentum,
    rmsprop,
    sgd,
    sum_of_squares,
)
from rnnlab.ops.cuda.persistent import lstm_in_one_launch
from rnnlab.ops.lstm_steps import lstm_step_by_step
from rnnlab.types import Array

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamw",
    "add_column_sums",
    "additive_attention_backward",
    "additive_attention_forward",
    "affine",
    "affine_into",
    "asarray",
    "asnumpy",
    "attention_memory_gradient",
    "clip_values",
    "concatenate",
    "dot_attention_backward",
    "dot_attention_forward",
    "dropout",
    "dropout_mask",
    "embedding_gradient",
    "empty",
    "first_non_finite",
    "flush_subnormals",
    "gru_candidate_backward",
    "gru_candidate_forward",
    "gru_candidate_regularised_backward",
    "gru_candidate_regularised_forward",
    "gru_gates_backward",
    "gru_gates_forward",
    "indices",
    "log_softmax",
    "lstm_backward",
    "lstm_forward",
    "lstm_regularised_backward",
    "lstm_regularised_forward",
    "lstm_steps_backward",
    "lstm_steps_forward",
    "mask_seeds",
    "matmul",
    "matmul_add",
    "matmul_into",
    "momentum",
    "prepacked",
    "put",
    "rmsprop",
    "rnn_backward",
    "rnn_forward",
    "rnn_regularised_backward",
    "rnn_regularised_forward",
    "scalar",
    "sgd",
    "sigmoid",
    "simplified_gru_backward",
    "simplified_gru_forward",
    "simplified_gru_regularised_backward",
    "simplified_gru_regularised_forward",
    "softmax_cross_entropy",
    "staged",
    "sum_of_squares",
    "take",
    "tanh",
    "top",
    "zeros",
]
asnumpy = cp.asnumpy
concatenate = cp.concatenate
empty = cp.empty
tanh = cp.tanh
zeros = cp.zeros

CHUNK = 16  # the cache is larger, and a launch has its price


def asarray(x: Any, dtype: Any = None) -> Array:
    """The numbers on the device, row by row."""
    return cp.asarray(x, dtype, order="C") if isinstance(x, cp.ndarray) else uploaded(x, dtype)


def indices(x: Array) -> Array:
    """Integers of any width as the primitives take them, of 64 bits."""
    return asarray(x, np.int64)


def scalar(x: Any) -> Any:
    """A number, or an array (), which nobody has waited for."""
    return x if isinstance(x, cp.ndarray) else float(x)


def staged(x: Array, like: Array) -> Array:
    """Copy through pinned memory on a stream of its own, while others work; wait for this copy alone.

    Its memory serves later copies once it is gone, so it has to live until the work that reads it is done.
    """
    if isinstance(x, cp.ndarray):
        return x.astype(like.dtype, copy=False)
    return copied(np.asarray(x, like.dtype), like.device)


# ---------------------------------------------------------------- matrix products


def matmul(x: Array, w: Array) -> Array:
    """x w, (M, K) (K, N) -> (M, N), or of each pair of matrices where there are three axes."""
    if x.ndim != 2 or w.ndim != 2:
        return cublas.batched(x, w)
    out = cp.empty((x.shape[0], w.shape[1]), x.dtype)
    cublas.gemm(x, w, out)
    return out


def affine(x: Array, w: Array, b: Array) -> Array:
    """x w + b, (M, D) (D, H) (H,) -> (M, H)."""
    out = cp.empty((x.shape[0], w.shape[1]), x.dtype)
    affine_into(x, w, b, out)
    return out


def affine_into(x: Array, w: Array, b: Array, out: Array) -> None:
    """Write x w + b."""
    out[...] = b
    cublas.gemm(x, w, out, 1.0)


def prepacked(w: Array) -> Array:
    """The matrix, or, where products are done in bfloat16, the matrix rounded to that once and for all."""
    if cublas.MATMUL == "bfloat16" and w.dtype == np.float32:
        return cublas.rounded(w)
    return w


def matmul_into(x: Array, w: Array, out: Array) -> None:
    """Write x w."""
    cublas.gemm(x, w, out)


def matmul_add(x: Array, w: Array, out: Array) -> None:
    """Add x w to out."""
    cublas.gemm(x, w, out, 1.0)


def add_column_sums(x: Array, out: Array) -> None:
    """Add the sum of all rows: a product with ones, which has more blocks at work than a sum."""
    rows, device = x.shape[0], cp.cuda.runtime.getDevice()
    ones = _ones(max(rows - 1, 0).bit_length(), x.dtype.char, device)[:, :rows]
    cublas.gemm(ones, x, out[None], 1.0, "float32")


@functools.cache
def _ones(bits: int, dtype: str, device: int) -> Array:
    """A row of 2^bits ones on the device, which is the one in use. It is kept: a graph may read it again."""
    ones = cp.ones((1, 1 << bits), dtype)
    cp.cuda.get_current_stream().synchronize()  # once, and any stream may read them
    return ones


lstm_steps_forward, lstm_steps_backward = lstm_in_one_launch(
    *lstm_step_by_step(matmul_into, matmul_add, lstm_forward, lstm_backward_of_sum)
)


# ---------------------------------------------------------------- rows


def take(x: Array, rows: Array, out: Array) -> None:
    """Write x[rows]."""
    _move("take", x, rows, out)


def put(x: Array, rows: Array, out: Array) -> None:
    """Write the rows of x to out[rows]."""
    _move("put", x, rows, out)


def _move(name: str, x: Array, rows: Array, out: Array) -> None:
    check_whole(rows)
    strides = stride(x), stride(out)
    each(name, rows.size * x.shape[1], x, x, rows, out, rows.size, x.shape[1], *strides)


def embedding_gradient(dout: Array, tokens: Array, dW: Array) -> None:
    """Add rows to rows, those of one token in their order: without atomics, the same bits every time."""
    check_whole(dout, tokens, dW)
    M, W = dout.shape
    by_rows("embedding_gradient", M, max(W, M), dout, dout, tokens, dW, M, W, room=THREADS)


# ---------------------------------------------------------------- scores


def sigmoid(x: Array, out: Array | None = None) -> Array:
    """1 / (1 + exp(-x)), written as a tanh."""
    out = cp.multiply(x, 0.5, out=out)
    cp.tanh(out, out=out)
    out *= 0.5
    out += 0.5
    return out


def softmax_cross_entropy(
    scores: Array, targets: Array, scale: float | Array, dscores: Array, smoothing: float = 0.0
) -> Array:
    """Cross-entropy of each row, and its gradient times ``scale``."""
    factor, scales = (1.0, scale) if isinstance(scale, cp.ndarray) else (float(scale), None)
    check_whole(scores, targets, dscores, scales)
    M, V = scores.shape
    losses = cp.empty(M, scores.dtype)
    arguments = scores, targets, scales, dscores, losses, M, V, factor, float(smoothing)
    by_rows("softmax_cross_entropy", M, V, scores, *arguments)
    return losses


def log_softmax(scores: Array) -> Array:
    """Log-probabilities of each row."""
    check_whole(scores)
    out = cp.empty(scores.shape, scores.dtype)
    by_rows("log_softmax", scores.shape[0], scores.shape[1], scores, scores, out, *scores.shape)
    return out


def top(scores: Array, count: int) -> tuple[Array, Array]:
    """Columns and values of the largest scores of each row."""
    check_whole(scores)
    n, V = scores.shape
    columns, values = cp.empty((n, count), np.int64), cp.empty((n, count), scores.dtype)
    by_rows("top", n, V, scores, scores, columns, values, n, V, count, room=3 * THREADS)
    return columns, values
