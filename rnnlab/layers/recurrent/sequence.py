"""Any recurrent cell over a batch of sequences, with the noise of :mod:`rnnlab.layers.recurrent.regularisation`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.layers.checks import check_rng, check_shapes
from rnnlab.layers.recurrent.cell import State, cell_steps
from rnnlab.layers.recurrent.packing import Steps, WeightGradients, as_rows
from rnnlab.layers.recurrent.regularisation import Random, Regularisation, RegularisedSteps
from rnnlab.ops import ops_for
from rnnlab.types import Array


class RegularisedCache(NamedTuple):
    """What the backward needs; packed as :mod:`rnnlab.layers.recurrent.packing` tells."""

    x: Array  # (N, T, D)
    states: State  # each (N + M, H)
    Wx: Array  # (D, G)
    Wh: Array  # (H, G)
    gates: Array  # (M, G) packed, activations
    kept: Array  # (M, H) packed, as of the cell
    cell: RegularisedSteps  # the noise, and rooms in which a backward works
    steps: Steps


def regularised_forward(
    x: Array,
    state: State,
    Wx: Array,
    Wh: Array,
    b: Array,
    *,
    cell: str,
    regularisation: Regularisation | Mapping[str, Any],
    rng: Random,
    lengths: Array | None = None,
) -> tuple[Array, State, RegularisedCache]:
    """A cell with noise over a batch of sequences.

    Parameters
    ----------
    x : (N, T, D)
    state : (h0,) or, of an LSTM, (h0, c0), each (N, H)
    Wx : (D, G)
    Wh : (H, G)
    b : (G,)
        As of the cell.
    cell : {"rnn", "lstm", "gru", "simplified_gru"}
    regularisation : Regularisation, or a mapping of its fields
    rng : numpy Generator or None
        Where the noise comes from. None is inference.
    lengths : (N,) integers, optional
        The real steps of each sequence; past them the state stands still and x is not read.

    Returns
    -------
    h : (N, T, H)
    final_state : as ``state``
        After each sequence's last real step.
    cache : RegularisedCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length, a dtype or a probability does not fit.
    """
    function = "regularised_forward"
    check_rng(function, rng)
    regularisation = Regularisation.of(regularisation)
    regularisation.check(function, cell)
    own = cell_steps(function, cell)
    if not isinstance(state, tuple) or len(state) != own.states:
        found = f"a tuple of {len(state)}" if isinstance(state, tuple) else f"a {type(state).__name__}"
        raise ValueError(f"{function}: state is {found}, expected a tuple of {own.states} arrays")
    ops, G = ops_for(x, *state, Wx, Wh, b), f"{own.gates if own.gates > 1 else ''}H"
    shapes = {f"state[{k}]": (array, "N H") for k, array in enumerate(state)}
    check_shapes(function, x=(x, "N T D"), **shapes, Wx=(Wx, f"D {G}"), Wh=(Wh, f"H {G}"), b=(b, G))
    steps = Steps.of(function, x.shape[:2], lengths=lengths, like=x)
    M, (H, columns) = steps.offsets[-1], Wh.shape
    noisy = RegularisedSteps(cell, regularisation, rng, state[0])
    gates, kept = ops.empty((M, columns), x.dtype), ops.empty((M, H), x.dtype)
    states = tuple(steps.states(first) for first in state)
    rows_x, from_x, from_h = as_rows(x), ops.prepacked(Wx), noisy.lay_out(ops, Wh)
    for chunk in steps.chunks(columns):
        ops.affine_into(steps.pack(rows_x, chunk), from_x, b, gates[chunk.rows])
        for rows, before, after in chunk.steps:
            prev, now = _part(states, before), _part(states, after)
            noisy.forward(ops, from_h, gates[rows], prev, now, kept[rows], rows)
    cache = RegularisedCache(x, states, Wx, Wh, gates, kept, noisy, steps)
    return steps.after_each(states[0]), _part(states, steps.final), cache


def regularised_backward(
    dh: Array,
    cache: RegularisedCache,
    *,
    dfinal: State | None = None,
    into: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, State, Array, Array, Array]:
    """Backward of :func:`regularised_forward`.

    Parameters
    ----------
    dh : (N, T, H)
        Gradient of the loss with respect to ``h``, each step's own share.
    dfinal : as ``state``, optional
        Gradients with respect to the final state.
    into : (dWx, dWh, db), optional
        Arrays that the parameters' gradients are added into, instead of fresh ones.

    Returns
    -------
    dx (N, T, D), dstate as ``state``, dWx (D, G), dWh (H, G), db (G,)
    """
    function = "regularised_backward"
    x, states, Wx, Wh, gates, kept, noisy, steps = cache
    ops, (H, columns) = ops_for(dh, x), Wh.shape
    finals = (None,) * len(states) if dfinal is None else dfinal
    if len(finals) != len(states):
        raise ValueError(f"{function}: dfinal has {len(finals)} arrays, expected {len(states)}")
    dstates = tuple(
        steps.incoming(function, H, None if k else dh, final, x) for k, final in enumerate(finals)
    )
    weights = WeightGradients(function, steps, x, Wx, Wh, into)
    rows_dh, to_h = as_rows(dh), noisy.lay_out_transposed(ops, Wh)
    room = noisy.gradient_room(ops, weights.dWh)
    for chunk in reversed(steps.chunks(columns)):
        dh_chunk, da = steps.pack(rows_dh, chunk), ops.empty((chunk.size, columns), x.dtype)
        for rows, before, after in reversed(chunk.steps):
            here, prev = chunk.here(rows), _part(states, before)
            dnow = _part(dstates, slice(rows.stop - rows.start))
            dh_now = dnow[0]
            dh_now += dh_chunk[here]
            now = _part(states, after)
            noisy.backward(ops, to_h, dnow, gates[rows], prev, now, kept[rows], da[here], rows)
        weights.add(chunk, da)
        noisy.add_gradient(ops, steps.before(states[0], chunk), kept[chunk.rows], da, room, chunk)
    noisy.finish(ops, room, weights.dWh)
    return weights.dx, tuple(map(steps.unsort, dstates)), weights.dWx, weights.dWh, weights.db


def _part(states: State, rows: Any) -> State:
    return tuple([each[rows] for each in states])
