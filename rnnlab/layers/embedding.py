"""Word embedding: each token is the row of a matrix.

out[n, t] = W[x[n, t]]              dW[v] = sum of dout[n, t] over the places where x[n, t] = v
"""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.layers.checks import check_gradient, check_shapes, check_tokens, gradient_room
from rnnlab.ops import ops_for
from rnnlab.types import Array


class WordEmbeddingCache(NamedTuple):
    """What the backward needs."""

    x: Array  # (...) tokens
    W: Array  # (V, D)


def word_embedding_forward(x: Array, W: Array, *, checked: bool = False) -> tuple[Array, WordEmbeddingCache]:
    """Look up the vector of every token.

    Parameters
    ----------
    x : (N, T) integers in [0, V)
        Tokens; any other number of axes works the same. NumPy's go with a W of any library.
    W : (V, D)
        A word vector in each row.
    checked : bool
        Whether it is known that the tokens are in range: of those on a device that has to be waited for.

    Returns
    -------
    out : (N, T, D)
    cache : WordEmbeddingCache

    Raises
    ------
    IndexError
        If a token is out of range.
    ValueError, TypeError
        If a shape or a dtype does not fit.
    """
    ops, _ = ops_for(W), ops_for(x)  # of any library, but an array
    V = check_shapes("word_embedding_forward", W=(W, "V D"))["V"]
    if not checked:
        check_tokens("word_embedding_forward", "x", x, V)
    x = ops.indices(x)
    out = ops.empty((x.size, W.shape[1]), W.dtype)
    ops.take(W, x.reshape(-1), out)
    return out.reshape(*x.shape, W.shape[1]), WordEmbeddingCache(x, W)


def word_embedding_backward(dout: Array, cache: WordEmbeddingCache, *, into: Array | None = None) -> Array:
    """Backward of :func:`word_embedding_forward`; tokens have no gradient.

    Parameters
    ----------
    dout : (N, T, D)
    into : (V, D), optional
        An array that the gradient is added into, instead of a fresh one.

    Returns
    -------
    dW : (V, D)
    """
    x, W = cache
    check_gradient("word_embedding_backward", dout, (*x.shape, W.shape[1]), W.dtype)
    ops = ops_for(dout, W)
    (dW,) = gradient_room("word_embedding_backward", {"dW": W.shape}, W, None if into is None else [into])
    ops.embedding_gradient(dout.reshape(x.size, W.shape[1]), x.reshape(-1), dW)
    return dW
