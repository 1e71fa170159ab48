"""Target attention: a decoder attends to its own past states (Xia et al. 2017, eqs 6-7).

    beta_tj = exp(a(s_{j-1}, s_t)) / sum_{k<j} exp(a(s_{j-1}, s_k))         t = 1 .. j - 1
    c_j = sum_{t<j} beta_tj s_t                                             context, (N, H)

with a score a of :mod:`rnnlab.layers.attention.query`. The initial state s_0 is not part of the memory, so
the context of the first step is zero.

Each s_t is in the memory of every later step. Its gradient is the sum of the gradients from its own step and
from all later contexts and weights. The memory is the array of states itself: the loop over time writes each
state and its key once, and nothing is copied as the memory grows. The backward loop adds the gradients of
states and keys into arrays of the same layout; those of a state are complete when the loop reaches its step.

The functions here take given states. In :mod:`rnnlab.layers.attention.decoder` the contexts are inputs of the
next state.
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
    Workspace,
    score_axes,
)
from rnnlab.layers.checks import check_cache, check_gradient, check_shapes, ops_of
from rnnlab.layers.parameters import gradients_of, select_params
from rnnlab.layers.recurrent.packing import Packing, as_rows
from rnnlab.ops import ops_for
from rnnlab.options import AttentionScore
from rnnlab.types import Array


class TargetAttentionCache(NamedTuple):
    """The saved arrays, packed as in :mod:`rnnlab.layers.recurrent.packing`."""

    states: Array  # (N + M, H)
    attention: AttentionCache
    packing: Packing


def target_attention_forward(
    h: Array,
    h0: Array,
    params: Mapping[str, Array],
    *,
    score: AttentionScore = "additive",
    lengths: Array | None = None,
    mask: Array | None = None,
) -> tuple[Array, Array, TargetAttentionCache]:
    """The contexts of all steps, from given states.

    Parameters
    ----------
    h : (N, T, H)
        The state after each step.
    h0 : (N, H)
        The state before the first one.
    params : dict of str to array
        Parameters of the score, with C = H.
    score : {"additive", "dot", "bilinear"}
    lengths : (N,) integers, optional
        Number of real steps of each sequence. Contexts and weights of padding are zero.
    mask : (N, T), optional
        Instead of ``lengths``: ones for the real steps of each sequence, then zeros.

    Returns
    -------
    contexts : (N, T, H)
    weights : (N, T, T)
        ``weights[n, t, s]`` is the weight of the state after step s at step t; zero for s >= t.
    cache : TargetAttentionCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype is wrong, or a parameter is missing.
    """
    function = "target_attention_forward"
    ops = ops_of(function, h=h, h0=h0)
    own = select_params(function, params, score_axes(function, score))
    axes = {name: letters.replace("C", "H") for name, letters in SCORES[score].items()}
    check_shapes(function, h0=(h0, "N H"), h=(h, "N T H"), **{name: (own[name], axes[name]) for name in own})
    (N, T, _), like = h.shape, h
    packing = Packing.of(function, (N, T), lengths=lengths, mask=mask, like=h)
    states = packing.states(h0)
    memory = states[N:]
    ops.take(as_rows(h), packing.source, memory)
    keys = Keys(score, own, reused=False, like=like).of(memory)
    workspace = Workspace.of(len(memory), T, keys, memory, additive=score == "additive", selector=False)
    cache = AttentionCache(score, own, None, keys, memory, histories(packing), workspace, grows=True)
    attention = Attention(score, own, None, reused=True, like=like)
    for t, (rows, before, _) in enumerate(packing.steps):
        attention.attend(states[before], *cache.at(rows, t))
    return (
        packing.spread(workspace.context),
        packing.spread(workspace.weights),
        TargetAttentionCache(states, cache, packing),
    )


def target_attention_backward(
    dcontexts: Array,
    cache: TargetAttentionCache,
    *,
    dweights: Array | None = None,
    into: Mapping[str, Array] | None = None,
) -> tuple[Array, Array, dict[str, Array]]:
    """Backward of :func:`target_attention_forward`.

    Parameters
    ----------
    dcontexts : (N, T, H)
        Gradient of the loss with respect to ``contexts``.
    dweights : (N, T, T), optional
        Gradient with respect to ``weights``, without the gradient through the contexts.
    into : dict of str to array, optional
        Arrays that the gradients of the parameters are added to. By default they are new arrays.

    Returns
    -------
    dh (N, T, H), dh0 (N, H), dparams by the parameters' names

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` is invalid, or the cache is from another function.
    """
    function = "target_attention_backward"
    check_cache(function, cache, TargetAttentionCache)
    states, attention, packing = cache
    ops, (N, T) = ops_for(dcontexts, states), packing.shape
    H, M = states.shape[1], packing.offsets[-1]
    check_gradient(function, dcontexts, (N, T, H), states.dtype, "dcontexts")
    dparams = gradients_of(function, attention.params, states, into, h=states, dcontexts=dcontexts)
    dstates, dmemory = ops.zeros(states.shape, states.dtype), ops.zeros((M, H), states.dtype)
    dcontext = packing.gather(dcontexts)
    if dweights is None:
        dscores = ops.zeros((M, T), states.dtype)
    else:
        check_gradient(function, dweights, (N, T, T), states.dtype, "dweights")
        dscores = packing.gather(dweights)
    backward = AttentionBackward(attention, reused=True)
    for t, (rows, before, _) in enumerate(packing.steps):
        past, columns, dz = attention.slots_at(rows, t), attention.columns(t), dcontext[rows]
        ops.attention_memory_gradient(dz, attention.workspace.weights[rows, columns], past, dmemory)
        backward.attend(rows, columns, past, dz, dscores[rows, columns], states[before], dstates[before])
        backward.add_query_gradient(rows, states[before], dparams)
    keys = Keys(attention.score, attention.params, reused=False, like=states)
    keys.backward(backward.dkeys, dmemory)
    keys.add_gradients(attention.memory, backward.dkeys, dparams)
    backward.add_score_gradient(dparams)
    dstates[N:] += dmemory
    return packing.spread(dstates[N:]), packing.unsort(dstates[:N]), dparams


def histories(packing: Packing) -> Array:
    """The packed row of the state after each step, (N, T), sequences sorted by length; -1 for padding."""
    (N, T), offsets = packing.shape, np.asarray(packing.offsets[:-1], dtype=np.int64)
    slots = np.full((N, T), -1)
    slots[:, : offsets.size] = offsets + np.arange(N)[:, None]
    return ops_for(packing.order).asarray(slots)
