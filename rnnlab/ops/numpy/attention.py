"""Attention on NumPy: scores, masked softmax and weighted sum of one step.

``slots`` (n, L) lists the memory rows that each query may attend to, -1 where there is none.
"""

from __future__ import annotations

import numpy as np

from rnnlab.ops.arguments import checked
from rnnlab.types import Array


@checked
def additive_attention_forward(
    query: Array, keys: Array, v: Array, memory: Array, slots: Array, weights: Array, context: Array
) -> None:
    missing = _missing(slots)
    hidden = _hidden(query, keys, slots, missing)
    scores = (hidden.reshape(-1, len(v)) @ v).reshape(slots.shape)
    _attend(scores, memory, slots, missing, weights, context)


@checked
def additive_attention_backward(
    dcontext: Array,
    query: Array,
    keys: Array,
    v: Array,
    memory: Array,
    slots: Array,
    weights: Array,
    dscores: Array,
    dquery: Array,
    dkeys: Array,
    dv: Array,
) -> None:
    missing = _missing(slots)
    _scores_gradient(dcontext, memory, slots, missing, weights, dscores)
    hidden = _hidden(query, keys, slots, missing)
    dv += np.matmul(dscores[:, None], hidden)[:, 0]
    np.multiply(hidden, hidden, out=hidden)
    np.subtract(1, hidden, out=hidden)
    hidden *= v
    hidden *= dscores[:, :, None]
    dquery += np.matmul(np.ones((1, slots.shape[1]), v.dtype), hidden)[:, 0]  # the sum over the slots
    _add_at(dkeys, slots, missing, hidden)


@checked
def dot_attention_forward(
    query: Array, keys: Array, memory: Array, slots: Array, weights: Array, context: Array
) -> None:
    missing = _missing(slots)
    scores = np.matmul(_rows_at(keys, slots, missing), query[:, :, None])[:, :, 0]
    _attend(scores, memory, slots, missing, weights, context)


@checked
def dot_attention_backward(
    dcontext: Array,
    query: Array,
    keys: Array,
    memory: Array,
    slots: Array,
    weights: Array,
    dscores: Array,
    dquery: Array,
    dkeys: Array,
) -> None:
    missing = _missing(slots)
    _scores_gradient(dcontext, memory, slots, missing, weights, dscores)
    dquery += np.matmul(dscores[:, None], _rows_at(keys, slots, missing))[:, 0]
    _add_at(dkeys, slots, missing, dscores[:, :, None] * query[:, None])


@checked
def attention_memory_gradient(dcontext: Array, weights: Array, slots: Array, dmemory: Array) -> None:
    _add_at(dmemory, slots, _missing(slots), weights[:, :, None] * dcontext[:, None])


def _missing(slots: Array) -> Array | None:
    """Whether each slot is empty, (n, L); None if none is."""
    missing = slots < 0
    return missing if missing.any() else None


def _hidden(query: Array, keys: Array, slots: Array, missing: Array | None) -> Array:
    """tanh(query + key), (n, L, A)."""
    hidden = _rows_at(keys, slots, missing)
    hidden += query[:, None]
    return np.tanh(hidden, out=hidden)


def _attend(
    scores: Array, memory: Array, slots: Array, missing: Array | None, weights: Array, context: Array
) -> None:
    """Write the softmax of the scores over the existing slots, and the memory's weighted sum."""
    if missing is None:
        scores -= scores.max(axis=1, keepdims=True, initial=-np.inf)
        np.exp(scores, out=scores)
        np.divide(scores, scores.sum(axis=1, keepdims=True), out=weights)
    else:
        empty = missing.all(axis=1, keepdims=True)
        scores[missing] = -np.inf
        scores -= np.where(empty, 0, scores.max(axis=1, keepdims=True))
        np.exp(scores, out=scores)
        np.divide(scores, scores.sum(axis=1, keepdims=True) + empty, out=weights)
        weights[missing] = 0  # even if a score is NaN
    np.matmul(weights[:, None], _rows_at(memory, slots, missing), out=context[:, None])


def _scores_gradient(
    dcontext: Array, memory: Array, slots: Array, missing: Array | None, weights: Array, dscores: Array
) -> None:
    """Turn the gradients of the weights, in ``dscores``, and of the context into that of the scores."""
    if missing is not None:
        dscores[missing] = 0
    dscores += np.matmul(_rows_at(memory, slots, missing), dcontext[:, :, None])[:, :, 0]
    dscores *= weights
    dscores -= weights * dscores.sum(axis=1, keepdims=True)
    if missing is not None:
        dscores[missing] = 0


def _rows_at(rows: Array, slots: Array, missing: Array | None) -> Array:
    """The rows listed in ``slots``, (n, L, columns), zero where the slot is -1."""
    if not rows.shape[0]:
        return np.zeros((*slots.shape, rows.shape[1]), rows.dtype)
    out = rows.take(slots, axis=0, mode="clip")
    if missing is not None:
        out[missing] = 0
    return out


def _add_at(rows: Array, slots: Array, missing: Array | None, values: Array) -> None:
    """Add values (n, L, columns) to the rows listed in ``slots``, each of which occurs once."""
    if missing is None:
        rows[slots] += values
    else:
        real = ~missing
        rows[slots[real]] += values[real]
