"""What the four recurrent cells share: the rows of a batch that are alive at each step.

A sequence function works on *packed* arrays. The sequences are sorted by length, longest first, so that the
ones still alive at step t are the first n_t; the packed array of some input x (N, T, D) is (M, D), M = n_1 +
n_2 + ..., the alive rows of step 1, then those of step 2, and so on. Padding has no row, so it costs nothing:
not in the input's matrix product, not in the loop, not in the weight gradients. Without lengths, M = N T and
the packed array is x with time first.

States have one more block in front, the N initial states: a *states* array is (N + M, H), and the state
before each row of step t is the first n_t rows of the block before it. Past the end of a sequence its state
stands still.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rnnlab.ops import ops_for

Array = Any


class Steps(NamedTuple):
    """Where each step of each sequence lies in packed arrays and in states."""

    shape: tuple[int, int]  # (N, T) of the unpacked arrays
    offsets: tuple[int, ...]  # rows offsets[t] : offsets[t + 1] of a packed array are step t
    order: Array  # (N,) the sequences, longest first
    source: Array  # (M,) the row of x.reshape(N * T, D) that each packed row comes from
    index: Array  # (N, T) the row of states that holds the state after step t of sequence n
    final: Array  # (N,) the row of states that holds the final state of sequence n
    frozen: Array | None  # (N, T) 1 where a sequence has ended, or None if none ends early

    @classmethod
    def of(
        cls,
        function: str,
        shape: tuple[int, int],
        *,
        lengths: Array | None = None,
        mask: Array | None = None,
        like: Array,
    ) -> Steps:
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
        real = _lengths(function, N, T, lengths, mask)
        order = np.argsort(-real, kind="stable")
        rank = np.empty(N, np.intp)
        rank[order] = np.arange(N)
        steps = np.arange(int(real.max(initial=0)))
        alive = (real[:, None] > steps).sum(axis=0)  # (longest,) n_t
        offsets = np.concatenate([[0], np.cumsum(alive)])
        source = np.concatenate([order[:n] * T + t for t, n in enumerate(alive)] or [order[:0]])
        last = np.minimum(
            np.arange(T), real[:, None] - 1
        )  # (N, T) the step whose state stands at t; -1: none
        starts = np.concatenate([[0], N + offsets])  # the block of initial states, then one a step
        ends = last[:, -1] if T else np.full(N, -1)
        ops = ops_for(like)
        early = bool((real < T).any())
        return cls(
            shape=(N, T),
            offsets=tuple(offsets.tolist()),
            order=ops.asarray(order),
            source=ops.asarray(source),
            index=ops.asarray(starts[last + 1] + rank[:, None]),
            final=ops.asarray(starts[ends + 1] + rank),
            frozen=ops.asarray((np.arange(T) >= real[:, None]).astype(like.dtype)) if early else None,
        )

    @property
    def forwards(self) -> Iterator[tuple[slice, slice, slice]]:
        """For each step: its rows in a packed array, the states before it and the states after it."""
        return map(self._step, range(len(self.offsets) - 1))

    @property
    def backwards(self) -> Iterator[tuple[slice, slice, slice]]:
        """The same, last step first."""
        return map(self._step, reversed(range(len(self.offsets) - 1)))

    def _step(self, t: int) -> tuple[slice, slice, slice]:
        N, start, stop = self.shape[0], self.offsets[t], self.offsets[t + 1]
        before = N + self.offsets[t - 1] if t else 0
        return slice(start, stop), slice(before, before + stop - start), slice(N + start, N + stop)

    def pack(self, x: Array) -> Array:
        """The real rows of x, (N, T, D) -> (M, D)."""
        return x.reshape(-1, x.shape[2])[self.source]

    def unpack(self, rows: Array) -> Array:
        """The inverse of :meth:`pack`, zero where there is padding, (M, D) -> (N, T, D)."""
        N, T = self.shape
        ops = ops_for(rows)
        make = ops.empty if self.frozen is None else ops.zeros
        x = make((N * T, rows.shape[1]), rows.dtype)
        x[self.source] = rows
        return x.reshape(N, T, rows.shape[1])

    def states(self, first: Array) -> Array:
        """Room for all states, the initial ones (N, H) in place: (N + M, H)."""
        N = self.shape[0]
        states = ops_for(first).empty((N + self.offsets[-1], first.shape[1]), first.dtype)
        states[:N] = first[self.order]
        return states

    def before(self, states: Array) -> Array:
        """The state before each packed row, (N + M, H) -> (M, H)."""
        if self.frozen is None:
            return states[: self.offsets[-1]]
        blocks = [states[before] for _, before, _ in self.forwards]
        return ops_for(states).concatenate(blocks) if blocks else states[:0]

    def after_each(self, states: Array) -> Array:
        """The state after every step, standing still past the ends, (N + M, H) -> (N, T, H)."""
        return states[self.index]

    def unsort(self, rows: Array) -> Array:
        """Rows in the order of length back in the order of the batch, (N, H) -> (N, H)."""
        out = ops_for(rows).empty(rows.shape, rows.dtype)
        out[self.order] = rows
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
        out = ops.zeros((N, H), like.dtype) if dfinal is None else dfinal[self.order]
        if dstates is not None and self.frozen is not None:
            out += ops.matmul(self.frozen[:, None, :], dstates)[self.order, 0]
        return out


def _lengths(function: str, N: int, T: int, lengths: Array | None, mask: Array | None) -> np.ndarray:
    if lengths is not None and mask is not None:
        raise ValueError(f"{function}: both lengths and mask are given, expected one of them")
    if mask is not None:
        real = np.asarray(mask, dtype=bool)
        if real.shape != (N, T):
            raise ValueError(f"{function}: mask has shape {real.shape}, expected (N, T) = {(N, T)}")
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


def input_gradients(
    steps: Steps, x: Array, before: Array, Wx: Array, da: Array
) -> tuple[Array, Array, Array, Array]:
    """The gradients that need no loop once da (M, G) is known: dx, dWx, dWh, db.

    ``x`` (M, D) and ``before`` (M, H) are what Wx and Wh were multiplied with, packed.
    """
    ops = ops_for(da)
    return (
        steps.unpack(ops.matmul(da, Wx.T)),
        ops.matmul(x.T, da),
        ops.matmul(before.T, da),
        da.sum(axis=0),
    )
