"""Attention of one query to several memories, each with its own parameters; all contexts enter the gates.

    z_j = additive attention of h to memory j,    a += [z_0, ..., z_{J-1}] Wz

The parameters of all J attentions are stacked in the order of the memories: Wz (D, G) and Wm (D, A) by rows,
Wq (H, J A) by columns, bm (J A,) and v (J A,) one after another. D is the sum over the memories of the size
of a vector. One matrix product computes all queries, and another adds all contexts to the gates. Each needs
only one product for its gradients, too. :mod:`rnnlab.layers.attention.query` has the equations of one
attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rnnlab.layers.attention.source_rows import SourceRows
from rnnlab.ops import ops_for, unchecked
from rnnlab.types import Array


class MemoriesCache(NamedTuple):
    """What the backward of one query needs."""

    memories: tuple[SourceRows, ...]  # rows (R, C) and slots (N, L) of each
    keys: tuple[Array, ...]  # (R, A) of each
    weights: tuple[Array, ...]  # (N, L) of each
    queries: Array  # (J, N, A)
    contexts: Array  # (N, D), side by side


def attend(
    h: Array,
    memories: Sequence[SourceRows],
    params: Mapping[str, Array],
    weights: Sequence[Array],
    gates: Array,
) -> MemoriesCache:
    """Attend from h (N, H) to each memory, and add the contexts' share to ``gates`` (N, G).

    Parameters
    ----------
    h : (N, H)
    memories : J SourceRows
    params : mapping of str to array
        Wq, Wm, bm, v and Wz.
    weights : J arrays (N, L)
        Written.
    gates : (N, G)
    """
    ops, Wm, N, J = unchecked(ops_for(h)), params["Wm"], len(h), len(memories)
    bm, v = (params[name].reshape(J, -1) for name in ("bm", "v"))
    A = v.shape[1]
    projected, queries = ops.empty((N, J * A), h.dtype), ops.empty((J, N, A), h.dtype)
    ops.matmul_into(h, params["Wq"], projected)
    queries[...] = projected.reshape(N, J, A).swapaxes(0, 1)
    all_keys, contexts = [], ops.empty((N, len(Wm)), h.dtype)
    for j, (memory, part) in enumerate(zip(memories, _parts(memories), strict=True)):
        rows = memory.rows
        keys, context = ops.empty((len(rows), A), h.dtype), ops.empty((N, rows.shape[1]), h.dtype)
        ops.affine_into(rows, Wm[part], bm[j], keys)
        ops.additive_attention_forward(queries[j], keys, v[j], rows, memory.slots, weights[j], context)
        contexts[:, part] = context
        all_keys.append(keys)
    ops.matmul_add(contexts, params["Wz"], gates)
    return MemoriesCache(tuple(memories), tuple(all_keys), tuple(weights), queries, contexts)


def attend_backward(
    cache: MemoriesCache,
    h: Array,
    da: Array,
    params: Mapping[str, Array],
    grads: Mapping[str, Array],
    dh: Array,
    drows: Sequence[Array | None],
) -> None:
    """Backward of :func:`attend`; all gradients are added.

    Parameters
    ----------
    cache : MemoriesCache
    h : (N, H)
        The query.
    da : (N, G)
        Gradient of the gates before their activation.
    params, grads : mapping of str to array
    dh : (N, H)
    drows : sequence of array or None
        Gradients of the rows (R, C) of each memory; None for one that needs no gradient.
    """
    memories, all_keys, weights, queries, contexts = cache
    ops, (J, N, A), Wm = ops_for(da), queries.shape, params["Wm"]
    of_step = unchecked(ops)  # for everything except the gradients of the parameters
    dcontexts, dprojected = ops.empty(contexts.shape, da.dtype), ops.empty((N, J * A), da.dtype)
    of_step.matmul_into(da, params["Wz"].T, dcontexts)
    ops.matmul_add(contexts.T, da, grads["Wz"])
    dqueries, dv = (ops.zeros(queries.shape, da.dtype) for _ in range(2))
    v, dbm = params["v"].reshape(J, A), grads["bm"].reshape(J, A)
    for j, (memory, part) in enumerate(zip(memories, _parts(memories), strict=True)):
        rows, slots, drow = memory.rows, memory.slots, drows[j]
        dcontext, dkeys = ops.empty((N, rows.shape[1]), da.dtype), ops.zeros(all_keys[j].shape, da.dtype)
        dcontext[...] = dcontexts[:, part]
        of_step.additive_attention_backward(
            dcontext, queries[j], all_keys[j], v[j], rows, slots, weights[j],
            ops.zeros(slots.shape, da.dtype), dqueries[j], dkeys, dv[j],
        )  # fmt: skip
        ops.add_affine_gradients(rows, dkeys, grads["Wm"][part], dbm[j])
        if drow is not None:
            of_step.matmul_add(dkeys, Wm[part].T, drow)
            of_step.attention_memory_gradient(dcontext, weights[j], slots, drow)
    grads["v"][...] += dv.sum(axis=1).ravel()
    dprojected.reshape(N, J, A)[...] = dqueries.swapaxes(0, 1)
    ops.matmul_add(h.T, dprojected, grads["Wq"])
    of_step.matmul_add(dprojected, params["Wq"].T, dh)


def _parts(memories: Sequence[SourceRows]) -> Iterator[slice]:
    """The rows of Wz and Wm that belong to each memory."""
    start = 0
    for memory in memories:
        part, start = slice(start, start + memory.rows.shape[1]), start + memory.rows.shape[1]
        yield part
