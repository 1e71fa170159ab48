"""Discriminative supervision of thought vectors (Jiang, Ma and Lu 2020, eqs 9 and 10).

    s_j  = max_l  a_l . w_j                                            score of word j, over L thought vectors
    loss = 1/N sum_n sum_{j in W_n} sum_{i not in W_n} max(0, 1 - (s_j - s_i))

W_n are the frequent words of sample n, out of the k most frequent ones; i and j are among these k. The scores
are a linear map W (H, k) of each thought vector (Yang et al. 2016), without a bias: the paper has none.

Backward: each term above zero adds -1/N to the gradient of s_j and 1/N to that of s_i. The gradient of a
score goes to the thought vector that attains the maximum, or to the first of several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError, OutOfRangeError
from rnnlab.layers.checks import as_scalar, check_cache, check_shapes, ops_of
from rnnlab.layers.parameters import gradients_of, select_params
from rnnlab.layers.recurrent.packing import as_rows
from rnnlab.ops import ops_for
from rnnlab.options import Count, check_option
from rnnlab.types import Array, Shapes

_AXES = {"W": "H k"}
_SCORES_AT_ONCE = 1 << 20  # maximum number of scores in one product, unless one sample has more


class DiscriminativeCache(NamedTuple):
    """Arrays that :func:`discriminative_backward` needs."""

    thoughts: Array  # (N, L, H)
    params: dict[str, Array]
    slots: Array  # (N, k) the vector that attains the maximum
    dscores: Array  # (N, k) gradient of the loss with respect to s


def discriminative_shapes(hidden_dim: int, num_words: int) -> Shapes:
    """The shape of the parameter W by its name.

    Parameters
    ----------
    hidden_dim : int
        H, the size of a thought vector.
    num_words : int
        k, the number of words that are scored.

    Raises
    ------
    ValueError
        If a size is not an integer of at least 1.
    """
    check_option("discriminative_shapes", "hidden_dim", Count, hidden_dim)
    check_option("discriminative_shapes", "num_words", Count, num_words)
    return {"W": (hidden_dim, num_words)}


def frequent_words(tokens: Array, first: int, num_words: int) -> Array:
    """Convert tokens to columns of W, for a vocabulary in the order of frequency.

    It does not copy the tokens to the CPU, so it can be captured in a CUDA graph.

    Parameters
    ----------
    tokens : (N, T) integers
        Tokens of the captions, special ones and padding included.
    first : int
        The token of the most frequent word: the number of special words.
    num_words : int
        k. The words from ``first`` to ``first + num_words - 1`` are scored.

    Returns
    -------
    words : (N, T) int64
        token - first for the k frequent words, -1 for all other tokens.

    Raises
    ------
    TypeError
        If the tokens are not integers.

    Examples
    --------
    >>> frequent_words(np.array([[1, 4, 9, 4, 3, 2]]), first=4, num_words=5)
    array([[-1,  0, -1,  0, -1, -1]])
    """
    ops_of("frequent_words", tokens=tokens)
    if tokens.dtype.kind not in "iu":
        raise InputTypeError(f"frequent_words: tokens has dtype {tokens.dtype}, expected integers")
    columns = tokens.astype(np.int64) - first  # a narrow unsigned dtype would overflow
    scored = (columns >= 0) & (columns < num_words)
    return (columns + 1) * scored - 1


def discriminative_forward(
    thoughts: Array, words: Array, params: Mapping[str, Array]
) -> tuple[float, DiscriminativeCache]:
    """The multi-label margin loss of the words that thought vectors should predict.

    Parameters
    ----------
    thoughts : (N, L, H)
        L thought vectors of each sample, at least one.
    words : (N, P) integers in [-1, k)
        The columns of W of each sample's frequent words, and -1 for no word. A column that is listed twice
        counts once. They may be a NumPy array even if the thought vectors are on a GPU.
    params : dict of str to array
        The parameter of :func:`discriminative_shapes`. Others are ignored.

    Returns
    -------
    loss : float
        Averaged over the N samples. A sample without frequent words adds nothing. For CuPy arrays, an array
        () on the device; reading it waits for the device.
    cache : DiscriminativeCache

    Raises
    ------
    ValueError
        If a shape does not fit, there is no thought vector or no word, or the parameter is missing.
    IndexError
        If a word is out of range; words on a GPU are not checked.
    TypeError
        If a dtype is wrong, or the arrays are of different libraries.
    """
    function = "discriminative_forward"
    own = select_params(function, params, _AXES)
    ops = ops_of(function, thoughts=thoughts, **own)
    sizes = check_shapes(function, thoughts=(thoughts, "N L H"), W=(own["W"], _AXES["W"]))
    N, L, k = sizes["N"], sizes["L"], sizes["k"]
    if L == 0:
        raise InputError(f"{function}: thoughts has shape {thoughts.shape}, expected L of at least 1")
    if k == 0:
        raise InputError(f"{function}: W has shape {own['W'].shape}, expected k of at least 1")
    words = _checked_words(words, N, k)
    scores, slots = ops.empty((N, k), thoughts.dtype), ops.empty((N, k), "int64")
    for samples, products in _blocks(N, L, k, thoughts):
        ops.matmul_into(as_rows(thoughts[samples]), own["W"], products)
        slots[samples] = ops.max_pool(products.reshape(-1, L, k), scores[samples])
    dscores = ops.empty(scores.shape, scores.dtype)
    losses = ops.multilabel_margin(scores, ops.indices(words), 1 / max(N, 1), dscores)
    return losses.sum(dtype="float64") / max(N, 1), DiscriminativeCache(thoughts, own, slots, dscores)


def discriminative_backward(
    dloss: float, cache: DiscriminativeCache, *, into: Mapping[str, Array] | None = None
) -> tuple[Array, dict[str, Array]]:
    """Backward of :func:`discriminative_forward`.

    Parameters
    ----------
    dloss : float
        Gradient of the total loss with respect to this loss, which is its weight.
    into : dict of str to array, optional
        Arrays that the gradients of the parameters are added to. By default they are new arrays.

    Returns
    -------
    dthoughts : (N, L, H)
    dparams : dict of str to array

    Raises
    ------
    ValueError, TypeError
        If an array of ``into`` is invalid, or the cache is from another function.
    """
    check_cache("discriminative_backward", cache, DiscriminativeCache)
    thoughts, params, slots, dscores = cache
    ops, (N, L, _), k = ops_for(thoughts), thoughts.shape, dscores.shape[1]
    dparams = gradients_of("discriminative_backward", params, thoughts, into, thoughts=thoughts)
    dthoughts = ops.empty(thoughts.shape, thoughts.dtype)
    dscores = dscores * as_scalar("discriminative_backward", "dloss", dloss)
    for samples, dproducts in _blocks(N, L, k, thoughts):
        ops.max_pool_gradient(dscores[samples], slots[samples], dproducts.reshape(-1, L, k))
        ops.matmul_into(dproducts, params["W"].T, as_rows(dthoughts[samples]))
        ops.matmul_add(as_rows(thoughts[samples]).T, dproducts, dparams["W"])
    return dthoughts, dparams


def _blocks(N: int, L: int, k: int, like: Array) -> Iterator[tuple[slice, Array]]:
    """Slices that together cover all N samples, each with the same workspace (samples L, k)."""
    at_once = max(1, min(N, _SCORES_AT_ONCE // (L * k)))
    workspace = ops_for(like).empty((at_once * L, k), like.dtype)
    for start in range(0, max(N, 1), at_once):
        samples = slice(start, min(start + at_once, N))
        yield samples, workspace[: (samples.stop - start) * L]


def _checked_words(words: Array, N: int, k: int) -> Array:
    """Check the shape and dtype of words, and on a CPU their range; return them."""
    function = "discriminative_forward"
    ops_of(function, words=words)
    if words.ndim != 2 or words.shape[0] != N:
        raise InputError(f"{function}: words has shape {words.shape}, expected (N, P) with N = {N}")
    if words.dtype.kind not in "iu":
        raise InputTypeError(f"{function}: words has dtype {words.dtype}, expected integers")
    if isinstance(words, np.ndarray) and words.size and (words.min() < -1 or words.max() >= k):
        wrong = words.max() if words.max() >= k else words.min()
        raise OutOfRangeError(
            f"{function}: words holds {wrong}, expected columns of W from 0 to {k - 1}, or -1"
        )
    return words
