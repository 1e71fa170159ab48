"""The primitives on NumPy: the reference that every other implementation is held against.

Arrays that a primitive writes are its last arguments, so that loops over time allocate nothing. ``gates``
come in as pre-activations and leave as activations; ``da`` is a gradient with respect to pre-activations.
Every array is (rows, columns) unless its shape is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rnnlab.ops.numpy_attention import (
    additive_attention_backward,
    additive_attention_forward,
    attention_memory_gradient,
    dot_attention_backward,
    dot_attention_forward,
)
from rnnlab.ops.numpy_optim import (
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

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamw",
    "additive_attention_backward",
    "additive_attention_forward",
    "affine",
    "affine_into",
    "asarray",
    "attention_memory_gradient",
    "clip_values",
    "concatenate",
    "dot_attention_backward",
    "dot_attention_forward",
    "dropout",
    "embedding_gradient",
    "empty",
    "first_non_finite",
    "flush_subnormals",
    "gru_candidate_backward",
    "gru_candidate_forward",
    "gru_gates_backward",
    "gru_gates_forward",
    "log_softmax",
    "lstm_backward",
    "lstm_forward",
    "matmul",
    "matmul_add",
    "matmul_into",
    "momentum",
    "packed",
    "rmsprop",
    "rnn_backward",
    "rnn_forward",
    "sgd",
    "sigmoid",
    "simplified_gru_backward",
    "simplified_gru_forward",
    "softmax_cross_entropy",
    "sum_of_squares",
    "take",
    "tanh",
    "zeros",
]

Array = Any

asarray = np.asarray
concatenate = np.concatenate
empty = np.empty
matmul = np.matmul
tanh = np.tanh
zeros = np.zeros


def affine(x: Array, w: Array, b: Array) -> Array:
    """x w + b, (M, D) (D, H) (H,) -> (M, H)."""
    out = matmul(x, w)
    out += b
    return out


def affine_into(x: Array, w: Array, b: Array, out: Array) -> None:
    """out = x w + b, (n, K) (K, G) (G,) -> (n, G), w as it is or from :func:`packed`."""
    np.matmul(x, w, out=out)
    out += b


def packed(w: Array) -> Array:
    """The matrix w (K, G) in a form that is multiplied by often."""
    return w


def matmul_into(x: Array, w: Array, out: Array) -> None:
    """out = x w, (n, K) (K, G) -> (n, G), w as it is or from :func:`packed`."""
    np.matmul(x, w, out=out)


def matmul_add(x: Array, w: Array, out: Array) -> None:
    """out += x w, (n, K) (K, G) -> (n, G), w as it is or from :func:`packed`."""
    out += np.matmul(x, w)


def take(x: Array, rows: Array, out: Array) -> None:
    """out = x[rows], (M, D) (n,) -> (n, D)."""
    np.take(x, rows, axis=0, out=out, mode="clip")  # the mode that needs no second copy


def sigmoid(x: Array, out: Array | None = None) -> Array:
    """1 / (1 + exp(-x)), written as a tanh: it cannot overflow, and NumPy's tanh is vectorised."""
    out = np.multiply(x, 0.5, out=out)
    np.tanh(out, out=out)
    out *= 0.5
    out += 0.5
    return out


# ---------------------------------------------------------------- recurrent cells, one step of the active
# rows


def rnn_forward(a: Array, h: Array) -> None:
    """h = tanh(a), both (n, H)."""
    np.tanh(a, out=h)


def rnn_backward(dh: Array, h: Array, da: Array) -> None:
    """da = dh (1 - h^2), all (n, H); ``da`` is written."""
    np.multiply(h, h, out=da)
    np.subtract(1, da, out=da)
    da *= dh


def lstm_forward(gates: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
    """Activate the gates i, f, o, g, (n, 4H), and write c, tanh(c) and h, (n, H)."""
    H = c.shape[1]
    sigmoid(gates[:, : 3 * H], out=gates[:, : 3 * H])
    g = gates[:, 3 * H :]
    np.tanh(g, out=g)
    i, f, o = gates[:, :H], gates[:, H : 2 * H], gates[:, 2 * H : 3 * H]
    np.multiply(f, prev_c, out=c)
    np.multiply(i, g, out=h)
    c += h
    np.tanh(c, out=tanh_c)
    np.multiply(o, tanh_c, out=h)


def lstm_backward(dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array) -> None:
    """Write da (n, 4H); ``dc`` comes in as the gradient of c_t and leaves as that of c_{t-1}."""
    H = dc.shape[1]
    i, f, o, g = (gates[:, k * H : (k + 1) * H] for k in range(4))
    di, df, do, dg = (da[:, k * H : (k + 1) * H] for k in range(4))
    # dc += dh o (1 - tanh(c)^2); di is scratch until it is written below
    np.multiply(tanh_c, tanh_c, out=di)
    np.subtract(1, di, out=di)
    di *= o
    di *= dh
    dc += di
    # gate gradients times the slopes of their nonlinearities: s (1 - s) for sigmoid, 1 - g^2 for tanh
    np.subtract(1, gates[:, : 3 * H], out=da[:, : 3 * H])
    da[:, : 3 * H] *= gates[:, : 3 * H]
    np.multiply(g, g, out=dg)
    np.subtract(1, dg, out=dg)
    dg *= i
    dg *= dc
    di *= g
    di *= dc
    df *= prev_c
    df *= dc
    do *= tanh_c
    do *= dh
    dc *= f


def gru_gates_forward(gates: Array, prev_h: Array, reset_h: Array) -> None:
    """Activate z and r in ``gates`` (n, 3H); write reset_h = r prev_h, (n, H)."""
    H = prev_h.shape[1]
    sigmoid(gates[:, : 2 * H], out=gates[:, : 2 * H])
    np.multiply(gates[:, H : 2 * H], prev_h, out=reset_h)


def gru_candidate_forward(gates: Array, prev_h: Array, h: Array) -> None:
    """Activate the candidate in ``gates`` (n, 3H); write h = (1 - z) g + z prev_h, (n, H)."""
    H = prev_h.shape[1]
    g = gates[:, 2 * H :]
    np.tanh(g, out=g)
    _interpolate(gates[:, :H], g, prev_h, h)


def gru_candidate_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write the z and candidate parts of da (n, 3H); ``dh`` leaves as its direct share of dprev_h, dh z."""
    H = prev_h.shape[1]
    _interpolate_backward(dh, gates[:, :H], gates[:, 2 * H :], prev_h, da[:, :H], da[:, 2 * H :])


def gru_gates_backward(dreset_h: Array, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write the r part of da (n, 3H) and add dreset_h r to ``dh``; ``dreset_h`` is scratch afterwards."""
    H = prev_h.shape[1]
    r, dr = gates[:, H : 2 * H], da[:, H : 2 * H]
    np.subtract(1, r, out=dr)
    dr *= r
    dr *= prev_h
    dr *= dreset_h
    dreset_h *= r
    dh += dreset_h


def simplified_gru_forward(gates: Array, prev_h: Array, h: Array) -> None:
    """Activate the gates z, g, (n, 2H); write h = (1 - z) g + z prev_h, (n, H)."""
    H = prev_h.shape[1]
    z, g = gates[:, :H], gates[:, H:]
    sigmoid(z, out=z)
    np.tanh(g, out=g)
    _interpolate(z, g, prev_h, h)


def simplified_gru_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write da (n, 2H); ``dh`` leaves as its direct share of dprev_h, dh z."""
    H = prev_h.shape[1]
    _interpolate_backward(dh, gates[:, :H], gates[:, H:], prev_h, da[:, :H], da[:, H:])


def _interpolate(z: Array, g: Array, prev_h: Array, h: Array) -> None:
    np.subtract(prev_h, g, out=h)  # (1 - z) g + z prev_h = g + z (prev_h - g)
    h *= z
    h += g


def _interpolate_backward(dh: Array, z: Array, g: Array, prev_h: Array, da_z: Array, da_g: Array) -> None:
    np.subtract(1, z, out=da_g)  # scratch: 1 - z
    np.subtract(prev_h, g, out=da_z)
    da_z *= z
    da_z *= da_g
    da_z *= dh
    da_g *= dh
    dh *= z
    da_g *= 1 - g * g


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

# splitmix64 (Steele, Lea and Flood 2014)
GAMMA, MIX_1, MIX_2 = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def dropout(x: Array, p: float, key: int, out: Array) -> None:
    """out = 0 with probability p, else x / (1 - p); of any shape, ``out`` contiguous, or x itself.

    What is dropped follows from ``key``, in [0, 2^63), and the place alone: number i is kept if the upper
    half of splitmix64's output for the state key + (i + 1) gamma is at least 2^32 p.
    """
    numbers, kept, scale = x.reshape(-1), out.reshape(-1), x.dtype.type(1 / (1 - p))
    for start in range(0, numbers.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        z = np.arange(start + 1, start + 1 + numbers[block].size, dtype=np.uint64)
        z *= GAMMA
        z += np.uint64(key)
        for shift, factor in ((30, MIX_1), (27, MIX_2)):
            z ^= z >> np.uint64(shift)
            z *= factor
        z ^= z >> np.uint64(31)
        z >>= np.uint64(32)
        np.multiply(numbers[block], np.where(z >= dropout_threshold(p), scale, 0), out=kept[block])


def dropout_threshold(p: float) -> np.uint64:
    """2^32 p."""
    return np.uint64(round(p * 2**32))


# ---------------------------------------------------------------- scores


def softmax_cross_entropy(scores: Array, targets: Array, scale: float, dscores: Array) -> Array:
    """Negative log-likelihood of each row and, in ``dscores``, its gradient times ``scale``.

    ``dscores`` may be ``scores`` itself. (M, V), (M,) -> (M,)
    """
    M, V = scores.shape
    losses = np.empty(M, scores.dtype)
    step = max(1, _BLOCK // max(V, 1))
    for start in range(0, M, step):
        block = slice(start, start + step)
        d, y = dscores[block], targets[block]
        rows = np.arange(d.shape[0])
        np.subtract(scores[block], scores[block].max(axis=1, keepdims=True), out=d)
        chosen = d[rows, y]
        np.exp(d, out=d)
        total = d.sum(axis=1)
        losses[block] = np.log(total) - chosen
        d *= (scale / total)[:, None]
        d[rows, y] -= scale
    return losses


def log_softmax(scores: Array) -> Array:
    """Log-probabilities of each row, (M, V) -> (M, V)."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted
