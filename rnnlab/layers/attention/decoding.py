"""Single steps of a cell that attends, for decoding: :mod:`rnnlab.layers.attention.decoder` word by word.

A search may take rows of a decoding state by an index array, in any order and repeatedly. Hypotheses share
memories, keys and past states, so it only copies the last recurrent state. A step attends once for all
hypotheses that are copies of one, as in a beam, because their contexts are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers.attention.contexts import Attends, Context, check_inputs
from rnnlab.layers.attention.scores import past_columns
from rnnlab.layers.attention.source_rows import SourceRows
from rnnlab.layers.attention.state_memory import StateMemory
from rnnlab.layers.checks import check_shapes
from rnnlab.layers.embedding import WordEmbeddingCache
from rnnlab.layers.recurrent.cell import Cell, cell_for
from rnnlab.layers.recurrent.decoding import RecurrentStep
from rnnlab.layers.recurrent.regularisation import Regularisation
from rnnlab.ops import Primitives, ops_for
from rnnlab.options import AttentionScore
from rnnlab.types import Array, Params, State


class AttentiveState(NamedTuple):
    """The decoding state: a row for each hypothesis, but for ``past`` and ``decoder``, which all share."""

    recurrent: State
    origins: Array  # (n,): the same number for copies of one hypothesis
    slots: Array | None  # (n, L): row numbers of the source's slots; None without a source
    history: Array | None  # (n, t): those of the past states; None without attention to them
    past: StateMemory | None  # the past states, from the first step on
    decoder: _Decoder


class _Decoder:
    """The data that all hypotheses share and that no step changes."""

    def __init__(
        self,
        recurrence: RecurrentStep,
        contexts: dict[str, Context],
        memory: Array | None,
        keys: Array | None,
    ) -> None:
        self.recurrence, self.contexts, self.memory, self.keys = recurrence, contexts, memory, keys


def attentive_start(
    state: State,
    memory: Array | None,
    params: Params,
    *,
    cell: str | Cell,
    score: AttentionScore = "additive",
    memory_mask: Array | None = None,
    selector: bool = False,
    target: bool = False,
    target_delay: int | None = None,
    regularisation: Regularisation | Mapping[str, Any] | None = None,
) -> AttentiveState:
    """The decoding state before the first step.

    Parameters
    ----------
    state, memory, params, cell, score, memory_mask, selector, target, target_delay, regularisation
        As in :func:`~rnnlab.layers.attention.decoder.attentive_forward`. The parameters must not change while
        the state is in use.

    Returns
    -------
    decoding_state : AttentiveState

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype is wrong, a parameter is missing, or there is nothing to attend to.
    """
    function = "attentive_start"
    cell = cell_for(function, cell)
    attends = Attends(score, memory is not None, selector, target, target_delay)
    own, like = check_inputs(function, cell, attends, None, state, memory, params), state[0]
    regularisation = Regularisation.of(function, regularisation)
    regularisation.check(function, cell)
    recurrence = RecurrentStep(cell, own, like, regularisation)
    contexts = {name: Context(name, attends, own, like) for name in attends.names}
    slots = rows = keys = history = None
    if memory is not None:
        rows, slots, _ = SourceRows.of(function, memory, memory_mask)
        keys = contexts["source"].keys.of(rows)
    if target:
        history = ops_for(like).asarray(np.empty((like.shape[0], 0), np.int64))
    origins = np.arange(like.shape[0])
    return AttentiveState(state, origins, slots, history, None, _Decoder(recurrence, contexts, rows, keys))


def attentive_step(
    x: Array, state: AttentiveState, looked_up: WordEmbeddingCache | None = None
) -> tuple[Array, Array, dict[str, Array], AttentiveState]:
    """One step.

    Parameters
    ----------
    x : (n, D)
    state : AttentiveState
        From :func:`attentive_start` or an earlier step. It is not changed, and may be used again.
    looked_up : WordEmbeddingCache, optional
        The cache of :func:`~rnnlab.layers.embedding.word_embedding_forward`, if x are the word vectors of
        tokens (n,). The matrix must be the same in each step. The products of x with Wx may then be looked up
        in a table.

    Returns
    -------
    h : (n, H)
    contexts : (n, C), (n, H), or both side by side, the source first
    weights : dict of str to array
        "source" (n, L) and "target" (n, t), or one of them.
    decoding_state : AttentiveState

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype is wrong.
    """
    recurrent, origins, slots, history, past, decoder = state
    recurrence, h = decoder.recurrence, recurrent[0]
    ops, n = ops_for(x, h), h.shape[0]
    check_shapes("attentive_step", Wx=(recurrence.Wx, "D G"), h=(h, "N H"), x=(x, "N D"))
    distinct, copies = _distinct(ops, origins)
    if copies is not None:
        h, slots, history = (None if each is None else each[distinct] for each in (h, slots, history))
    reads = {}
    if slots is not None:
        reads["source"] = decoder.keys, decoder.memory, slots
    if history is not None:
        if past is None:  # the state before the first step is not attended to
            past = StateMemory(decoder.contexts["target"].keys, h)
        else:
            history = ops.concatenate([history, past.append(h)], axis=1)
        reads["target"] = past.keys, past.states, history
    gates, contexts, weights = ops.zeros((len(h), recurrence.Wx.shape[1]), x.dtype), [], {}
    for name, (keys, memory, own_slots) in reads.items():
        context = decoder.contexts[name]
        workspace = context.workspace(keys, memory, len(h), own_slots.shape[1])
        columns = slice(None) if name == "source" else past_columns(own_slots.shape[1], context.delay)
        read = workspace.at(slice(None), columns)
        context.step(h, keys, memory, own_slots[:, columns], read, gates)
        contexts.append(workspace.context)
        weights[name] = workspace.weights
    attended = contexts[0] if len(contexts) == 1 else ops.concatenate(contexts, axis=1)
    if copies is not None:
        gates, attended = gates[copies], attended[copies]
        slots, history = (None if each is None else each[copies] for each in (slots, history))
        weights = {name: each[copies] for name, each in weights.items()}
    after = recurrence.add_input(x, gates, recurrent, looked_up)
    state = AttentiveState(after, np.arange(n), slots, history, past, decoder)
    return after[0], attended, weights, state


def _distinct(ops: Primitives, origins: Array) -> tuple[Array, Array | None]:
    """One row of each origin, and the index among these rows for every row; None if all origins differ."""
    _, distinct, copies = np.unique(origins, return_index=True, return_inverse=True)
    return ops.asarray(distinct), None if len(distinct) == len(copies) else ops.asarray(copies)
