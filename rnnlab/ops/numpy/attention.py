"""The primitives of attention on NumPy: scores, masked softmax and weighted sum of one step.

The rows that are attended to, of ``keys`` (R, A) and of ``memory`` (R, C), lie anywhere: ``cells`` (n, L), of
integers, tells where those of each query are, and -1 where there is none. So a mask costs nothing, several
queries may share a memory, and a memory may be what an earlier step has appended. Weights where there is no
cell are zero, and a query without any has the context zero.

In the gradients no two queries may share a cell.
"""

from __future__ import annotations

import numpy as np

from rnnlab.types import Array

__all__ = [
    "additive_attention_backward",
    "additive_attention_forward",
    "attention_memory_gradient",
    "dot_attention_backward",
    "dot_attention_forward",
]


def additive_attention_forward(
    query: Array, keys: Array, v: Array, memory: Array, cells: Array, weights: Array, context: Array
) -> None:
    """Write the weights softmax(v . tanh(query + key)), (n, L), and the context, (n, C)."""
    _attend(_hidden(query, keys, cells) @ v, memory, cells, weights, context)


def additive_attention_backward(
    dcontext: Array,
    query: Array,
    keys: Array,
    v: Array,
    memory: Array,
    cells: Array,
    weights: Array,
    dscores: Array,
    dquery: Array,
    dkeys: Array,
    dv: Array,
) -> None:
    """Add to dquery (n, A), dkeys (R, A) and dv (n, A), each query's share.

    ``dscores`` (n, L) comes in as the weights' own gradient and leaves as that of the scores.
    """
    _scores_gradient(dcontext, memory, cells, weights, dscores)
    hidden = _hidden(query, keys, cells)
    dv += np.matmul(dscores[:, None], hidden)[:, 0]
    np.multiply(hidden, hidden, out=hidden)
    np.subtract(1, hidden, out=hidden)
    hidden *= v
    hidden *= dscores[:, :, None]
    dquery += hidden.sum(axis=1)
    _add_at(dkeys, cells, hidden)


def dot_attention_forward(
    query: Array, keys: Array, memory: Array, cells: Array, weights: Array, context: Array
) -> None:
    """Write the weights softmax(query . key), (n, L), and the context, (n, C)."""
    scores = np.matmul(_at(keys, cells), query[:, :, None])[:, :, 0]
    _attend(scores, memory, cells, weights, context)


def dot_attention_backward(
    dcontext: Array,
    query: Array,
    keys: Array,
    memory: Array,
    cells: Array,
    weights: Array,
    dscores: Array,
    dquery: Array,
    dkeys: Array,
) -> None:
    """Add to dquery (n, A) and dkeys (R, A); dscores as of :func:`additive_attention_backward`."""
    _scores_gradient(dcontext, memory, cells, weights, dscores)
    dquery += np.matmul(dscores[:, None], _at(keys, cells))[:, 0]
    _add_at(dkeys, cells, dscores[:, :, None] * query[:, None])


def attention_memory_gradient(dcontext: Array, weights: Array, cells: Array, dmemory: Array) -> None:
    """Add to dmemory (R, C) what comes through the weighted sum."""
    _add_at(dmemory, cells, weights[:, :, None] * dcontext[:, None])


def _hidden(query: Array, keys: Array, cells: Array) -> Array:
    """tanh(query + key), (n, L, A)."""
    hidden = _at(keys, cells)
    hidden += query[:, None]
    return np.tanh(hidden, out=hidden)


def _attend(scores: Array, memory: Array, cells: Array, weights: Array, context: Array) -> None:
    """Softmax over the cells that there are, and the memory's sum by these weights."""
    nothing = cells < 0
    empty = nothing.all(axis=1, keepdims=True)
    scores[nothing] = -np.inf
    scores -= np.where(empty, 0, scores.max(axis=1, keepdims=True, initial=-np.inf))
    np.exp(scores, out=scores)
    scores[nothing] = 0
    np.divide(scores, scores.sum(axis=1, keepdims=True) + empty, out=weights)
    np.matmul(weights[:, None], _at(memory, cells), out=context[:, None])


def _scores_gradient(dcontext: Array, memory: Array, cells: Array, weights: Array, dscores: Array) -> None:
    """From the gradient of the weights, in ``dscores``, and of the context to that of the scores."""
    dscores[cells < 0] = 0
    dscores += np.matmul(_at(memory, cells), dcontext[:, :, None])[:, :, 0]
    dscores *= weights
    dscores -= weights * dscores.sum(axis=1, keepdims=True)


def _at(rows: Array, cells: Array) -> Array:
    """The rows that the cells name, (n, L, columns), zero where there is none."""
    nothing = cells < 0
    if not rows.shape[0]:
        return np.zeros((*cells.shape, rows.shape[1]), rows.dtype)
    out = rows[cells]
    if nothing.any():
        out[nothing] = 0
    return out


def _add_at(rows: Array, cells: Array, values: Array) -> None:
    """Add values (n, L, columns) to the rows that the cells name, each of them once."""
    real = cells >= 0
    if real.all():
        rows[cells] += values
    else:
        rows[cells[real]] += values[real]
