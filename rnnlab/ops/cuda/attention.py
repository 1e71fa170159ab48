"""Attention on CuPy, with a block for each query."""

from __future__ import annotations

from rnnlab.ops.cuda.checks import checked
from rnnlab.ops.cuda.launch import WARP, by_rows, check_contiguous, each, stride
from rnnlab.types import Array

_THREADS = 512  # maximum threads of a block; large, because there are few queries and so few blocks


@checked
def additive_attention_forward(
    query: Array, keys: Array, v: Array, memory: Array, slots: Array, weights: Array, context: Array
) -> None:
    _attention(
        "additive_attention_forward", query, slots, memory, (query, keys, v, memory, slots, weights, context),
        strided=(slots, weights),
    )  # fmt: skip


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
    _attention(
        "additive_attention_backward", query, slots, memory,
        (dcontext, query, keys, v, memory, slots, weights, dscores, dquery, dkeys, dv),
        strided=(slots, weights, dscores),
    )  # fmt: skip


@checked
def dot_attention_forward(
    query: Array, keys: Array, memory: Array, slots: Array, weights: Array, context: Array
) -> None:
    _attention(
        "dot_attention_forward", query, slots, memory, (query, keys, memory, slots, weights, context),
        strided=(slots, weights),
    )  # fmt: skip


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
    _attention(
        "dot_attention_backward", query, slots, memory,
        (dcontext, query, keys, memory, slots, weights, dscores, dquery, dkeys),
        strided=(slots, weights, dscores),
    )  # fmt: skip


@checked
def attention_memory_gradient(dcontext: Array, weights: Array, slots: Array, dmemory: Array) -> None:
    check_contiguous(dcontext, dmemory)
    (n, L), C = slots.shape, dcontext.shape[1]
    strides = stride(weights), stride(slots)
    each("attention_memory_gradient", n * C, dcontext, dcontext, weights, slots, dmemory, n, L, C, *strides)


def _attention(
    name: str,
    query: Array,
    slots: Array,
    memory: Array,
    arrays: tuple[Array, ...],
    strided: tuple[Array, ...],
) -> None:
    """Launch with a block for each query; the strides of ``strided`` arrays go last."""
    check_contiguous(*(array for array in arrays if not any(array is other for other in strided)))
    (n, A), L, C = query.shape, slots.shape[1], memory.shape[1]
    columns = max(A, C, L, 4 * WARP)  # at least four slots at a time
    strides = map(stride, strided)
    by_rows(name, n, columns, query, *arrays, n, L, A, C, *strides, workspace=L, most=_THREADS)
