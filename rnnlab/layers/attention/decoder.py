"""A recurrent cell that attends: contexts enter the pre-activations of all its gates.

    a_t = x_t Wx + h_{t-1} Wh + z_t Wz + t_t Wt + b

    z_t    attention of h_{t-1} to a memory, the source         Chen et al. 2018, eqs 3-4 (LSTM)
    t_t    attention of h_{t-1} to h_1 .. h_{t-1}, the target   Xia et al. 2017, eqs 6-7 and 10 (GRU)

and the cell goes on from a_t as ever: any of "rnn", "lstm", "gru" and "simplified_gru", with source, target,
or both. In the GRU the reset gate acts on h_{t-1} Wh of the candidate alone, not on the contexts (Xia et al.
2017, eq. 10). A selector beta_t = sigmoid(h_{t-1} . w + b) may scale z_t (Xu et al. 2015, section 4.2.1).

Parameters are a dict, and so are their gradients (:func:`attentive_shapes` lists them):

    Wx (D, G), Wh (H, G), b (G,)               as of the cell
    Wz (C, G), source_Wq, source_Wm, ...       with a source; after "source_" the names of the score's
    selector_w (H,), selector_b (1,)           with a selector
    Wt (H, G), target_Wq, target_Wm, ...       with a target

Backward, with da_t what the cell's backward gives: dz_t += da_t Wz^T, dWz += z_t^T da_t, likewise for t_t;
then attention's backward adds to dh_{t-1}, to the source's memory, and to the earlier states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.layers.attention.own_states import histories, spread
from rnnlab.layers.attention.parts import WEIGHTS, Kind, Layout, Params, PartBackward, State, check_inputs
from rnnlab.layers.attention.query import attention_shapes
from rnnlab.layers.attention.scores import AttentionCache, SourceRows, gradients_of
from rnnlab.layers.checks import check_gradient, check_rng
from rnnlab.layers.recurrent.cell import cell_steps
from rnnlab.layers.recurrent.packing import Steps, WeightGradients, as_rows
from rnnlab.layers.recurrent.regularisation import Random, Regularisation, RegularisedSteps
from rnnlab.ops import ops_for
from rnnlab.types import Array


class AttentiveCache(NamedTuple):
    """What the backward of a sequence needs; packed as :mod:`rnnlab.layers.recurrent.packing` tells."""

    x: Array  # (N, T, D)
    states: State  # each (N + M, H)
    gates: Array  # (M, G) packed, activations
    kept: Array  # (M, H) packed, as of the cell
    source: AttentionCache | None
    target: AttentionCache | None
    memory_shape: tuple[int, ...] | None  # (N, L, C) of the source
    real: Array | None  # (R,) the cells of the source that are not masked, None if all
    params: dict[str, Array]
    kind: Kind
    cell: RegularisedSteps
    steps: Steps

    def attentions(self) -> dict[str, AttentionCache]:
        """Source and target, as far as there are."""
        both = {"source": self.source, "target": self.target}
        return {name: each for name, each in both.items() if each is not None}


def attentive_shapes(
    cell: str,
    *,
    input_dim: int,
    hidden_dim: int,
    attention_dim: int,
    memory_dim: int | None = None,
    score: str = "additive",
    selector: bool = False,
    target: bool = False,
) -> dict[str, tuple[int, ...]]:
    """The shapes of all parameters by their names; there is a source if there is a ``memory_dim``.

    Raises
    ------
    ValueError
        If there is no such cell or score, or they and the dimensions do not go together.
    """
    function, G = "attentive_shapes", cell_steps("attentive_shapes", cell).gates * hidden_dim
    kind = Kind(cell, score, memory_dim is not None, selector, target)
    kind.check(function)
    shapes: dict[str, tuple[int, ...]] = {"Wx": (input_dim, G), "Wh": (hidden_dim, G), "b": (G,)}
    for part in kind.parts:
        C = hidden_dim if part == "target" or memory_dim is None else memory_dim
        own = attention_shapes(score, query_dim=hidden_dim, memory_dim=C, attention_dim=attention_dim)
        shapes |= {WEIGHTS[part]: (C, G)} | {f"{part}_{name}": shape for name, shape in own.items()}
    if selector:
        shapes |= {"selector_w": (hidden_dim,), "selector_b": (1,)}
    return shapes


def attentive_forward(
    x: Array,
    state: State,
    memory: Array | None,
    params: Params,
    *,
    cell: str,
    score: str = "additive",
    memory_mask: Array | None = None,
    lengths: Array | None = None,
    selector: bool = False,
    target: bool = False,
    regularisation: Regularisation | Mapping[str, Any] | None = None,
    rng: Random = None,
) -> tuple[Array, Array, dict[str, Array], State, AttentiveCache]:
    """A cell that attends, over a batch of sequences.

    Parameters
    ----------
    x : (N, T, D)
    state : (h0,) or, of an LSTM, (h0, c0), each (N, H)
    memory : (N, L, C) or None
        The source; without it there must be a target.
    params : dict of str to array
        See :mod:`rnnlab.layers.attention.decoder`; what belongs to no part of this cell is ignored.
    cell : {"rnn", "lstm", "gru", "simplified_gru"}
    score : {"additive", "dot", "bilinear"}
    memory_mask : (N, L), optional
        True (or 1) for real cells, anywhere; others are not read.
    lengths : (N,) integers, optional
        The real steps of each sequence; past them the state stands still, x is not read, and contexts and
        weights are zero.
    selector : bool
        Whether a selector scales the source's context.
    target : bool
        Whether the cell attends to its own past.
    regularisation : Regularisation, or a mapping of its fields, optional
        The noise of the recurrence; none if left out. Attention reads the state as it is.
    rng : numpy Generator, optional
        Where that noise comes from; without it the cell is as in inference.

    Returns
    -------
    h : (N, T, H)
    contexts : (N, T, C), (N, T, H), or both side by side, the source first
    weights : dict of str to array
        "source" (N, T, L) and "target" (N, T, T), as far as there are.
    final_state : as ``state``
        After each sequence's last real step.
    cache : AttentiveCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype does not fit, a parameter is missing, or there is nothing to attend
        to.
    """
    function = "attentive_forward"
    kind = Kind(cell, score, memory is not None, selector, target)
    own = check_inputs(function, kind, (x, "N T D"), state, memory, params)
    if memory is None and memory_mask is not None:
        raise ValueError(f"{function}: memory_mask is given and memory is None")
    noise = Regularisation.of(regularisation)
    noise.check(function, cell)
    check_rng(function, rng)
    ops, H, noisy = ops_for(x), state[0].shape[1], RegularisedSteps(cell, noise, rng, state[0])
    steps = Steps.of(function, x.shape[:2], lengths=lengths, like=x)
    layout = Layout(kind, noisy, own, like=x)
    M, G = steps.offsets[-1], layout.cell.gates * H
    states = tuple(steps.states(first) for first in state)
    gates, kept = ops.empty((M, G), x.dtype), ops.empty((M, H), x.dtype)
    attentions: dict[str, AttentionCache] = {}
    real = None
    if memory is not None:
        rows, cells, real = SourceRows.of(function, memory, memory_mask)
        part = layout.parts["source"]
        attentions["source"] = part.cache(part.keys.of(rows), rows, cells[steps.order], M)
    if target:
        rows, part = states[0][x.shape[0] :], layout.parts["target"]
        attentions["target"] = part.cache(part.keys.room(M, rows), rows, histories(steps), M)
    t = 0
    for chunk in steps.chunks(G):
        ops.affine_into(steps.pack(as_rows(x), chunk), layout.from_x, own["b"], gates[chunk.rows])
        for rows, before, after in chunk.steps:
            reads = {name: each.at(rows, t) for name, each in attentions.items()}
            now = _part(states, after)
            layout.step(reads, gates[rows], _part(states, before), now, kept[rows], rows)
            if target:
                layout.parts["target"].keys.write(now[0], attentions["target"].keys[rows])
            t += 1
    shape = None if memory is None else memory.shape
    source, past = attentions.get("source"), attentions.get("target")
    cache = AttentiveCache(x, states, gates, kept, source, past, shape, real, own, kind, noisy, steps)
    contexts = ops.concatenate([spread(steps, each.room.context) for each in attentions.values()], axis=2)
    weights = {name: spread(steps, each.room.weights) for name, each in attentions.items()}
    return steps.after_each(states[0]), contexts, weights, _part(states, steps.final), cache


def attentive_backward(
    dh: Array,
    dcontexts: Array | None,
    cache: AttentiveCache,
    *,
    dweights: Mapping[str, Array] | None = None,
    dfinal: State | None = None,
    into: Params | None = None,
    memory_gradient: bool = True,
) -> tuple[Array, State, Array | None, dict[str, Array]]:
    """Backward of :func:`attentive_forward`.

    Parameters
    ----------
    dh : (N, T, H)
        Gradient of the loss with respect to ``h``, each step's own share.
    dcontexts : as contexts, or None
        Gradient with respect to ``contexts``, besides what they do to the cell.
    dweights : dict of str to array, optional
        Gradients with respect to the ``weights`` of these names, besides what comes through the contexts.
    dfinal : as ``state``, optional
        Gradients with respect to the final state.
    into : dict of str to array, optional
        Arrays that the parameters' gradients are added into, instead of fresh ones; others are left alone.
    memory_gradient : bool
        Whether to compute dmemory: nobody needs that of features from a file.

    Returns
    -------
    dx : (N, T, D)
    dstate : as ``state``
    dmemory : (N, L, C), or None without a source or ``memory_gradient``
    dparams : dict of str to array

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` does not fit.
    """
    function = "attentive_backward"
    x, states, gates, kept, _, past, memory_shape, real, params, _, cell, steps = cache
    ops, (H, G) = ops_for(dh, x), params["Wh"].shape
    grads = gradients_of(function, params, x, into)
    finals = (None,) * len(states) if dfinal is None else dfinal
    if len(finals) != len(states):
        raise ValueError(f"{function}: dfinal has {len(finals)} arrays, expected {len(states)}")
    dstates = tuple(
        steps.incoming(function, H, None if k else dh, final, x) for k, final in enumerate(finals)
    )
    room = grads["Wx"], grads["Wh"], grads["b"]
    weights = WeightGradients(function, steps, x, params["Wx"], params["Wh"], room)
    parts = _parts_backward(function, cache, dcontexts, dweights or {}, grads)
    room_h = cell.gradient_room(ops, grads["Wh"])
    to_h, rows_dh, t = cell.lay_out_transposed(ops, params["Wh"]), as_rows(dh), len(steps.offsets) - 1
    for chunk in reversed(steps.chunks(G)):
        dh_chunk, da = steps.pack(rows_dh, chunk), ops.empty((chunk.size, G), x.dtype)
        for rows, before, after in reversed(chunk.steps):
            t -= 1
            here, prev = chunk.here(rows), _part(states, before)
            dnow = _part(dstates, slice(rows.stop - rows.start))
            dh_now = dnow[0]
            dh_now += dh_chunk[here]
            if past is not None:
                parts["target"].add_state_gradient(rows, dh_now)
            now = _part(states, after)
            cell.backward(ops, to_h, dnow, gates[rows], prev, now, kept[rows], da[here], rows)
            for part in parts.values():
                part.step(rows, t, da[here], prev[0], dh_now)
        weights.add(chunk, da)
        h = steps.before(states[0], chunk)
        cell.add_gradient(ops, h, kept[chunk.rows], da, room_h, chunk)
        for part in parts.values():
            part.add_gradients(chunk.rows, h, da)
    cell.finish(ops, room_h, grads["Wh"])
    for part in parts.values():
        part.finish()
    dmemory = None
    if memory_gradient and memory_shape is not None:
        dmemory = parts["source"].memory_gradient(memory_shape, real, steps)
    return weights.dx, tuple(map(steps.unsort, dstates)), dmemory, grads


def _parts_backward(
    function: str,
    cache: AttentiveCache,
    dcontexts: Array | None,
    dweights: Mapping[str, Array],
    grads: dict[str, Array],
) -> dict[str, PartBackward]:
    """The backward of each attention, with its share of the gradients that come from outside."""
    attentions, (N, T) = cache.attentions(), cache.steps.shape
    if unknown := dweights.keys() - attentions.keys():
        raise ValueError(
            f"{function}: dweights has {', '.join(sorted(unknown))}, expected {', '.join(attentions)}"
        )
    columns = sum(each.memory.shape[1] for each in attentions.values())
    if dcontexts is not None:
        check_gradient(function, dcontexts, (N, T, columns), cache.x.dtype, "dcontexts")
    parts, start = {}, 0
    for name, each in attentions.items():
        stop = start + each.memory.shape[1]
        if name in dweights:
            shape = (N, T, each.room.weights.shape[1])
            check_gradient(function, dweights[name], shape, cache.x.dtype, f"dweights[{name!r}]")
        parts[name] = PartBackward(
            name,
            each,
            cache.params[WEIGHTS[name]],
            None if dcontexts is None else dcontexts[:, :, start:stop],
            dweights.get(name),
            cache.steps,
            grads,
        )
        start = stop
    return parts


def _part(states: State, rows: Any) -> State:
    return tuple(each[rows] for each in states)
