"""Scores, weights and contexts of attention: the arithmetic of one step, forward and backward.

Queries are compared with *keys*, rows (R, A); a context is a weighted sum of a *memory*, rows (R, C). A is
the number of units of additive scores; for the others it is H, the size of a query.
``slots`` (n, L) lists the rows that each query may attend to, -1 for none. The memory of a source holds its
real rows without gaps. The memory of a decoder's own states is the array that the loop writes them into.

    score      parameters                            query      key             score of a slot
    additive   Wq (H, A), Wm (C, A), b (A,), v (A,)  h Wq       s Wm + b        v . tanh(query + key)
    dot        none, C = H                           h          s               query . key
    bilinear   W (H, C)                              h          s W^T           query . key

A *selector* (w (H,), b (1,)) scales the context: see :mod:`rnnlab.layers.attention.selector`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.errors import InputError
from rnnlab.layers.attention.selector import selector_gate, selector_gradient
from rnnlab.ops import ops_for, unchecked
from rnnlab.options import AttentionScore
from rnnlab.types import Array

Selector = tuple[Array, Array]

SCORES: dict[AttentionScore, dict[str, str]] = {
    "additive": {"Wq": "H A", "Wm": "C A", "b": "A", "v": "A"},
    "dot": {},
    "bilinear": {"W": "H C"},
}
"""The axes of each score's parameters: H of a query, C of a memory, A of attention."""


class Workspace(NamedTuple):
    """The arrays that attention writes, with a row for each query: all packed rows, or those of one step."""

    query: Array | None  # (M, A), h Wq, of additive scores only
    weights: Array  # (M, L)
    attended: Array  # (M, C), the memory's weighted sum
    beta: Array | None  # (M, 1), of the selector, if there is one
    context: Array  # (M, C), attended, scaled by beta if there is one

    @classmethod
    def of(
        cls, rows: int, slots: int, keys: Array, memory: Array, *, additive: bool, selector: bool
    ) -> Workspace:
        """Arrays for ``rows`` queries with this number of slots each; the weights are zero."""
        ops, dtype = ops_for(memory), memory.dtype
        attended = ops.empty((rows, memory.shape[1]), dtype)
        return cls(
            query=ops.empty((rows, keys.shape[1]), dtype) if additive else None,
            weights=ops.zeros((rows, slots), dtype),
            attended=attended,
            beta=ops.empty((rows, 1), dtype) if selector else None,
            context=ops.empty(attended.shape, dtype) if selector else attended,
        )

    def at(self, rows: slice, columns: slice) -> Workspace:
        """The arrays of some rows, with some of their slots."""
        query, weights, attended, beta, context = self
        return Workspace(
            None if query is None else query[rows],
            weights[rows, columns],
            attended[rows],
            None if beta is None else beta[rows],
            context[rows],
        )


class AttentionCache(NamedTuple):
    """What the backward of an attention needs."""

    score: AttentionScore
    params: dict[str, Array]
    selector: Selector | None
    keys: Array  # (R, A)
    memory: Array  # (R, C)
    slots: Array  # (N, L) rows of keys and memory, -1: none
    workspace: Workspace
    grows: bool = False  # whether the slots are the states after each step, of which later steps read some
    delay: int | None = None  # with ``grows``: read one state, this many steps back, instead of all

    def columns(self, t: int) -> slice:
        """The slots that the queries of step t, from 0, may read."""
        return past_columns(t, self.delay) if self.grows else slice(None)

    def slots_at(self, rows: slice, t: int) -> Array:
        """The slots of the queries of step t, which have these rows in the workspace."""
        return self.slots[: rows.stop - rows.start, self.columns(t)]

    def at(self, rows: slice, t: int) -> tuple[Array, Array, Array, Workspace]:
        """Keys, memory, slots and workspace of the queries of step t, which have these rows."""
        return self.keys, self.memory, self.slots_at(rows, t), self.workspace.at(rows, self.columns(t))


def past_columns(t: int, delay: int | None) -> slice:
    """Which of the t states before step t (from 0) the step reads: all, or that ``delay`` steps back, if any.

    The last of the t states is the one that the step starts from, one step back.
    """
    return slice(t) if delay is None else slice(max(t - delay, 0), max(t - delay + 1, 0))


class Attention:
    """The forward of a step, in the library of ``like``; ``reused`` prepacks the weights for many steps."""

    def __init__(
        self,
        score: AttentionScore,
        params: Mapping[str, Array],
        selector: Selector | None,
        *,
        reused: bool,
        like: Array,
    ) -> None:
        self._ops = unchecked(ops_for(like))
        self._selector = selector
        self._v = params["v"] if score == "additive" else None
        if self._v is not None:
            self._to_query = self._ops.prepacked(params["Wq"]) if reused else params["Wq"]

    def attend(self, h: Array, keys: Array, memory: Array, slots: Array, workspace: Workspace) -> None:
        """Write weights and contexts of the queries h (n, H) into the workspace."""
        ops = self._ops
        if self._v is None:
            ops.dot_attention_forward(h, keys, memory, slots, workspace.weights, workspace.attended)
        else:
            ops.matmul_into(h, self._to_query, workspace.query)
            ops.additive_attention_forward(
                workspace.query, keys, self._v, memory, slots, workspace.weights, workspace.attended
            )
        if self._selector is not None:
            workspace.beta[...] = selector_gate(h, *self._selector)  # type: ignore[index]
            workspace.context[...] = workspace.attended
            workspace.context[...] *= workspace.beta


class AttentionBackward:
    """The backward of all steps, one by one; the attributes collect the gradients of all steps.

    Attributes
    ----------
    dkeys : (R, A)
    dquery : (M, A), of additive scores
    dbeta : (M, 1), of the selector, before its sigmoid
    """

    def __init__(self, cache: AttentionCache, *, reused: bool) -> None:
        ops = self._ops = unchecked(ops_for(cache.memory))
        self._cache = cache
        workspace, dtype = cache.workspace, cache.memory.dtype
        self.dkeys = ops.zeros(cache.keys.shape, dtype)
        if workspace.query is not None:
            Wq = cache.params["Wq"]
            self._from_query = ops.prepacked(Wq.T) if reused else Wq.T
            self.dquery = ops.zeros(workspace.query.shape, dtype)
            self._dv = ops.zeros((cache.slots.shape[0], workspace.query.shape[1]), dtype)
        if workspace.beta is not None:
            self.dbeta = ops.empty(workspace.beta.shape, dtype)

    def attend(
        self, rows: slice, columns: slice, slots: Array, dcontext: Array, dscores: Array, h: Array, dh: Array
    ) -> None:
        """Add to dh (n, H) and dkeys, for the queries h (n, H), which are some rows of the workspace.

        ``slots`` (n, L) are theirs, in these columns of the workspace's weights. Two arguments are changed
        in place. ``dcontext`` (n, C), the gradient of the context, becomes the gradient of the weighted sum.
        ``dscores`` (n, L), the gradient of the weights, becomes the gradient of the scores.
        """
        ops, cache = self._ops, self._cache
        workspace = cache.workspace.at(rows, columns)
        if cache.selector is not None:
            dbeta, beta = self.dbeta[rows], workspace.beta
            dbeta[...] = selector_gradient(dcontext, workspace.attended, beta)
            dh += dbeta * cache.selector[0]
            dcontext *= beta
        if workspace.query is None:
            ops.dot_attention_backward(
                dcontext, h, cache.keys, cache.memory, slots, workspace.weights, dscores, dh, self.dkeys
            )
            return
        dquery = self.dquery[rows]
        ops.additive_attention_backward(
            dcontext, workspace.query, cache.keys, cache.params["v"], cache.memory, slots, workspace.weights,
            dscores, dquery, self.dkeys, self._dv[: h.shape[0]],
        )  # fmt: skip
        ops.matmul_add(dquery, self._from_query, dh)

    def add_query_gradient(self, rows: slice, h: Array, grads: dict[str, Array]) -> None:
        """Add the gradient of Wq, for the queries h of some rows of the workspace."""
        if self._cache.workspace.query is not None:
            ops_for(h).matmul_add(h.T, self.dquery[rows], grads["Wq"])

    def add_selector_gradients(self, rows: slice, h: Array, dw: Array, db: Array) -> None:
        """Add the selector's gradients, for the queries h of some rows of the workspace."""
        dw += self._ops.matmul(h.T, self.dbeta[rows])[:, 0]
        db += self.dbeta[rows].sum(axis=0)

    def add_score_gradient(self, grads: dict[str, Array]) -> None:
        """Add the gradient of v, after the last step."""
        if self._cache.workspace.query is not None:
            grads["v"] += self._dv.sum(axis=0)


class Keys:
    """The projection of a memory's rows to keys, and its backward."""

    def __init__(
        self, score: AttentionScore, params: Mapping[str, Array], *, reused: bool, like: Array
    ) -> None:
        self._ops, self._score = unchecked(ops_for(like)), score
        self._pack = self._ops.prepacked if reused else _unchanged
        self._b = params.get("b")
        self._w = {"additive": params.get("Wm"), "dot": None, "bilinear": params.get("W")}[score]
        if score == "bilinear":
            self._w = self._w.T  # type: ignore[union-attr]
        self._forward = None if self._w is None else self._pack(self._w)
        self._back: Any = None  # made when first needed

    def of(self, memory: Array) -> Array:
        """Memory (R, C) to keys (R, A); the memory itself for dot scores."""
        if self._w is None:
            return memory
        keys = self.workspace(memory.shape[0], memory)
        self.write(memory, keys)
        return keys

    def workspace(self, rows: int, memory: Array) -> Array:
        """An array for the keys of ``rows`` rows; the memory itself for dot scores."""
        return memory if self._w is None else self._ops.empty((rows, self._w.shape[1]), memory.dtype)

    def write(self, memory: Array, keys: Array) -> None:
        """Write the keys of some rows."""
        if self._b is not None:
            self._ops.affine_into(memory, self._forward, self._b, keys)
        elif self._w is not None:
            self._ops.matmul_into(memory, self._forward, keys)

    def backward(self, dkeys: Array, dmemory: Array) -> None:
        """Add to dmemory (R, C) the gradient through the keys."""
        if self._w is None:
            dmemory += dkeys
            return
        if self._back is None:
            self._back = self._pack(self._w.T)
        self._ops.matmul_add(dkeys, self._back, dmemory)

    def add_gradients(self, memory: Array, dkeys: Array, grads: dict[str, Array]) -> None:
        """Add the gradients of Wm and b, or of W."""
        ops = ops_for(memory)
        if self._score == "additive":
            ops.add_affine_gradients(memory, dkeys, grads["Wm"], grads["b"])
        elif self._score == "bilinear":
            ops.matmul_add(dkeys.T, memory, grads["W"])


def score_axes(function: str, score: AttentionScore) -> dict[str, str]:
    """The axes of a score's parameters, as :func:`~rnnlab.layers.checks.check_shapes` reads them.

    Raises
    ------
    ValueError
        If there is no such score.
    """
    if score not in SCORES:
        raise InputError(f"{function}: score is {score!r}, expected one of {', '.join(SCORES)}")
    return SCORES[score]


def _unchanged(w: Array) -> Array:
    return w
