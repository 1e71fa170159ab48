"""Word embedding: each token selects a row of a matrix.

Forward and backward:

    out[n, t] = W[x[n, t]]              dW[v] = sum of dout[n, t] over all (n, t) with x[n, t] = v
"""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.layers.checks import as_tokens, check_cache, check_gradient, check_shapes, ops_of
from rnnlab.layers.parameters import gradient_arrays
from rnnlab.ops import ops_for
from rnnlab.types import Array


class WordEmbeddingCache(NamedTuple):
    """Arrays that :func:`word_embedding_backward` needs."""

    x: Array  # (...) tokens, int64
    W: Array  # (V, D)


def word_embedding_forward(x: Array, W: Array, *, checked: bool = False) -> tuple[Array, WordEmbeddingCache]:
    """Look up the word vector of each token.

    Parameters
    ----------
    x : (N, T) integers in [0, V)
        Tokens of any integer dtype; any other number of axes is possible. They may be a NumPy array even if
        W is on a GPU.
    W : (V, D)
        One word vector in each row.
    checked : bool
        Whether the tokens are known to be in range. The check of tokens on a GPU waits for the device.

    Returns
    -------
    out : (N, T, D)
    cache : WordEmbeddingCache

    Raises
    ------
    IndexError
        If a token is out of range.
    ValueError
        If W is not a matrix.
    TypeError
        If x does not hold integers, or W is not float32 or float64.
    """
    function = "word_embedding_forward"
    ops, _ = ops_of(function, W=W), ops_of(function, x=x)
    V = check_shapes(function, W=(W, "V D"))["V"]
    if not checked:
        x = as_tokens(function, "x", x, V)
    x = ops.indices(x)
    out = ops.empty((x.size, W.shape[1]), W.dtype)
    ops.take(W, x.reshape(-1), out)
    return out.reshape(*x.shape, W.shape[1]), WordEmbeddingCache(x, W)


def word_embedding_backward(dout: Array, cache: WordEmbeddingCache, *, into: Array | None = None) -> Array:
    """Backward of :func:`word_embedding_forward`. Tokens have no gradient.

    Parameters
    ----------
    dout : (N, T, D)
    into : (V, D), optional
        An array that the gradient is added to. By default the gradient is a new array.

    Returns
    -------
    dW : (V, D)

    Raises
    ------
    ValueError, TypeError
        If dout or ``into`` has a wrong shape or dtype, or the cache is from another function.
    """
    check_cache("word_embedding_backward", cache, WordEmbeddingCache)
    x, W = cache
    check_gradient("word_embedding_backward", dout, (*x.shape, W.shape[1]), W.dtype)
    ops = ops_for(dout, W)
    given = None if into is None else [into]
    (dW,) = gradient_arrays("word_embedding_backward", {"dW": W}, W, given, {"dout": dout})
    ops.embedding_gradient(dout.reshape(x.size, W.shape[1]), x.reshape(-1), dW)
    return dW
