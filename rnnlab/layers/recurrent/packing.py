"""What the four recurrent cells share: the rows of a batch that are alive at each step.

A sequence function works on *packed* arrays. The sequences are sorted by length, longest first, so that the
ones still alive at step t are the first n_t; the packed array of some input x (N, T, D) is (M, D), M = n_1 +
n_2 + ..., the alive rows of step 1, then those of step 2, and so on. Padding has no row, so it costs nothing:
not in the input's matrix product, not in the loop, not in the weight gradients. Without lengths, M = N T and
the packed array is x with time first.

States have one more block in front, the N initial states: a *states* array is (N + M, H), and the state
before each row of step t is the first n_t rows of the block before it. Past the end of a sequence its state
stands still.

Matrix products that need no loop over time, of the inputs and of the weights' gradients, are done for a
*chunk* of steps at a time: enough rows for the product to be fast, few enough to be in the cache still when
the loop gets there. Of a long batch, the gradients of the pre-activations never exist for all steps at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rnnlab.layers.checks import as_mask
from rnnlab.ops import ops_for
from rnnlab.types import Array

# A chunk has so many rows or more, for the sums of the weights' gradients, and about so many pre-activations,
# 4 MB in float32 (times CHUNK of the primitives); the last one has what is left.
_CHUNK_ROWS = 512
_CHUNK_NUMBERS = 1 << 20


class Chunk(NamedTuple):
    """Some consecutive steps."""

    rows: slice  # of a packed array
    steps: tuple[tuple[slice, slice, slice], ...]  # of each: its rows, the states before it and after it

    def here(self, rows: slice) -> slice:
        """Where rows of a packed array lie in the chunk's share of it."""
        return slice(rows.start - self.rows.start, rows.stop - self.rows.start)

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.rows.stop - self.rows.start


class Packing(NamedTuple):
    """Where each step of each sequence lies in packed arrays and in states."""

    shape: tuple[int, int]  # (N, T) of the unpacked arrays
    offsets: tuple[int, ...]  # rows offsets[t] : offsets[t + 1] of a packed array are step t
    order: Array  # (N,) the sequences, longest first
    source: Array  # (M,) the row of x.reshape(N * T, D) that each packed row comes from
    index: Array  # (N, T) the row of states that holds the state after step t of sequence n
    final: Array  # (N,) the row of states that holds the final state of sequence n
    frozen: Array | None  # (F,) the rows of x.reshape(N * T, D) past an end, or None if none ends early
    frozen_order: Array | None  # (F,) the place of each one's sequence in the order of length

    @classmethod
    def of(
        cls,
        function: str,
        shape: tuple[int, int],
        *,
        lengths: Array | None = None,
        mask: Array | None = None,
        like: Array,
    ) -> Packing:
        """Plan a batch of N sequences of at most T steps.

        Parameters
        ----------
        function : str
            Named in the errors.
        shape : (N, T)
        lengths : (N,) integers in [0, T], optional
            The number of real steps of each sequence; all T if neither this nor ``mask`` is given.
        mask : (N, T), optional
            The same as a mask: true (or 1) for the real steps, which come first.
        like : array
            An array of the library and the dtype to work in.

        Raises
        ------
        ValueError
            If both are given, a shape or a length is wrong, or the mask has a hole.
        """
        N, T = shape
        real = real_lengths(function, N, T, lengths, mask)
        order = np.argsort(-real, kind="stable")
        rank = np.empty(N, np.intp)
        rank[order] = np.arange(N)
        steps = np.arange(int(real.max(initial=0)))
        alive = (real[:, None] > steps).sum(axis=0)  # (longest,) n_t
        offsets = np.concatenate([[0], np.cumsum(alive)])
        source = np.concatenate([order[:n] * T + t for t, n in enumerate(alive)] or [order[:0]])
        last = np.minimum(np.arange(T), real[:, None] - 1)  # (N, T) whose state stands at t; -1: none's
        starts = np.concatenate([[0], N + offsets])  # the block of initial states, then one a step
        ends = last[:, -1] if T else np.full(N, -1)
        ops = ops_for(like)
        frozen = np.flatnonzero(np.arange(T) >= real[:, None])
        early = frozen.size > 0
        return cls(
            shape=(N, T),
            offsets=tuple(offsets.tolist()),
            order=ops.asarray(order),
            source=ops.asarray(source),
            index=ops.asarray(starts[last + 1] + rank[:, None]),
            final=ops.asarray(starts[ends + 1] + rank),
            frozen=ops.asarray(frozen) if early else None,
            frozen_order=ops.asarray(rank[frozen // T]) if early else None,
        )

    def chunks(self, columns: int) -> list[Chunk]:
        """All steps, in chunks for pre-activations of so many columns."""
        most = max(_CHUNK_ROWS, ops_for(self.order).CHUNK * _CHUNK_NUMBERS // max(columns, 1))
        chunks: list[Chunk] = []
        start = 0
        for t in range(1, len(self.offsets)):
            if self.offsets[t] - self.offsets[start] >= most or t == len(self.offsets) - 1:
                rows = slice(self.offsets[start], self.offsets[t])
                chunks.append(Chunk(rows, tuple(map(self._step, range(start, t)))))
                start = t
        return chunks

    def _step(self, t: int) -> tuple[slice, slice, slice]:
        N, start, stop = self.shape[0], self.offsets[t], self.offsets[t + 1]
        before = N + self.offsets[t - 1] if t else 0
        return slice(start, stop), slice(before, before + stop - start), slice(N + start, N + stop)

    def pack(self, x: Array, chunk: Chunk) -> Array:
        """The real rows of a chunk, of x (N T, D) -> (m, D)."""
        ops = ops_for(x)
        out = ops.empty((chunk.size, x.shape[1]), x.dtype)
        ops.take(x, self.source[chunk.rows], out)
        return out

    def unpack(self, rows: Array, chunk: Chunk, x: Array) -> None:
        """The inverse of :meth:`pack`: write rows (m, D) to their places in x (N T, D)."""
        ops_for(x).put(rows, self.source[chunk.rows], x)

    def unpacked(self, columns: int, like: Array) -> Array:
        """Room for :meth:`unpack`, zero where there is padding, (N T, D)."""
        make = ops_for(like).empty if self.frozen is None else ops_for(like).zeros
        return make((self.shape[0] * self.shape[1], columns), like.dtype)

    def states(self, first: Array) -> Array:
        """Room for all states, the initial ones (N, H) in place: (N + M, H)."""
        N = self.shape[0]
        ops = ops_for(first)
        states = ops.empty((N + self.offsets[-1], first.shape[1]), first.dtype)
        ops.take(first, self.order, states[:N])
        return states

    def zero_states(self, like: Array) -> Array:
        """An array for all states that begin at zero, of the units and the dtype of ``like`` (N, H)."""
        N = self.shape[0]
        states = ops_for(like).empty((N + self.offsets[-1], like.shape[1]), like.dtype)
        states[:N] = 0
        return states

    def before(self, states: Array, chunk: Chunk) -> Array:
        """The state before each packed row of a chunk, (N + M, H) -> (m, H)."""
        if self.frozen is None:
            return states[chunk.rows]
        out = ops_for(states).empty((chunk.size, states.shape[1]), states.dtype)
        for rows, before, _ in chunk.steps:
            out[chunk.here(rows)] = states[before]
        return out

    def after_each(self, states: Array) -> Array:
        """The state after every step, standing still past the ends, (N + M, H) -> (N, T, H)."""
        (N, T), ops = self.shape, ops_for(states)
        out = ops.empty((N * T, states.shape[1]), states.dtype)
        ops.take(states, self.index.reshape(-1), out)
        return out.reshape(N, T, states.shape[1])

    def unsort(self, rows: Array) -> Array:
        """Rows in the order of length back in the order of the batch, (N, H) -> (N, H)."""
        ops = ops_for(rows)
        out = ops.empty(rows.shape, rows.dtype)
        ops.put(rows, self.order, out)
        return out

    def incoming(
        self, function: str, H: int, dstates: Array | None, dfinal: Array | None, like: Array
    ) -> Array:
        """The gradient that reaches the last real state of each sequence, before the loop: (N, H), sorted.

        It comes from the states that stand still after it, ``dstates`` (N, T, H), and from the final state,
        ``dfinal`` (N, H); either may be None. Fresh memory, since the loop goes on to work in it.
        """
        (N, T), ops = self.shape, ops_for(like)
        for name, gradient, expected in (("dh", dstates, (N, T, H)), ("the final state's", dfinal, (N, H))):
            if gradient is not None and (gradient.shape != expected or gradient.dtype != like.dtype):
                raise ValueError(
                    f"{function}: {name} gradient has shape {gradient.shape} and dtype {gradient.dtype}, "
                    f"expected {expected} and {like.dtype}"
                )
        out = ops.zeros((N, H), like.dtype)
        if dfinal is not None:
            ops.take(dfinal, self.order, out)
        if dstates is not None and self.frozen is not None:
            standing = ops.empty((self.frozen.size, H), like.dtype)
            ops.take(as_rows(dstates), self.frozen, standing)
            ops.embedding_gradient(standing, self.frozen_order, out)  # adds rows to rows
        return out


def real_lengths(
    function: str, N: int, T: int, lengths: Array | None, mask: Array | None = None
) -> np.ndarray:
    """The real steps of N sequences of at most T, (N,): of lengths, of a mask (N, T), or all.

    Raises
    ------
    ValueError
        If both are given, a shape or a length is wrong, or the mask has a hole.
    """
    if lengths is not None and mask is not None:
        raise ValueError(f"{function}: both lengths and mask are given, expected one of them")
    if mask is not None:
        real = as_mask(function, "mask", mask, (N, T), "N, T")
        if (real[:, 1:] > real[:, :-1]).any():
            row = int(np.flatnonzero((real[:, 1:] > real[:, :-1]).any(axis=1))[0])
            raise ValueError(f"{function}: mask has a hole in row {row}, expected real steps, then padding")
        return real.sum(axis=1)
    if lengths is None:
        return np.full(N, T)
    counts = np.asarray(lengths)
    if counts.shape != (N,) or counts.dtype.kind not in "iu":
        raise ValueError(
            f"{function}: lengths has shape {counts.shape} and dtype {counts.dtype}, expected {N} integers"
        )
    if counts.size and (counts.min() < 0 or counts.max() > T):
        wrong = counts.max() if counts.max() > T else counts.min()
        raise ValueError(f"{function}: lengths holds {wrong}, expected numbers from 0 to T = {T}")
    return counts.astype(np.intp)


def as_rows(x: Array) -> Array:
    """x (N, T, D) with a row for each step of each sequence, (N T, D)."""
    N, T, D = x.shape
    return x.reshape(N * T, D)
