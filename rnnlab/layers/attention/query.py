"""Attention: a query reads from a memory what it needs (Bahdanau et al. 2015; Xu et al. 2015).

    e_j = a(h, s_j)                                     score of cell j, real cells only
    alpha_j = exp(e_j) / sum_k exp(e_k)                 weights, (N, L)
    z = sum_j alpha_j s_j                               context, (N, C)

with the query h (N, H), the hidden state before the step in a decoder, the memory s (N, L, C), and a score

    additive    a(h, s_j) = v . tanh(h Wq + s_j Wm + b)         Bahdanau et al. 2015
    dot         a(h, s_j) = h . s_j                             Luong et al. 2015; H = C
    bilinear    a(h, s_j) = h W s_j                             Luong et al. 2015, "general"

What of a score depends on the memory alone, its *keys*, is computed once per sequence: s_j Wm + b, s_j, or
W s_j. A query without any real cell has the weights and the context zero.

Backward, with dz and dalpha the gradients that reach the context and the weights:

    dalpha_j += dz . s_j                                ds_j += alpha_j dz
    de_j = alpha_j (dalpha_j - sum_k alpha_k dalpha_k)

    dkey_j += d_j                dquery += sum_j d_j                 additive: d_j = de_j v (1 - u_j^2),
    dv += sum_j de_j u_j                                             u_j = tanh(...)
    dkey_j += de_j query         dquery += sum_j de_j key_j          dot and bilinear

Parameters are a dict: Wq (H, A), Wm (C, A), b (A,), v (A,) of additive scores, W (H, C) of bilinear ones,
none of dot scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rnnlab.layers.attention.scores import (
    SCORES,
    Attention,
    AttentionBackward,
    AttentionCache,
    Keys,
    Room,
    gradients_of,
    score_axes,
    select_params,
    selector_gate,
    selector_gradient,
)
from rnnlab.layers.checks import as_mask, check_gradient, check_mask, check_shapes
from rnnlab.ops import ops_for
from rnnlab.types import Array


class KeysCache(NamedTuple):
    """What the backward of the keys needs."""

    memory: Array  # (N, L, C)
    score: str
    params: dict[str, Array]


class StepCache(NamedTuple):
    """What the backward of one query needs."""

    query: Array  # (N, H)
    attention: AttentionCache


class SelectorCache(NamedTuple):
    """What the backward of the selector needs."""

    context: Array  # (N, C)
    h: Array  # (N, H)
    w: Array  # (H,)
    beta: Array  # (N, 1)


def attention_shapes(
    score: str, *, query_dim: int, memory_dim: int, attention_dim: int
) -> dict[str, tuple[int, ...]]:
    """The shapes of an attention's parameters by their names.

    Raises
    ------
    ValueError
        If there is no such score, or it is dot and the dimensions of query and memory differ.
    """
    axes = score_axes("attention_shapes", score)
    if score == "dot" and query_dim != memory_dim:
        raise ValueError(
            f"attention_shapes: score is 'dot' and query_dim {query_dim}, memory_dim {memory_dim}, "
            "expected the same"
        )
    sizes = {"H": query_dim, "C": memory_dim, "A": attention_dim}
    return {name: tuple(sizes[letter] for letter in letters.split()) for name, letters in axes.items()}


def attention_keys_forward(
    memory: Array, params: Mapping[str, Array], *, score: str = "additive"
) -> tuple[Array, KeysCache]:
    """The keys of a memory, which all queries to it share.

    Parameters
    ----------
    memory : (N, L, C)
    params : dict of str to array
        Of the score; see :mod:`rnnlab.layers.attention.query`.
    score : {"additive", "dot", "bilinear"}

    Returns
    -------
    keys : (N, L, A), or (N, L, H) for dot and bilinear scores
    cache : KeysCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit, or a parameter is missing.
    """
    function = "attention_keys_forward"
    own = select_params(function, params, score_axes(function, score))
    check_shapes(
        function,
        memory=(memory, "N L C"),
        **{name: (array, SCORES[score][name]) for name, array in own.items()},
    )
    keys = Keys(score, own, often=False, like=memory).of(memory.reshape(-1, memory.shape[2]))
    keys = keys.reshape(*memory.shape[:2], keys.shape[1])
    return (keys.copy() if score == "dot" else keys), KeysCache(memory, score, own)


def attention_keys_backward(
    dkeys: Array, cache: KeysCache, *, into: Mapping[str, Array] | None = None
) -> tuple[Array, dict[str, Array]]:
    """Backward of :func:`attention_keys_forward`.

    Parameters
    ----------
    dkeys : as keys
    into : dict of str to array, optional
        Arrays that the parameters' gradients are added into, instead of fresh ones.

    Returns
    -------
    dmemory : (N, L, C)
        Through the keys; the weighted sum gives the memory another gradient.
    dparams : dict of str to array
        Of Wm and b, or W.

    Raises
    ------
    ValueError, TypeError
        If ``dkeys`` has not the shape and the dtype of the keys.
    """
    memory, score, params = cache
    numbers = memory.shape[2]  # in a key
    if score != "dot":
        numbers = params["Wm"].shape[1] if score == "additive" else params["W"].shape[0]
    check_gradient("attention_keys_backward", dkeys, (*memory.shape[:2], numbers), memory.dtype, "dkeys")
    names = {"additive": ("Wm", "b"), "dot": (), "bilinear": ("W",)}[score]
    dparams = gradients_of("attention_keys_backward", {name: params[name] for name in names}, memory, into)
    rows, drows = memory.reshape(-1, memory.shape[2]), dkeys.reshape(-1, dkeys.shape[2])
    dmemory = ops_for(dkeys, memory).zeros(rows.shape, rows.dtype)
    keys = Keys(score, params, often=False, like=memory)
    keys.backward(drows, dmemory)
    keys.add_gradients(rows, drows, dparams)
    return dmemory.reshape(memory.shape), dparams


def attention_step_forward(
    query: Array,
    keys: Array,
    memory: Array,
    params: Mapping[str, Array],
    *,
    score: str = "additive",
    mask: Array | None = None,
    lengths: Array | None = None,
) -> tuple[Array, Array, StepCache]:
    """Attention of one query to each memory.

    Parameters
    ----------
    query : (N, H)
    keys : (N, L, A), or (N, L, H) for dot and bilinear scores
        From :func:`attention_keys_forward`.
    memory : (N, L, C)
    params : dict of str to array
        Of the score; see :mod:`rnnlab.layers.attention.query`.
    score : {"additive", "dot", "bilinear"}
    mask : (N, L), optional
        True (or 1) for real cells, anywhere.
    lengths : (N,) integers, optional
        How many cells are real, the first ones, instead of a mask.

    Returns
    -------
    context : (N, C)
    weights : (N, L)
    cache : StepCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit, or a parameter is missing.
    """
    function = "attention_step_forward"
    ops = ops_for(query, keys, memory)
    own = select_params(function, params, score_axes(function, score))
    keys_axes = "N L A" if score == "additive" else "N L H"
    check_shapes(
        function,
        query=(query, "N H"),
        memory=(memory, "N L C"),
        **{name: (array, SCORES[score][name]) for name, array in own.items()},
        keys=(keys, keys_axes),
    )
    (N, L, C), A = memory.shape, keys.shape[2]
    cells = np.arange(N * L).reshape(N, L)
    if lengths is not None:
        if mask is not None:
            raise ValueError(f"{function}: both lengths and mask are given, expected one of them")
        mask = _mask_of(function, lengths, N, L)
    if mask is not None:
        cells[~as_mask(function, "mask", mask, (N, L), "N, L")] = -1
    key_rows, rows, cells = keys.reshape(N * L, A), memory.reshape(N * L, C), ops.asarray(cells)
    room = Room.of(N, L, key_rows, rows, additive=score == "additive", selector=False)
    Attention(score, own, None, often=False, like=query).attend(query, key_rows, rows, cells, room)
    cache = StepCache(query, AttentionCache(score, own, None, key_rows, rows, cells, room))
    return room.context.copy(), room.weights.copy(), cache


def attention_step_backward(
    dcontext: Array, cache: StepCache, *, dweights: Array | None = None
) -> tuple[Array, Array, Array, dict[str, Array]]:
    """Backward of :func:`attention_step_forward`.

    Parameters
    ----------
    dcontext : (N, C)
        Gradient of the loss with respect to ``context``.
    dweights : (N, L), optional
        Gradient with respect to ``weights``, besides what comes through the context.

    Returns
    -------
    dquery : (N, H)
    dkeys : as keys
    dmemory : (N, L, C)
        Through the weighted sum; :func:`attention_keys_backward` of dkeys gives the memory another gradient.
    dparams : dict of str to array
        Of Wq and v; empty for dot and bilinear scores.
    """
    query, attention = cache
    ops = ops_for(dcontext, query)
    (N, L), rows = attention.cells.shape, slice(None)
    check_gradient("attention_step_backward", dcontext, attention.room.context.shape, query.dtype, "dcontext")
    dscores = ops.zeros((N, L), query.dtype)
    if dweights is not None:
        check_gradient("attention_step_backward", dweights, (N, L), query.dtype, "dweights")
        dscores += dweights
    dquery, dmemory = ops.zeros(query.shape, query.dtype), ops.zeros(attention.memory.shape, query.dtype)
    backward = AttentionBackward(attention, often=False)
    backward.attend(rows, attention.cells, dcontext.copy(), dscores, query, dquery)
    ops.attention_memory_gradient(dcontext, attention.room.weights, attention.cells, dmemory)
    names = ("Wq", "v") if attention.score == "additive" else ()
    dparams = {name: ops.zeros(attention.params[name].shape, query.dtype) for name in names}
    backward.add_query_gradient(rows, query, dparams)
    backward.add_score_gradient(dparams)
    A, C = attention.keys.shape[1], attention.memory.shape[1]
    return dquery, backward.dkeys.reshape(N, L, A), dmemory.reshape(N, L, C), dparams


def selector_forward(context: Array, h: Array, w: Array, b: Array) -> tuple[Array, SelectorCache]:
    """Scale a context by beta = sigmoid(h . w + b): how much of it to let in (Xu et al. 2015, section 4.2.1).

    Parameters
    ----------
    context : (N, C)
    h : (N, H)
        The hidden state before the step.
    w : (H,)
    b : (1,)

    Returns
    -------
    scaled : (N, C)
    cache : SelectorCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit.
    """
    check_shapes("selector_forward", context=(context, "N C"), h=(h, "N H"), w=(w, "H"))
    if b.shape != (1,):
        raise ValueError(f"selector_forward: b has shape {b.shape}, expected (1,)")
    beta = selector_gate(h, w, b)
    return context * beta, SelectorCache(context, h, w, beta)


def selector_backward(dscaled: Array, cache: SelectorCache) -> tuple[Array, Array, Array, Array]:
    """Backward of :func:`selector_forward`.

    Parameters
    ----------
    dscaled : (N, C)
        Gradient of the loss with respect to ``scaled``.

    Returns
    -------
    dcontext (N, C), dh (N, H), dw (H,), db (1,)
    """
    context, h, w, beta = cache
    check_gradient("selector_backward", dscaled, context.shape, context.dtype, "dscaled")
    dbeta = selector_gradient(dscaled, context, beta)
    dw = ops_for(h).matmul(h.T, dbeta)[:, 0]
    return dscaled * beta, dbeta * w, dw, dbeta.sum(axis=0)


def doubly_stochastic_loss(
    weights: Array,
    lengths: Array | None = None,
    *,
    mask: Array | None = None,
    memory_mask: Array | None = None,
) -> tuple[float, Array]:
    """Ask that every cell is attended to as much as any other over a sequence (Xu et al. 2015, eq. 14).

        loss = 1/N sum_n sum_i (1 - sum_t alpha_nti)^2

    over real steps and real cells. A sequence without a step counts nothing.

    Parameters
    ----------
    weights : (N, T, L)
    lengths : (N,) integers, optional
        The real steps of each sequence; all T if neither this nor ``mask`` is given.
    mask : (N, T), optional
        The same as an array of the library and the dtype of ``weights``, 1 for the real steps.
    memory_mask : (N, L), optional
        True (or 1) for real cells; all are if left out.

    Returns
    -------
    loss : float, or an array () of CuPy weights
    dweights : (N, T, L)

    Raises
    ------
    ValueError
        If a shape does not fit.
    """
    function = "doubly_stochastic_loss"
    ops = ops_for(weights)
    N, T, L = check_shapes(function, weights=(weights, "N T L")).values()
    counts = np.ones((N, L), bool)
    if memory_mask is not None:
        counts = as_mask(function, "memory_mask", memory_mask, (N, L), "N, L")
    if mask is None:
        real = np.ones((N, T), bool) if lengths is None else _mask_of(function, lengths, N, T)
        mask = ops.asarray(real.astype(weights.dtype))
    steps = check_mask(function, mask, (N, T), weights)
    counts = ops.asarray(counts.astype(weights.dtype)) * (steps.sum(axis=1, keepdims=True) > 0)
    missing = (1 - ops.matmul(steps[:, None], weights)[:, 0]) * counts  # (N, L)
    loss = (missing * missing).sum(dtype="float64") / max(N, 1)
    return loss, steps[:, :, None] * (missing * (-2 / max(N, 1)))[:, None]


def _mask_of(function: str, lengths: Array, N: int, size: int) -> np.ndarray:
    """Lengths (N,) in [0, size] as a mask (N, size)."""
    real = np.asarray(lengths)
    if real.shape != (N,) or real.dtype.kind not in "iu":
        raise ValueError(
            f"{function}: lengths has shape {real.shape} and dtype {real.dtype}, expected {N} integers"
        )
    if real.size and (real.min() < 0 or real.max() > size):
        raise ValueError(
            f"{function}: lengths holds numbers from {real.min()} to {real.max()}, expected 0 to {size}"
        )
    return np.arange(size) < real[:, None]
