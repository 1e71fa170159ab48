"""The primitives on NumPy: the reference that every other implementation is held against.

Arrays that a primitive writes are its last arguments, so that loops over time allocate nothing. ``gates``
come in as pre-activations and leave as activations; ``da`` is a gradient with respect to pre-activations.
Every array is (rows, columns) unless its shape is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rnnlab.ops.lstm_steps import lstm_step_by_step, of_sum
from rnnlab.ops.numpy.attention import (
    additive_attention_backward,
    additive_attention_forward,
    attention_memory_gradient,
    dot_attention_backward,
    dot_attention_forward,
)
from rnnlab.ops.numpy.cells import (
    gru_candidate_backward,
    gru_candidate_dropped_backward,
    gru_candidate_dropped_forward,
    gru_candidate_forward,
    gru_gates_backward,
    gru_gates_forward,
    lstm_backward,
    lstm_dropped_backward,
    lstm_dropped_forward,
    lstm_forward,
    rnn_backward,
    rnn_forward,
    sigmoid,
    simplified_gru_backward,
    simplified_gru_dropped_backward,
    simplified_gru_dropped_forward,
    simplified_gru_forward,
)
from rnnlab.ops.numpy.masks import (
    dropout,
    dropout_mask,
    mask_seeds,
    zoneout_backward,
    zoneout_forward,
)
from rnnlab.ops.numpy.optim import (
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
from rnnlab.ops.step_masks import Drawing, regularised_lstm, regularised_mixing, regularised_rnn
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
asarray = np.asarray
asnumpy = np.asarray  # where a Python program, or NumPy, goes on with the numbers
concatenate = np.concatenate
empty = np.empty
indices = np.asarray  # integers of any width as the primitives take them
matmul = np.matmul
tanh = np.tanh
zeros = np.zeros

CHUNK = (
    1  # by how much chunks of a sequence are best to be larger than rnnlab.layers.recurrent.packing has them
)


def scalar(x: Any) -> Any:
    """A number, or an array () of any library but NumPy's, which nobody has waited for."""
    return float(x)


def staged(x: Array, like: Array) -> Array:
    """The numbers of x in the dtype and on the device of ``like``, ahead of the work that needs them."""
    return np.asarray(x, like.dtype)


def affine(x: Array, w: Array, b: Array) -> Array:
    """x w + b, (M, D) (D, H) (H,) -> (M, H)."""
    out = matmul(x, w)
    out += b
    return out


def affine_into(x: Array, w: Array, b: Array, out: Array) -> None:
    """out = x w + b, (n, K) (K, G) (G,) -> (n, G), w as it is or from :func:`prepacked`."""
    np.matmul(x, w, out=out)
    out += b


def prepacked(w: Array) -> Array:
    """The matrix w (K, G) in a form that is multiplied by often."""
    return w


def matmul_into(x: Array, w: Array, out: Array) -> None:
    """out = x w, (n, K) (K, G) -> (n, G), w as it is or from :func:`prepacked`."""
    np.matmul(x, w, out=out)


def matmul_add(x: Array, w: Array, out: Array) -> None:
    """out += x w, (n, K) (K, G) -> (n, G), w as it is or from :func:`prepacked`."""
    out += np.matmul(x, w)


def add_column_sums(x: Array, out: Array) -> None:
    """Add the sum of all rows, (M, N) -> (N,): the gradient of a bias."""
    out += x.sum(axis=0)


lstm_steps_forward, lstm_steps_backward = lstm_step_by_step(
    matmul_into, matmul_add, lstm_forward, of_sum(lstm_backward)
)

_drawing = Drawing(dropout_mask, zoneout_forward, zoneout_backward)
rnn_regularised_forward, rnn_regularised_backward = regularised_rnn(_drawing, rnn_forward, rnn_backward)
lstm_regularised_forward, lstm_regularised_backward = regularised_lstm(
    _drawing, lstm_forward, lstm_backward, lstm_dropped_forward, lstm_dropped_backward
)
gru_candidate_regularised_forward, gru_candidate_regularised_backward = regularised_mixing(
    _drawing,
    gru_candidate_forward,
    gru_candidate_backward,
    gru_candidate_dropped_forward,
    gru_candidate_dropped_backward,
)
simplified_gru_regularised_forward, simplified_gru_regularised_backward = regularised_mixing(
    _drawing,
    simplified_gru_forward,
    simplified_gru_backward,
    simplified_gru_dropped_forward,
    simplified_gru_dropped_backward,
)


def take(x: Array, rows: Array, out: Array) -> None:
    """out = x[rows], (M, D) (n,) -> (n, D)."""
    np.take(x, rows, axis=0, out=out, mode="clip")  # the mode that needs no second copy


def put(x: Array, rows: Array, out: Array) -> None:
    """out[rows] = x, (n, D) (n,) -> (M, D); no row twice."""
    out[rows] = x


# ---------------------------------------------------------------- words


def embedding_gradient(dout: Array, tokens: Array, dW: Array) -> None:
    """Add each row of dout (M, W) to the row of dW (V, W) that its token names: a sparse product."""
    M = tokens.shape[0]
    if M:
        one_hot = sparse.csr_array(
            (np.ones(M, dout.dtype), (tokens, np.arange(M))), shape=(int(tokens.max()) + 1, M)
        )
        rows = one_hot @ dout
        dW[: rows.shape[0]] += rows


_BLOCK = 1 << 16  # numbers that are worked on together, so that every pass over them finds them in the cache


# ---------------------------------------------------------------- scores


def softmax_cross_entropy(
    scores: Array, targets: Array, scale: float | Array, dscores: Array, smoothing: float = 0.0
) -> Array:
    """Cross-entropy of each row and, in ``dscores``, its gradient times ``scale``, one number or (M,).

    It is (1 - smoothing) times the target's negative log-likelihood, and smoothing times the mean of all V
    classes'. ``dscores`` may be ``scores`` itself. (M, V), (M,) -> (M,)
    """
    M, V = scores.shape
    certain, shared = 1 - smoothing, smoothing / max(V, 1)
    losses, scales = np.empty(M, scores.dtype), np.broadcast_to(scale, M)
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


def log_softmax(scores: Array) -> Array:
    """Log-probabilities of each row, (M, V) -> (M, V)."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


def top(scores: Array, count: int) -> tuple[Array, Array]:
    """The columns and values (n, count) of the largest scores of each row (n, V), largest first.

    Among equals it is the first; NaN is the largest. Where there are fewer columns, the values after the last
    are minus infinity. ``scores`` is overwritten.
    """
    rows = np.arange(scores.shape[0])
    columns, values = np.empty((rows.size, count), np.int64), np.empty((rows.size, count), scores.dtype)
    for rank in range(count):  # few passes; a partition is not faster, and picks any of several equals
        best = scores.argmax(axis=1)
        columns[:, rank], values[:, rank] = best, scores[rows, best]
        scores[rows, best] = -np.inf
    return columns, values
