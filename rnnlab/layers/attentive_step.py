"""One step of a cell that attends, for decoding: :mod:`rnnlab.layers.attentive`, a word at a time.

A decoding state is a tuple that a search may take rows of, by an index array, in any order and as often as it
likes:

    (recurrent state, cells, history, states so far, decoder)

``cells`` (n, L) are those of each row's source and ``history`` (n, t) those of its past, so that rows which
share a source share its memory and keys, and a search that goes on with other rows moves no state but the
last one. The memory itself, the states so far and the laid-out parameters belong to all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnlab.layers.attending import SourceRows
from rnnlab.layers.attentive_parts import Kind, Layout, Params, State, check_inputs
from rnnlab.layers.checks import check_shapes
from rnnlab.layers.target_attention import StateMemory
from rnnlab.ops import ops_for

Array = Any
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
) -> DecodingState:
    """The decoding state before the first step.

    Parameters
    ----------
    state, memory, params, cell, score, memory_mask, selector, target
        As of :func:`~rnnlab.layers.attentive.attentive_forward`. Changes of the parameters after this call
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
    layout = Layout(kind, check_inputs(function, kind, None, state, memory, params), like)
    cells = rows = keys = history = None
    if memory is not None:
        rows, cells, _ = SourceRows.of(function, memory, memory_mask)
        keys = layout.parts["source"].keys.of(rows)
    if target:
        history = ops_for(like).asarray(np.empty((like.shape[0], 0), np.int64))
    return state, cells, history, None, _Decoder(layout, rows, keys)


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
    recurrent, cells, history, past, decoder = state
    layout, h = decoder.layout, recurrent[0]
    ops = ops_for(x, h)
    check_shapes("attentive_step", Wx=(layout.Wx, "D G"), h=(h, "N H"), x=(x, "N D"))
    n, G = x.shape[0], layout.Wx.shape[1]
    reads = {}
    if cells is not None:
        reads["source"] = decoder.keys, decoder.memory, cells
    if history is not None:
        if not history.shape[1]:
            past = StateMemory(layout.parts["target"].keys, h)
        reads["target"] = past.keys, past.states, history
    rooms = {name: layout.parts[name].room(*read[:2], n, read[2].shape[1]) for name, read in reads.items()}
    gates, kept = ops.empty((n, G), x.dtype), ops.empty(h.shape, x.dtype)
    after = tuple(ops.empty(h.shape, x.dtype) for _ in recurrent)
    ops.affine_into(x, layout.from_x, layout.b, gates)
    layout.step({name: (*read, rooms[name]) for name, read in reads.items()}, gates, recurrent, after, kept)
    if history is not None:
        history = ops.concatenate([history, past.append(after[0])], axis=1)
    contexts = [room.context for room in rooms.values()]
    return (
        after[0],
        contexts[0] if len(contexts) == 1 else ops.concatenate(contexts, axis=1),
        {name: room.weights for name, room in rooms.items()},
        (after, cells, history, past, decoder),
    )
