"""What every attention does at a step, in a loop over time, in decoding, or alone.

Queries meet *keys*, rows (R, A), and the weights sum up a *memory*, rows (R, C). Which rows are a query's is
in *cells* (n, L): indices of rows, -1 where there is none. A source's memory has its real cells one after
another; the memory of a decoder's own states is the array that its loop writes them into.

    score      parameters                            query      key             score of a cell
    additive   Wq (H, A), Wm (C, A), b (A,), v (A,)  h Wq       s Wm + b        v . tanh(query + key)
    dot        none, C = H                           h          s               query . key
    bilinear   W (H, C)                              h          s W^T           query . key

A *selector* is (w (H,), b (1,)): beta = sigmoid(h . w + b) scales the context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers.checks import as_mask, gradient_arrays
from rnnlab.ops import ops_for
from rnnlab.types import Array

Selector = tuple[Array, Array]

SCORES = {
    "additive": {"Wq": "H A", "Wm": "C A", "b": "A", "v": "A"},
    "dot": {},
    "bilinear": {"W": "H C"},
}
"""The axes of each score's parameters: H of a query, C of a memory, A of attention."""


class Room(NamedTuple):
    """What attention writes for each row: packed arrays of all steps, or the rows of one."""

    query: Array | None  # (M, A), h Wq, of additive scores only
    weights: Array  # (M, L)
    attended: Array  # (M, C), the memory's weighted sum
    beta: Array | None  # (M, 1), of the selector, if there is one
    context: Array  # (M, C), attended, scaled by beta if there is one

    @classmethod
    def of(cls, rows: int, cells: int, keys: Array, memory: Array, *, additive: bool, selector: bool) -> Room:
        """Room for so many queries with so many cells each; the weights are zero."""
        ops, dtype = ops_for(memory), memory.dtype
        attended = ops.empty((rows, memory.shape[1]), dtype)
        return cls(
            query=ops.empty((rows, keys.shape[1]), dtype) if additive else None,
            weights=ops.zeros((rows, cells), dtype),
            attended=attended,
            beta=ops.empty((rows, 1), dtype) if selector else None,
            context=ops.empty(attended.shape, dtype) if selector else attended,
        )

    def at(self, rows: slice, cells: int) -> Room:
        """The part of some rows, of their first cells."""
        query, weights, attended, beta, context = self
        return Room(
            None if query is None else query[rows],
            weights[rows, :cells],
            attended[rows],
            None if beta is None else beta[rows],
            context[rows],
        )


class AttentionCache(NamedTuple):
    """What the backward of an attention needs."""

    score: str
    params: dict[str, Array]
    selector: Selector | None
    keys: Array  # (R, A)
    memory: Array  # (R, C)
    cells: Array  # (N, L) of rows of keys and memory, -1: none
    room: Room
    grows: bool = False  # whether the query of step t, from 0, sees the first t cells only

    def cells_at(self, rows: slice, t: int) -> Array:
        """The cells of the queries of step t, which are these rows of the room."""
        return self.cells[: rows.stop - rows.start, : t if self.grows else None]

    def at(self, rows: slice, t: int) -> tuple[Array, Array, Array, Room]:
        """Keys, memory, cells and room of the queries of step t, which are these rows of the room."""
        cells = self.cells_at(rows, t)
        return self.keys, self.memory, cells, self.room.at(rows, cells.shape[1])


class Attention:
    """The forward of a step; ``often`` lays the weights out for many of them, on the library of ``like``."""

    def __init__(
        self, score: str, params: Mapping[str, Array], selector: Selector | None, *, often: bool, like: Array
    ) -> None:
        self._ops = ops_for(like)
        self._selector = selector
        self._v = params["v"] if score == "additive" else None
        if self._v is not None:
            self._to_query = self._ops.prepacked(params["Wq"]) if often else params["Wq"]

    def attend(self, h: Array, keys: Array, memory: Array, cells: Array, room: Room) -> None:
        """Write weights and context of the queries h (n, H) into their room."""
        ops = self._ops
        if self._v is None:
            ops.dot_attention_forward(h, keys, memory, cells, room.weights, room.attended)
        else:
            ops.matmul_into(h, self._to_query, room.query)
            ops.additive_attention_forward(
                room.query, keys, self._v, memory, cells, room.weights, room.attended
            )
        if self._selector is not None:
            room.beta[...] = selector_gate(h, *self._selector)  # type: ignore[index]
            room.context[...] = room.attended
            room.context[...] *= room.beta


class AttentionBackward:
    """The backward of one step after another; what is summed over them is added up in its attributes.

    Attributes
    ----------
    dkeys : (R, A)
    dquery : (M, A), of additive scores
    dbeta : (M, 1), of the selector, before its sigmoid
    """

    def __init__(self, cache: AttentionCache, *, often: bool) -> None:
        ops = self._ops = ops_for(cache.memory)
        self._cache = cache
        room, dtype = cache.room, cache.memory.dtype
        self.dkeys = ops.zeros(cache.keys.shape, dtype)
        if room.query is not None:
            Wq = cache.params["Wq"]
            self._from_query = ops.prepacked(Wq.T) if often else Wq.T
            self.dquery = ops.zeros(room.query.shape, dtype)
            self._dv = ops.zeros((cache.cells.shape[0], room.query.shape[1]), dtype)
        if room.beta is not None:
            self.dbeta = ops.empty(room.beta.shape, dtype)

    def attend(self, rows: slice, cells: Array, dcontext: Array, dscores: Array, h: Array, dh: Array) -> None:
        """Of the queries h (n, H), which are some rows of the room: add to dh (n, H) and dkeys.

        ``dcontext`` (n, C) comes in as the gradient of the context and leaves as that of the weighted sum;
        ``dscores`` (n, L) comes in as the weights' own gradient and leaves as that of the scores.
        """
        ops, cache = self._ops, self._cache
        room = cache.room.at(rows, cells.shape[1])
        if cache.selector is not None:
            dbeta, beta = self.dbeta[rows], room.beta
            dbeta[...] = selector_gradient(dcontext, room.attended, beta)
            dh += dbeta * cache.selector[0]
            dcontext *= beta
        if room.query is None:
            ops.dot_attention_backward(
                dcontext, h, cache.keys, cache.memory, cells, room.weights, dscores, dh, self.dkeys
            )
            return
        dquery = self.dquery[rows]
        ops.additive_attention_backward(
            dcontext, room.query, cache.keys, cache.params["v"], cache.memory, cells, room.weights, dscores,
            dquery, self.dkeys, self._dv[: h.shape[0]],
        )  # fmt: skip
        ops.matmul_add(dquery, self._from_query, dh)

    def add_query_gradient(self, rows: slice, h: Array, grads: dict[str, Array]) -> None:
        """Add the gradient of Wq, for the queries h of some rows of the room."""
        if self._cache.room.query is not None:
            self._ops.matmul_add(h.T, self.dquery[rows], grads["Wq"])

    def add_selector_gradients(self, rows: slice, h: Array, dw: Array, db: Array) -> None:
        """Add the selector's gradients, for the queries h of some rows of the room."""
        dw += self._ops.matmul(h.T, self.dbeta[rows])[:, 0]
        db += self.dbeta[rows].sum(axis=0)

    def add_score_gradient(self, grads: dict[str, Array]) -> None:
        """Add the gradient of v, once no step is left."""
        if self._cache.room.query is not None:
            grads["v"] += self._dv.sum(axis=0)


class Keys:
    """The projection of a memory's rows to keys, and its backward."""

    def __init__(self, score: str, params: Mapping[str, Array], *, often: bool, like: Array) -> None:
        self._ops, self._score = ops_for(like), score
        self._pack = self._ops.prepacked if often else _as_it_is
        self._b = params.get("b")
        self._w = {"additive": params.get("Wm"), "dot": None, "bilinear": params.get("W")}[score]
        if score == "bilinear":
            self._w = self._w.T  # type: ignore[union-attr]
        self._forward = None if self._w is None else self._pack(self._w)
        self._back: Any = None  # until it is needed

    def of(self, memory: Array) -> Array:
        """Memory (R, C) to keys (R, A); the memory itself for dot scores."""
        if self._w is None:
            return memory
        keys = self.room(memory.shape[0], memory)
        self.write(memory, keys)
        return keys

    def room(self, rows: int, memory: Array) -> Array:
        """Room for the keys of so many rows; the memory itself for dot scores."""
        return memory if self._w is None else self._ops.empty((rows, self._w.shape[1]), memory.dtype)

    def write(self, memory: Array, keys: Array) -> None:
        """Write the keys of some rows."""
        if self._b is not None:
            self._ops.affine_into(memory, self._forward, self._b, keys)
        elif self._w is not None:
            self._ops.matmul_into(memory, self._forward, keys)

    def backward(self, dkeys: Array, dmemory: Array) -> None:
        """Add to dmemory (R, C) what comes through the keys."""
        if self._w is None:
            dmemory += dkeys
            return
        if self._back is None:
            self._back = self._pack(self._w.T)
        self._ops.matmul_add(dkeys, self._back, dmemory)

    def add_gradients(self, memory: Array, dkeys: Array, grads: dict[str, Array]) -> None:
        """Add the gradients of Wm and b, or of W."""
        if self._score == "additive":
            self._ops.matmul_add(memory.T, dkeys, grads["Wm"])
            self._ops.add_column_sums(dkeys, grads["b"])
        elif self._score == "bilinear":
            self._ops.matmul_add(dkeys.T, memory, grads["W"])


class SourceRows(NamedTuple):
    """The real cells of memories (N, L, C), one after another."""

    rows: Array  # (R, C)
    cells: Array  # (N, L) where each of them is, -1: masked
    real: Array | None  # (R,) which of the N L cells they are, None if all

    @classmethod
    def of(cls, function: str, memory: Array, mask: Array | None) -> SourceRows:
        """Leave out what a mask (N, L), true for real cells, masks.

        Of a mask on a device, of integers, the masked cells stay among the rows, where nobody reads them.

        Raises
        ------
        ValueError
            If the mask has another shape, or holds something else than 0 and 1.
        """
        N, L, C = memory.shape
        ops, rows = ops_for(memory), memory.reshape(N * L, C)
        on_device = not isinstance(memory, np.ndarray) and type(mask) is type(memory)
        if mask is not None and on_device:  # its values are not read, which would wait for the device
            if mask.shape != (N, L):
                raise ValueError(
                    f"{function}: memory_mask has shape {mask.shape}, expected (N, L) = {(N, L)}"
                )
            if mask.dtype.kind not in "biu":
                raise TypeError(
                    f"{function}: memory_mask has dtype {mask.dtype}, expected booleans or integers on a device"
                )
            places = ops.asarray(np.arange(1, N * L + 1).reshape(N, L))
            return cls(rows, ops.asarray(places * mask - 1, np.int64), None)
        if mask is not None:
            given = as_mask(function, "memory_mask", mask, (N, L), "N, L")
            if not given.all():
                real = np.flatnonzero(given)
                cells = np.full(N * L, -1)
                cells[real] = np.arange(real.size)
                packed = ops.empty((real.size, C), memory.dtype)
                ops.take(rows, ops.asarray(real), packed)
                return cls(packed, ops.asarray(cells.reshape(N, L)), ops.asarray(real))
        return cls(rows, ops.asarray(np.arange(N * L).reshape(N, L)), None)


def score_axes(function: str, score: str) -> dict[str, str]:
    """The axes of a score's parameters, in the letters of :func:`check_shapes`.

    Raises
    ------
    ValueError
        If there is no such score.
    """
    if score not in SCORES:
        raise ValueError(f"{function}: score is {score!r}, expected one of {', '.join(SCORES)}")
    return SCORES[score]


def select_params(function: str, params: Mapping[str, Array], names: Mapping[str, Any]) -> dict[str, Array]:
    """The parameters of these names.

    Raises
    ------
    ValueError
        If one is missing.
    """
    missing = [name for name in names if name not in params]
    if missing:
        raise ValueError(f"{function}: params has no {', '.join(missing)}, expected {', '.join(names)}")
    return {name: params[name] for name in names}


def gradients_of(
    function: str, params: Mapping[str, Array], like: Array, into: Mapping[str, Array] | None
) -> dict[str, Array]:
    """Arrays to add these parameters' gradients into: those of ``into`` once they are checked, or zeros.

    Raises
    ------
    ValueError
        If ``into`` lacks one, or it has another shape or dtype.
    """
    shapes = {name: array.shape for name, array in params.items()}
    given = None if into is None else list(select_params(f"{function}: into", into, params).values())
    return dict(zip(params, gradient_arrays(function, shapes, like, given), strict=True))


def selector_gate(h: Array, w: Array, b: Array) -> Array:
    """Beta = sigmoid(h . w + b), (n, H) (H,) (1,) -> (n, 1)."""
    ops = ops_for(h)
    return ops.sigmoid(ops.matmul(h, w[:, None]) + b)


def selector_gradient(dcontext: Array, attended: Array, beta: Array) -> Array:
    """The gradient before the selector's sigmoid, (n, 1)."""
    return (dcontext * attended).sum(axis=1, keepdims=True) * beta * (1 - beta)


def _as_it_is(w: Array) -> Array:
    return w
