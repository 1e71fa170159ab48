"""Attention of a query to a memory (Bahdanau et al. 2015; Xu et al. 2015).

    e_j = a(h, s_j)                                     score of slot j, real slots only
    alpha_j = exp(e_j) / sum_k exp(e_k)                 weights, (N, L)
    z = sum_j alpha_j s_j                               context, (N, C)

with the query h (N, H), the hidden state before the step in a decoder, the memory s (N, L, C), and a score

    additive    a(h, s_j) = v . tanh(h Wq + s_j Wm + b)         Bahdanau et al. 2015
    dot         a(h, s_j) = h . s_j                             Luong et al. 2015; H = C
    bilinear    a(h, s_j) = h W s_j                             Luong et al. 2015, "general"

The part of a score that depends on the memory alone, its *keys*, is computed once per sequence: s_j Wm + b,
s_j, or W s_j. A query without any real slot gets weights and a context of zero.

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

from rnnlab.errors import InputError
from rnnlab.layers.attention.scores import (
    SCORES,
    Attention,
    AttentionBackward,
    AttentionCache,
    Keys,
    Workspace,
    score_axes,
)
from rnnlab.layers.checks import (
    as_lengths,
    as_mask,
    check_cache,
    check_gradient,
    check_shapes,
    ops_of,
)
from rnnlab.layers.parameters import gradients_of, select_params
from rnnlab.ops import ops_for
from rnnlab.options import AttentionScore, Count, check_option
from rnnlab.types import Array, Shapes


class KeysCache(NamedTuple):
    """What the backward of the keys needs."""

    memory: Array  # (N, L, C)
    score: AttentionScore
    params: dict[str, Array]


class AttentionStepCache(NamedTuple):
    """What the backward of one query needs."""

    query: Array  # (N, H)
    attention: AttentionCache


def attention_shapes(score: AttentionScore, *, query_dim: int, memory_dim: int, attention_dim: int) -> Shapes:
    """The shapes of an attention's parameters by their names.

    Raises
    ------
    ValueError
        If there is no such score, a dimension is below 1, or the score is dot and the dimensions of query and
        memory differ.
    """
    axes = score_axes("attention_shapes", score)
    dims = {"query_dim": query_dim, "memory_dim": memory_dim, "attention_dim": attention_dim}
    for name, size in dims.items():
        check_option("attention_shapes", name, Count, size)
    if score == "dot" and query_dim != memory_dim:
        raise InputError(
            f"attention_shapes: score is 'dot' and query_dim {query_dim}, memory_dim {memory_dim}, "
            "expected the same"
        )
    sizes = {"H": query_dim, "C": memory_dim, "A": attention_dim}
    return {name: tuple(sizes[letter] for letter in letters.split()) for name, letters in axes.items()}


def attention_keys_forward(
    memory: Array, params: Mapping[str, Array], *, score: AttentionScore = "additive"
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
        If a shape or a dtype is wrong, or a parameter is missing.
    """
    function = "attention_keys_forward"
    own = select_params(function, params, score_axes(function, score))
    check_shapes(
        function,
        memory=(memory, "N L C"),
        **{name: (array, SCORES[score][name]) for name, array in own.items()},
    )
    keys = Keys(score, own, reused=False, like=memory).of(memory.reshape(-1, memory.shape[2]))
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
        Arrays that the gradients of the parameters are added to. By default they are new arrays.

    Returns
    -------
    dmemory : (N, L, C)
        Through the keys only. The gradient through the weighted sum comes from
        :func:`attention_step_backward`.
    dparams : dict of str to array
        Of Wm and b, or W.

    Raises
    ------
    ValueError, TypeError
        If ``dkeys`` does not have the shape and the dtype of the keys, or the cache is from another function.
    """
    check_cache("attention_keys_backward", cache, KeysCache)
    memory, score, params = cache
    numbers = memory.shape[2]  # in a key
    if score != "dot":
        numbers = params["Wm"].shape[1] if score == "additive" else params["W"].shape[0]
    check_gradient("attention_keys_backward", dkeys, (*memory.shape[:2], numbers), memory.dtype, "dkeys")
    names = {"additive": ("Wm", "b"), "dot": (), "bilinear": ("W",)}[score]
    own = {name: params[name] for name in names}
    dparams = gradients_of("attention_keys_backward", own, memory, into, memory=memory, dkeys=dkeys)
    rows, drows = memory.reshape(-1, memory.shape[2]), dkeys.reshape(-1, dkeys.shape[2])
    dmemory = ops_for(dkeys, memory).zeros(rows.shape, rows.dtype)
    keys = Keys(score, params, reused=False, like=memory)
    keys.backward(drows, dmemory)
    keys.add_gradients(rows, drows, dparams)
    return dmemory.reshape(memory.shape), dparams


def attention_step_forward(
    query: Array,
    keys: Array,
    memory: Array,
    params: Mapping[str, Array],
    *,
    score: AttentionScore = "additive",
    mask: Array | None = None,
    lengths: Array | None = None,
) -> tuple[Array, Array, AttentionStepCache]:
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
        True (or 1) for the real slots of the memory, which may be anywhere.
    lengths : (N,) integers, optional
        Instead of ``mask``: the number of real slots, which are the first ones.

    Returns
    -------
    context : (N, C)
    weights : (N, L)
    cache : AttentionStepCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype is wrong, or a parameter is missing.
    """
    function = "attention_step_forward"
    ops = ops_of(function, query=query, keys=keys, memory=memory)
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
    slots = np.arange(N * L).reshape(N, L)
    if lengths is not None:
        if mask is not None:
            raise InputError(f"{function}: both lengths and mask are given, expected one of them")
        mask = np.arange(L) < as_lengths(function, lengths, N, L, "L")[:, None]
    if mask is not None:
        slots[~as_mask(function, "mask", mask, (N, L), "N, L")] = -1
    key_rows, rows, slots = keys.reshape(N * L, A), memory.reshape(N * L, C), ops.asarray(slots)
    workspace = Workspace.of(N, L, key_rows, rows, additive=score == "additive", selector=False)
    Attention(score, own, None, reused=False, like=query).attend(query, key_rows, rows, slots, workspace)
    cache = AttentionStepCache(query, AttentionCache(score, own, None, key_rows, rows, slots, workspace))
    return workspace.context.copy(), workspace.weights.copy(), cache


def attention_step_backward(
    dcontext: Array, cache: AttentionStepCache, *, dweights: Array | None = None
) -> tuple[Array, Array, Array, dict[str, Array]]:
    """Backward of :func:`attention_step_forward`.

    Parameters
    ----------
    dcontext : (N, C)
        Gradient of the loss with respect to ``context``.
    dweights : (N, L), optional
        Gradient with respect to ``weights``, without the gradient through the context.

    Returns
    -------
    dquery : (N, H)
    dkeys : as keys
    dmemory : (N, L, C)
        Through the weighted sum only. The gradient through the keys comes from
        :func:`attention_keys_backward`.
    dparams : dict of str to array
        Of Wq and v; empty for dot and bilinear scores.

    Raises
    ------
    ValueError, TypeError
        If a gradient has a wrong shape or dtype, or the cache is from another function.
    """
    check_cache("attention_step_backward", cache, AttentionStepCache)
    query, attention = cache
    (N, L), everything = attention.slots.shape, slice(None)
    check_gradient(
        "attention_step_backward", dcontext, attention.workspace.context.shape, query.dtype, "dcontext"
    )
    ops = ops_for(dcontext, query)
    dscores = ops.zeros((N, L), query.dtype)
    if dweights is not None:
        check_gradient("attention_step_backward", dweights, (N, L), query.dtype, "dweights")
        dscores += dweights
    dquery, dmemory = ops.zeros(query.shape, query.dtype), ops.zeros(attention.memory.shape, query.dtype)
    backward = AttentionBackward(attention, reused=False)
    dcontext = dcontext.copy()  # C-contiguous, as the primitives require
    backward.attend(everything, everything, attention.slots, dcontext, dscores, query, dquery)
    ops.attention_memory_gradient(dcontext, attention.workspace.weights, attention.slots, dmemory)
    names = ("Wq", "v") if attention.score == "additive" else ()
    dparams = {name: ops.zeros(attention.params[name].shape, query.dtype) for name in names}
    backward.add_query_gradient(everything, query, dparams)
    backward.add_score_gradient(dparams)
    A, C = attention.keys.shape[1], attention.memory.shape[1]
    return dquery, backward.dkeys.reshape(N, L, A), dmemory.reshape(N, L, C), dparams
