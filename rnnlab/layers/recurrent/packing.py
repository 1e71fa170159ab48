"""Packed sequences: the real rows of a batch with sequences of different lengths, step by step.

All recurrent layers work on *packed* arrays. The sequences are sorted by length, longest first, so that the
sequences that have a step t are the first n_t. The packed array of an input x (N, T, D) is (M, D) with
M = n_1 + n_2 + ...: the n_1 rows of step 1, then the n_2 rows of step 2, and so on. Padding has no row, so it
takes no work in the input's matrix product, in the loop and in the weight gradients. Without lengths, M = N T
and the packed array is x with time first.

An array of *states* (N + M, H) begins with a block of the N initial states. The states before step t are the
first n_t rows of the preceding block. Past the end of a sequence its state is carried through unchanged.

Matrix products outside the recurrence, of the inputs and of the weight gradients, are computed for a *chunk*
of steps at a time. A chunk has enough rows for a fast product, and few enough to stay in the processor's
cache until the loop reads them. The gradients of the pre-activations exist for one chunk at a time.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rnnlab.errors import InputError
from rnnlab.layers.checks import as_lengths, as_mask
from rnnlab.ops import Primitives, ops_for
from rnnlab.ops.steps import Steps
from rnnlab.types import Array

# The size of a chunk. The last chunk has the remaining rows.
_CHUNK_ROWS = 512  # at least: products of fewer rows are slow
_CHUNK_NUMBERS = 1 << 20  # pre-activations: 4 MB in float32. A GPU has its CHUNK times as many.


class Chunk(NamedTuple):
    """Consecutive steps."""

    rows: slice  # of a packed array
    steps: Steps

    def here(self, rows: slice) -> slice:
        """Rows of a packed array as rows of this chunk's part of it."""
        return slice(rows.start - self.rows.start, rows.stop - self.rows.start)

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.rows.stop - self.rows.start


class Packing(NamedTuple):
    """The rows of each step of each sequence in packed arrays and in states."""

    shape: tuple[int, int]  # (N, T) of the unpacked arrays
    offsets: tuple[int, ...]  # rows offsets[t] : offsets[t + 1] of a packed array are step t
    steps: Steps
    order: Array  # (N,) the sequences, longest first
    source: Array  # (M,) the row of x.reshape(N * T, D) of each packed row
    after: Array  # (N, T) the row of the state after step t of sequence n in states
    final: Array  # (N,) the row of the final state of sequence n in states
    # None if there is no padding:
    padding: Array | None = None  # (F,) the padding rows of x.reshape(N * T, D)
    padding_rank: Array | None = None  # (F,) the rank by length of each padding row's sequence
    before: Array | None = None  # (M,) the row of the state before each packed row in states

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
        """The packing of N sequences of at most T steps.

        Parameters
        ----------
        function : str
            Name at the beginning of errors.
        shape : (N, T)
        lengths : (N,) integers in [0, T], optional
            Number of real steps of each sequence, all T if neither this nor ``mask`` is given.
        mask : (N, T), optional
            Instead of lengths: true (or 1) for the real steps, which come first.
        like : array
            An array of the library and dtype of the batch.

        Raises
        ------
        ValueError
            If both are given, a shape or a length does not fit, or real steps of the mask follow padding.
        """
        N, T = shape
        if lengths is None and mask is None:
            plan = _plan_of_whole_sequences(N, T)
        else:
            plan = _plan(real_lengths(function, N, T, lengths, mask), T)
        return cls((N, T), plan.offsets, plan.steps, **_copied_at_once(ops_for(like), plan.indices))

    def chunks(self, columns: int) -> list[Chunk]:
        """All steps in chunks, for pre-activations (M, columns)."""
        least = max(_CHUNK_ROWS, ops_for(self.order).CHUNK * _CHUNK_NUMBERS // max(columns, 1))
        chunks: list[Chunk] = []
        start, last = 0, len(self.steps)
        while start < last:
            stop = min(bisect_left(self.offsets, self.offsets[start] + least), last)
            chunks.append(Chunk(slice(self.offsets[start], self.offsets[stop]), self.steps[start:stop]))
            start = stop
        return chunks

    def pack(self, x: Array, chunk: Chunk) -> Array:
        """The real rows of x in a chunk: (N T, D) to (m, D)."""
        ops = ops_for(x)
        out = ops.empty((chunk.size, x.shape[1]), x.dtype)
        ops.take(x, self.source[chunk.rows], out)
        return out

    def unpack(self, rows: Array, chunk: Chunk, x: Array) -> None:
        """The inverse of :meth:`pack`: write rows (m, D) into x (N T, D)."""
        ops_for(x).put(rows, self.source[chunk.rows], x)

    def unpacked(self, columns: int, like: Array) -> Array:
        """An array (N T, D) for :meth:`unpack` to write into, zero in padding rows."""
        make = ops_for(like).empty if self.padding is None else ops_for(like).zeros
        return make((self.shape[0] * self.shape[1], columns), like.dtype)

    def gather(self, x: Array) -> Array:
        """All real rows of x: (N, T, D) to (M, D)."""
        ops = ops_for(x)
        out = ops.empty((self.offsets[-1], x.shape[2]), x.dtype)
        ops.take(as_rows(x), self.source, out)
        return out

    def spread(self, rows: Array) -> Array:
        """The inverse of :meth:`gather`, zero in padding: (M, D) to (N, T, D)."""
        out = self.unpacked(rows.shape[1], rows)
        ops_for(rows).put(rows, self.source, out)
        return out.reshape(*self.shape, rows.shape[1])

    def states(self, first: Array) -> Array:
        """An array (N + M, H) for all states, with the initial states (N, H) filled in."""
        N = self.shape[0]
        ops = ops_for(first)
        states = ops.empty((N + self.offsets[-1], first.shape[1]), first.dtype)
        ops.take(first, self.order, states[:N])
        return states

    def zero_states(self, like: Array) -> Array:
        """An array (N + M, H) for all states, with initial states of zeros, for ``like`` (N, H)."""
        N = self.shape[0]
        states = ops_for(like).empty((N + self.offsets[-1], like.shape[1]), like.dtype)
        states[:N] = 0
        return states

    def before_each(self, states: Array, chunk: Chunk) -> Array:
        """The state before each packed row of a chunk: (N + M, H) to (m, H)."""
        if self.before is None:
            return states[chunk.rows]
        ops = ops_for(states)
        out = ops.empty((chunk.size, states.shape[1]), states.dtype)
        ops.take(states, self.before[chunk.rows], out)
        return out

    def after_each(self, states: Array) -> Array:
        """The state after every step, unchanged in padding: (N + M, H) to (N, T, H)."""
        (N, T), ops = self.shape, ops_for(states)
        out = ops.empty((N * T, states.shape[1]), states.dtype)
        ops.take(states, self.after.reshape(-1), out)
        return out.reshape(N, T, states.shape[1])

    def unsort(self, rows: Array) -> Array:
        """Rows (N, H) sorted by length to the order of the batch."""
        ops = ops_for(rows)
        out = ops.empty(rows.shape, rows.dtype)
        ops.put(rows, self.order, out)
        return out

    def incoming(self, dstates: Array | None, dfinal: Array | None, like: Array) -> Array:
        """The gradient of the last real state of each sequence before the backward loop: (N, H), sorted.

        It is the sum of the gradients of its copies in padding, from ``dstates`` (N, T, H), and of the final
        state, ``dfinal`` (N, H). Either may be None. The array is new: the loop overwrites it. It has the
        library, the dtype and the columns of ``like`` (..., H).
        """
        ops, H = ops_for(like), like.shape[-1]
        out = ops.zeros((self.shape[0], H), like.dtype)
        if dfinal is not None:
            ops.take(dfinal, self.order, out)
        if dstates is not None and self.padding is not None:
            copies = ops.empty((self.padding.size, H), like.dtype)
            ops.take(as_rows(dstates), self.padding, copies)
            ops.embedding_gradient(copies, self.padding_rank, out)  # adds rows to rows
        return out


class _Plan(NamedTuple):
    """A packing before its indices are copied to a device."""

    offsets: tuple[int, ...]
    steps: Steps
    indices: dict[str, np.ndarray]  # by the names of the packing's fields


def _plan(lengths: np.ndarray, T: int) -> _Plan:
    """The packing of sequences of these lengths, (N,), padded to T."""
    N = len(lengths)
    order = np.argsort(-lengths, kind="stable")
    rank = np.empty(N, np.intp)
    rank[order] = np.arange(N)
    alive = (lengths[:, None] > np.arange(int(lengths.max(initial=0)))).sum(axis=0)  # (longest,) n_t
    offsets = np.concatenate([[0], np.cumsum(alive)])
    by_step = order * T + np.arange(alive.size)[:, None]  # (longest, N)
    last = np.minimum(np.arange(T), lengths[:, None] - 1)  # (N, T) step of the state at t, -1: h0
    starts = np.concatenate([[0], N + offsets])  # initial states, then a block for each step
    ends = last[:, -1] if T else np.full(N, -1)
    indices = {
        "order": order,
        "source": by_step[np.arange(N) < alive[:, None]],
        "after": starts[last + 1] + rank[:, None],
        "final": starts[ends + 1] + rank,
    }
    padding = np.flatnonzero(np.arange(T) >= lengths[:, None])
    if padding.size:
        before = np.arange(offsets[-1]) + np.repeat(starts[:-2] - offsets[:-1], alive)
        indices |= {"padding": padding, "padding_rank": rank[padding // T], "before": before}
    return _Plan(tuple(offsets.tolist()), Steps(N, alive), indices)


@functools.lru_cache(maxsize=8)
def _plan_of_whole_sequences(N: int, T: int) -> _Plan:
    """The same without padding, which batches of one training have again and again."""
    return _plan(np.full(N, T), T)


def _copied_at_once(ops: Primitives, arrays: Mapping[str, np.ndarray]) -> dict[str, Array]:
    """Arrays of indices on the device of these primitives: parts of one array, which is copied there."""
    whole = ops.asarray(np.concatenate([array.reshape(-1) for array in arrays.values()]))
    ends = np.cumsum([array.size for array in arrays.values()]).tolist()
    return {
        name: whole[end - array.size : end].reshape(array.shape)
        for end, (name, array) in zip(ends, arrays.items(), strict=True)
    }


def real_lengths(
    function: str, N: int, T: int, lengths: Array | None, mask: Array | None = None
) -> np.ndarray:
    """Number of real steps of N sequences, (N,): from lengths, from a mask (N, T), or all T.

    Raises
    ------
    ValueError
        If both are given, a shape or a length does not fit, or real steps of the mask follow padding.
    """
    if lengths is not None and mask is not None:
        raise InputError(f"{function}: both lengths and mask are given, expected one of them")
    if mask is not None:
        real = as_mask(function, "mask", mask, (N, T), "N, T")
        if (real[:, 1:] > real[:, :-1]).any():
            row = int(np.flatnonzero((real[:, 1:] > real[:, :-1]).any(axis=1))[0])
            raise InputError(f"{function}: mask has a hole in row {row}, expected real steps, then padding")
        return real.sum(axis=1)
    if lengths is None:
        return np.full(N, T)
    return as_lengths(function, lengths, N, T, "T")


def lengths_to_last(real: np.ndarray) -> np.ndarray:
    """Number of steps up to the last real one, (N,), for each row of ``real`` (N, T); 0 if none is real."""
    return (real * np.arange(1, real.shape[1] + 1)).max(axis=1, initial=0)


def as_rows(x: Array) -> Array:
    """x (N, T, D) as rows (N T, D), one for each step of each sequence."""
    N, T, D = x.shape
    return x.reshape(N * T, D)
