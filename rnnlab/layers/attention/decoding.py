"""One step of a cell that attends, for decoding: :mod:`rnnlab.layers.attention.decoder`, a word at a time.

A decoding state is a tuple that a search may take rows of, by an index array, in any order and as often as it
likes:

    (recurrent state, origins, cells, history, past, decoder)

The first four are arrays, or a tuple of them, with a row for each hypothesis; the last two belong to all.

- ``cells`` (n, L) are those of each row's source and ``history`` (n, t) those of its past states, so that
  rows share memories, keys and past, and a search that goes on with other rows moves the last state alone.
- ``origins`` (n,) tell which rows are copies of one, as several beams often are. A step attends once for all
  of them, since contexts depend on the state alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rnnlab.layers.attention.own_states import StateMemory
from rnnlab.layers.attention.parts import Kind, Layout, Params, State, check_inputs
from rnnlab.layers.attention.scores import SourceRows
from rnnlab.layers.checks import check_shapes
from rnnlab.layers.recurrent.regularisation import Regularisation, RegularisedSteps
from rnnlab.ops import ops_for
from rnnlab.types import Array

DecodingState = tuple[Any, ...]


class _Decoder:
    """What all rows share and no step changes."""

    def __init__(self, layout: Layout, memory: Array | None, keys: Array | None) -> None:
        self.layout, self.memory, self.keys = layout, memory, keys


def attentive_start(
    state: State,
    memory: Array | None,
    params: Params,
    *,
    cell: str,
    score: str = "additive",
    memory_mask: Array | None = None,
    selector: bool = False,
    target: bool = False,
    regularisation: Regularisation | Mapping[str, Any] | None = None,
) -> DecodingState:
    """The decoding state before the first step.

    Parameters
    ----------
    state, memory, params, cell, score, memory_mask, selector, target, regularisation
        As of :func:`~rnnlab.layers.attention.decoder.attentive_forward`. Changes of the parameters after this call
        need not show in the steps.

    Returns
    -------
    decoding_state : tuple

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit, a parameter is missing, or there is nothing to attend to.
    """
    function, like = "attentive_start", state[0]
    kind = Kind(cell, score, memory is not None, selector, target)
    own = check_inputs(function, kind, None, state, memory, params)
    layout = Layout(kind, RegularisedSteps(cell, Regularisation.of(regularisation), None, like), own, like)
    cells = rows = keys = history = None
    if memory is not None:
        rows, cells, _ = SourceRows.of(function, memory, memory_mask)
        keys = layout.parts["source"].keys.of(rows)
    if target:
        history = ops_for(like).asarray(np.empty((like.shape[0], 0), np.int64))
    origins = np.arange(like.shape[0])
    return state, origins, cells, history, None, _Decoder(layout, rows, keys)


def attentive_step(x: Array, state: DecodingState) -> tuple[Array, Array, dict[str, Array], DecodingState]:
    """One step.

    Parameters
    ----------
    x : (n, D)
    state : tuple
        From :func:`attentive_start` or a step before; it stays as it is, and may be gone on from again.

    Returns
    -------
    h : (n, H)
    contexts : (n, C), (n, H), or both side by side, the source first
    weights : dict of str to array
        "source" (n, L) and "target" (n, t), as far as there are.
    decoding_state : tuple

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit.
    """
    recurrent, origins, cells, history, past, decoder = state
    layout, h = decoder.layout, recurrent[0]
    ops, (n, H) = ops_for(x, h), h.shape
    check_shapes("attentive_step", Wx=(layout.Wx, "D G"), h=(h, "N H"), x=(x, "N D"))
    distinct, copies = _distinct(ops, origins)
    if copies is not None:
        h, cells, history = (None if each is None else each[distinct] for each in (h, cells, history))
    reads = {}
    if cells is not None:
        reads["source"] = decoder.keys, decoder.memory, cells
    if history is not None:
        if past is None:  # the state before the first step is no memory
            past = StateMemory(layout.parts["target"].keys, h)
        else:
            history = ops.concatenate([history, past.append(h)], axis=1)
        reads["target"] = past.keys, past.states, history
    rooms = {
        name: layout.parts[name].room(*read[:2], len(h), read[2].shape[1]) for name, read in reads.items()
    }
    gates = ops.zeros((len(h), layout.cell.gates * H), x.dtype)
    layout.attend({name: (*read, rooms[name]) for name, read in reads.items()}, h, gates)
    contexts = [room.context for room in rooms.values()]
    context = contexts[0] if len(contexts) == 1 else ops.concatenate(contexts, axis=1)
    weights = {name: room.weights for name, room in rooms.items()}
    if copies is not None:
        gates, context, cells, history = (
            None if each is None else each[copies] for each in (gates, context, cells, history)
        )
        weights = {name: each[copies] for name, each in weights.items()}
    ops.matmul_add(x, layout.from_x, gates)
    gates += layout.b
    after, kept = tuple(ops.empty((n, H), x.dtype) for _ in recurrent), ops.empty((n, H), x.dtype)
    layout.recur(gates, recurrent, after, kept, slice(0, n))
    return after[0], context, weights, (after, np.arange(n), cells, history, past, decoder)


def _distinct(ops: Any, origins: Array) -> tuple[Array, Array | None]:
    """One row of each origin, and for each row which of these it is; None if all differ."""
    _, distinct, copies = np.unique(origins, return_index=True, return_inverse=True)
    return ops.asarray(distinct), None if len(distinct) == len(copies) else ops.asarray(copies)
