"""A recurrent cell that attends: contexts enter the pre-activations of all its gates.

    a_t = x_t Wx + z_t Wz + t_t Wt + b, then the cell's own step from h_{t-1}

    z_t    attention of h_{t-1} to a memory, the source         X. Chen et al. 2018, eqs 3-4 (LSTM)
    t_t    attention of h_{t-1} to h_1 .. h_{t-1}, the target   Xia et al. 2017, eqs 6-7 and 10 (GRU)
           or h_{t-delay} alone, zero for t <= delay            Xia et al. 2017, section 3.4, delayed memory

Any cell works, with source, target, or both. In the GRU the reset gate acts on h_{t-1} Wh of the candidate
alone, not on the contexts (Xia et al. 2017, eq. 10). A selector beta_t = sigmoid(h_{t-1} . w + b) may scale
z_t (Xu et al. 2015, section 4.2.1).

Parameters are a dict, and so are their gradients (:func:`attentive_shapes` lists them):

    Wx (D, G), b (G,), Wh (H, G), ...          as in the cell
    Wz (C, G), source_Wq, source_Wm, ...       with a source; after "source_" the names of the score's
    selector_w (H,), selector_b (1,)           with a selector
    Wt (H, G), target_Wq, target_Wm, ...       with a target; Wt alone with a delay

Backward, with da_t from the cell's backward: dz_t += da_t Wz^T, dWz += z_t^T da_t, likewise for t_t; then
attention's backward adds to dh_{t-1}, to the source's memory, and to the earlier states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.errors import InputError
from rnnlab.layers.attention.contexts import (
    WEIGHTS,
    Attends,
    SequenceContexts,
    SequenceContextsBackward,
    check_inputs,
)
from rnnlab.layers.attention.query import attention_shapes
from rnnlab.layers.attention.scores import AttentionCache
from rnnlab.layers.checks import check_cache, check_rng
from rnnlab.layers.parameters import gradients_of
from rnnlab.layers.recurrent.cell import Cell, cell_for
from rnnlab.layers.recurrent.loop import RecurrentCache, backward_loop, forward_loop
from rnnlab.layers.recurrent.packing import Packing
from rnnlab.layers.recurrent.regularisation import Draws, Regularisation
from rnnlab.layers.recurrent.sequence import named_finals
from rnnlab.ops import ops_for
from rnnlab.options import AttentionScore
from rnnlab.parameters import distinct, scoped
from rnnlab.types import Array, Params, Random, Shapes, State


class AttentiveCache(NamedTuple):
    """What the backward of a sequence needs; packed, see :mod:`rnnlab.layers.recurrent.packing`."""

    recurrence: RecurrentCache
    attentions: dict[str, AttentionCache]  # by name: "source", "target" or both
    memory_shape: tuple[int, ...] | None  # (N, L, C) of the source
    real_rows: Array | None  # (R,) the indices of the source's real rows; None if all are real


def attentive_shapes(
    cell: str | Cell,
    *,
    input_dim: int,
    hidden_dim: int,
    attention_dim: int,
    memory_dim: int | None = None,
    score: AttentionScore = "additive",
    selector: bool = False,
    target: bool = False,
    target_delay: int | None = None,
) -> Shapes:
    """The shapes of all parameters by their names; there is a source if ``memory_dim`` is given.

    Raises
    ------
    ValueError
        If there is no such cell or score, or the dimensions are incompatible with them.
    """
    function = "attentive_shapes"
    cell = cell_for(function, cell)
    attends = Attends(score, memory_dim is not None, selector, target, target_delay)
    attends.check(function)
    shapes, G = cell.shapes(input_dim, hidden_dim), cell.num_gates * hidden_dim
    for name in attends.names:
        C = hidden_dim if name == "target" or memory_dim is None else memory_dim
        own = attention_shapes(
            attends.score_of(name), query_dim=hidden_dim, memory_dim=C, attention_dim=attention_dim
        )
        shapes = distinct(function, shapes, {WEIGHTS[name]: (C, G)}, scoped(f"{name}_", own))
    if selector:
        shapes = distinct(function, shapes, {"selector_w": (hidden_dim,), "selector_b": (1,)})
    return shapes


def attentive_forward(
    x: Array,
    state: State,
    memory: Array | None,
    params: Params,
    *,
    cell: str | Cell,
    score: AttentionScore = "additive",
    memory_mask: Array | None = None,
    lengths: Array | None = None,
    mask: Array | None = None,
    selector: bool = False,
    target: bool = False,
    target_delay: int | None = None,
    regularisation: Regularisation | Mapping[str, Any] | None = None,
    rng: Random = None,
) -> tuple[Array, Array, dict[str, Array], State, AttentiveCache]:
    """A cell that attends, over a batch of sequences.

    Parameters
    ----------
    x : (N, T, D)
    state : (h0,), or (h0, c0) for an LSTM, each (N, H)
    memory : (N, L, C) or None
        The source; without it there must be a target.
    params : dict of str to array
        See :mod:`rnnlab.layers.attention.decoder`; others are ignored.
    cell : str or Cell
        "rnn", "lstm", "gru", "simplified_gru", another registered name, "package.module:Name", or a cell.
    score : {"additive", "dot", "bilinear"}
    memory_mask : (N, L), optional
        True (or 1) for the real slots of the memory, which may be anywhere; the others are not read.
    lengths : (N,) integers, optional
        The real steps of each sequence. Past them the state is carried through unchanged, x is not read, and
        contexts and weights are zero.
    mask : (N, T), optional
        Instead of ``lengths``: ones for the real steps of each sequence, then zeros.
    selector : bool
        Whether a selector scales the source's context.
    target : bool
        Whether the cell attends to its own past.
    target_delay : int, optional
        At least 2, with ``target``: no attention to the past; the context is the state this many steps back
        (Xia et al. 2017, section 3.4), and zero in the first ``target_delay`` steps, since the initial
        state is not part of the past. It has no parameters but Wt.
    regularisation : Regularisation, or a mapping of its fields, optional
        Dropout and zoneout of the recurrence; none if left out. Attention reads the state without dropout.
    rng : numpy Generator, optional
        The source of dropout and zoneout. Without it the cell runs as in inference.

    Returns
    -------
    h : (N, T, H)
    contexts : (N, T, C), (N, T, H), or both side by side, the source first
    weights : dict of str to array
        "source" (N, T, L) and "target" (N, T, T), or one of them.
    final_state : as ``state``
        After each sequence's last real step.
    cache : AttentiveCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype is wrong, a parameter is missing, or there is nothing to attend
        to.
    """
    function = "attentive_forward"
    cell = cell_for(function, cell)
    attends = Attends(score, memory is not None, selector, target, target_delay)
    own = check_inputs(function, cell, attends, x, state, memory, params)
    if memory is None and memory_mask is not None:
        raise InputError(f"{function}: memory_mask is given and memory is None, expected both or no mask")
    regularisation = Regularisation.of(function, regularisation)
    regularisation.check(function, cell)
    check_rng(function, rng)
    draws = Draws.of(regularisation, rng, ops_for(x))
    packing = Packing.of(function, x.shape[:2], lengths=lengths, mask=mask, like=x)
    states = tuple(packing.states(first) for first in state)
    contexts = SequenceContexts(function, attends, own, packing, states, memory, memory_mask)
    recurrence = forward_loop(
        cell, x, states, own, packing, draws, given_states=len(state), contexts=contexts
    )
    caches, shape = contexts.caches, None if memory is None else memory.shape
    spreads = [packing.spread(each.workspace.context) for each in caches.values()]
    weights = {name: packing.spread(each.workspace.weights) for name, each in caches.items()}
    final = tuple(each[packing.final] for each in states)
    cache = AttentiveCache(recurrence, caches, shape, contexts.real_rows)
    return packing.after_each(states[0]), ops_for(x).concatenate(spreads, axis=2), weights, final, cache


def attentive_backward(
    dh: Array | None,
    dcontexts: Array | None,
    cache: AttentiveCache,
    *,
    dweights: Mapping[str, Array] | None = None,
    dfinal: State | None = None,
    into: Params | None = None,
    memory_gradient: bool = True,
    total_dh: Array | None = None,
) -> tuple[Array, State, Array | None, dict[str, Array]]:
    """Backward of :func:`attentive_forward`.

    Parameters
    ----------
    dh : (N, T, H) or None
        Gradient of the loss with respect to ``h``, without what flows back from later steps. None for zeros,
        if ``dfinal`` is given.
    dcontexts : as contexts, or None
        Gradient with respect to ``contexts``, without the gradient through the cell.
    dweights : dict of str to array, optional
        Gradients with respect to the ``weights`` of these names, without those through the contexts.
    dfinal : as ``state``, optional
        Gradients with respect to the final state.
    into : dict of str to array, optional
        Arrays that the gradients of the parameters are added to. By default they are new arrays. Others are
        not changed.
    memory_gradient : bool
        Whether to compute dmemory, which features from a file do not need.
    total_dh : (N, T, H), optional
        Overwritten with the total gradient of the loss with respect to each h_t: ``dh``, what comes back
        from later steps through the cell and the attention, and ``dfinal``. Zero in padding. Its
        memory is not that of x or of ``into``.

    Returns
    -------
    dx : (N, T, D)
    dstate : as ``state``
    dmemory : (N, L, C), or None without a source or ``memory_gradient``
    dparams : dict of str to array

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` is invalid, or the cache is from another function.
    """
    function = "attentive_backward"
    check_cache(function, cache, AttentiveCache)
    recurrence, attentions, memory_shape, real_rows = cache
    x, params, packing = recurrence.x, recurrence.params, recurrence.packing
    grads = gradients_of(function, params, x, into, x=x, dh=dh, dcontexts=dcontexts)
    contexts = SequenceContextsBackward(
        function, attentions, params, grads, packing, dcontexts, dweights or {}
    )
    finals = named_finals(function, dfinal, recurrence)
    dx, dstate = backward_loop(
        function, dh, recurrence, grads, dfinal=finals, contexts=contexts, total_dh=total_dh
    )
    contexts.finish()
    dmemory = None
    if memory_gradient and memory_shape is not None:
        dmemory = contexts.each["source"].memory_gradient(memory_shape, real_rows, packing)
    return dx, dstate, dmemory, grads
