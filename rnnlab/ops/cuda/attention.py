"""The primitives of attention on CuPy; :mod:`rnnlab.ops.numpy.attention` says what each does."""

from __future__ import annotations

from rnnlab.ops.cuda.launch import WARP, by_rows, check_whole, each, stride
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
    """Weights softmax(v . tanh(query + key)), and context."""
    _attention(
        "additive_attention_forward", query, cells, memory, (query, keys, v, memory, cells, weights, context),
        strided=(cells, weights),
    )  # fmt: skip


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
    """Add to dquery, dkeys and dv; dscores leaves as the gradient of the scores."""
    _attention(
        "additive_attention_backward", query, cells, memory,
        (dcontext, query, keys, v, memory, cells, weights, dscores, dquery, dkeys, dv),
        strided=(cells, weights, dscores),
    )  # fmt: skip


def dot_attention_forward(
    query: Array, keys: Array, memory: Array, cells: Array, weights: Array, context: Array
) -> None:
    """Weights softmax(query . key), and context."""
    _attention(
        "dot_attention_forward", query, cells, memory, (query, keys, memory, cells, weights, context),
        strided=(cells, weights),
    )  # fmt: skip


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
    """Add to dquery and dkeys; dscores leaves as the gradient of the scores."""
    _attention(
        "dot_attention_backward", query, cells, memory,
        (dcontext, query, keys, memory, cells, weights, dscores, dquery, dkeys),
        strided=(cells, weights, dscores),
    )  # fmt: skip


def attention_memory_gradient(dcontext: Array, weights: Array, cells: Array, dmemory: Array) -> None:
    """Add what comes through the weighted sum."""
    check_whole(dcontext, dmemory)
    (n, L), C = cells.shape, dcontext.shape[1]
    strides = stride(weights), stride(cells)
    each("attention_memory_gradient", n * C, dcontext, dcontext, weights, cells, dmemory, n, L, C, *strides)


def _attention(
    name: str,
    query: Array,
    cells: Array,
    memory: Array,
    arrays: tuple[Array, ...],
    strided: tuple[Array, ...],
) -> None:
    """Launch with a block for each query; the strides of the arrays that need not be contiguous go last."""
    check_whole(*(array for array in arrays if not any(array is other for other in strided)))
    (n, A), L, C = query.shape, cells.shape[1], memory.shape[1]
    columns = max(A, C, L, 4 * WARP)  # four cells at a time at least
    by_rows(name, n, columns, query, *arrays, n, L, A, C, *map(stride, strided), room=L)
