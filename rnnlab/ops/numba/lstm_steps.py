"""The steps of a chunk of an LSTM by compiled kernels.

Where the recurrent weight is small, one kernel runs all steps: each thread has some of the sequences, and its
cache holds the weight. A larger weight is shared by all threads, step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from rnnlab.ops.lstm_steps import Slices, lstm_step_by_step
from rnnlab.ops.numba import bfloat16, cells, products
from rnnlab.ops.numba.bfloat16 import RoundedPanels, begin_tiles, end_tiles, round_rows, rows_by_pairs
from rnnlab.ops.numba.cells import lstm_backward_row, lstm_state_row, sigmoid_row, tanh_row
from rnnlab.ops.numba.gemm import DEPTH, Panels, rows_by_piece
from rnnlab.ops.numba.kernel import Kernel, RefusedError, inlined, kernel, shared_by, threads
from rnnlab.ops.numba.registers import ROWS
from rnnlab.types import Array

__all__ = ["lstm_steps_backward", "lstm_steps_forward"]
_SMALL = 1 << 20  # bytes of a weight that the second cache holds beside what else a step reads
_PARALLEL_FROM = 1 << 17  # units of all steps, worth waking other threads

_forward_by_steps, _backward_by_steps = lstm_step_by_step(products, cells)


def lstm_steps_forward(gates: Array, Wh: Array, h: Array, c: Array, tanh_c: Array, steps: Slices) -> None:
    arrays, (states, H) = [gates, h, c, tanh_c], h.shape
    table = None
    if _is_small(Wh, (H, 4 * H), gates.dtype):
        table = _table(steps, rows=len(gates), states=states, together=len(gates), sequences=states)
    if table is None or not _run(_lstm_steps_forward, _lstm_steps_rounded_forward, arrays, Wh, table):
        _forward_by_steps(gates, Wh, h, c, tanh_c, steps)


def lstm_steps_backward(
    dh: Array,
    dstate: Array,
    dcell: Array,
    gates: Array,
    c: Array,
    tanh_c: Array,
    da: Array,
    to_h: Array,
    steps: Slices,
) -> None:
    arrays, (states, H) = [dh, dstate, dcell, gates, c, tanh_c, da], c.shape
    table = None
    if _is_small(to_h, (4 * H, H), gates.dtype):
        table = _table(steps, rows=len(gates), states=states, together=len(dh), sequences=len(dstate))
    if table is None or not _run(_lstm_steps_backward, _lstm_steps_rounded_backward, arrays, to_h, table):
        _backward_by_steps(*arrays, to_h, steps)


def _is_small(weight: Any, shape: tuple[int, int], dtype: np.dtype) -> bool:
    """Whether it is a weight in panels, of this shape, that the cache of each thread holds."""
    if not isinstance(weight, Panels) or weight.shape != shape or weight.dtype != dtype:
        return False
    return threads() == 1 or weight.panels.nbytes <= _SMALL


def _table(steps: Slices, *, rows: int, states: int, together: int, sequences: int) -> Array | None:
    """First row, first state before and after, and the number of rows of each step, (T, 4).

    None if one kernel cannot run the steps: they are not one after the other in memory, the states after a
    step are not those before the next one, row by row, or a number is out of range.
    """
    if not steps or any(len({each.stop - each.start for each in step}) > 1 for step in steps):
        return None
    table = np.array([(r.start, b.start, a.start, r.stop - r.start) for r, b, a in steps], np.int64)
    row, before, after, count = table.T
    follow = np.array_equal(before[1:], after[:-1]) and np.all(np.diff(count) <= 0)
    apart = np.all(np.diff(row) >= count[:-1]) and np.all(np.diff(after) >= count[:-1])
    apart &= before[0] + count[0] <= after[0]
    inside = table.min() >= 0 and np.all(row + count <= rows) and np.all(after + count <= states)
    inside &= np.all(row + count - row[0] <= together) and count[0] <= sequences
    return table if follow and apart and inside else None


def _run(full: Kernel, rounded: Kernel, arrays: list[Array], weight: Panels, table: Array) -> bool:
    """Run all steps by the kernel for this weight; false if the arrays have another layout."""
    counts = table[:, 3]
    parts = shared_by(int(counts.sum()) * weight.shape[0], _PARALLEL_FROM)
    last = table, _edges(counts, parts)
    try:
        if isinstance(weight, RoundedPanels):
            rounded.run(parts > 1, *arrays, weight.panels, weight.scratch(int(counts[0]), parts), *last)
        else:
            full.run(parts > 1, *arrays, weight.panels, *last)
    except RefusedError:
        return False
    return True


def _edges(counts: Array, parts: int) -> Array:
    """The first row of each part, and the number of rows: parts of about as many steps of rows."""
    alive = np.searchsorted(-counts, -np.arange(counts[0]), side="left")  # steps of each row
    done = np.concatenate([[0], np.cumsum(alive)])
    return np.searchsorted(done, done[-1] * np.arange(parts + 1) / parts).astype(np.int64)


# ---------------------------------------------------------------- kernels


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], int64[:,::1], int64[::1]",
    arguments="gates! (M, 4H); h! (S, H); c! (S, H); tanh_c! (M, H); panels (Q, H, W); "
    "table (T, F) 0..S; edges (E,) 0..S",
    parallel_from=0,
)
def _lstm_steps_forward(gates, h, c, tanh_c, panels, table, edges):
    for part in prange(edges.size - 1):
        edge = np.empty((ROWS, panels.shape[2]), gates.dtype)
        for t in range(table.shape[0]):
            top, bottom = edges[part], min(edges[part + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            now = gates[row + top : row + bottom]
            _add_product(h[before + top : before + bottom], panels, now.shape[0], edge, now)
            _forward_step(row, before, after, top, bottom, gates, h, c, tanh_c)


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], uint32[:,:,::1], uint32[:,:,::1], int64[:,::1], int64[::1]",
    arguments="gates! (M, 4H); h! (S, H); c! (S, H); tanh_c! (M, H); panels (Q, P, W) uint32; "
    "rows! (B, R, P) uint32; table (T, F) 0..S; edges (E,) 0..S",
    parallel_from=0,
    dtypes=bfloat16.VERSIONS,
)
def _lstm_steps_rounded_forward(gates, h, c, tanh_c, panels, rows, table, edges):
    """The same with factors in bfloat16."""
    for part in prange(edges.size - 1):
        edge = np.empty((bfloat16.ROWS, panels.shape[2]), gates.dtype)
        begin_tiles()
        for t in range(table.shape[0]):
            top, bottom = edges[part], min(edges[part + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            now = gates[row + top : row + bottom]
            _add_rounded(h[before + top : before + bottom], panels, rows[part], now.shape[0], edge, now)
            _forward_step(row, before, after, top, bottom, gates, h, c, tanh_c)
        end_tiles()


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], "
    "int64[:,::1], int64[::1]",
    arguments="dh (m, H); dstate! (N, H); dcell! (N, H); gates (M, 4H); c (S, H); tanh_c (M, H); "
    "da! (m, 4H); panels (Q, G, W); table (T, F) 0..S; edges (E,) 0..S",
    parallel_from=0,
)
def _lstm_steps_backward(dh, dstate, dcell, gates, c, tanh_c, da, panels, table, edges):
    for part in prange(edges.size - 1):
        edge = np.empty((ROWS, panels.shape[2]), gates.dtype)
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[part], min(edges[part + 1], table[t, 3])
            if top >= bottom:
                continue
            here = _backward_step(table, t, top, bottom, dh, dstate, dcell, gates, c, tanh_c, da)
            _add_product(da[here + top : here + bottom], panels, 0, edge, dstate[top:bottom])


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], uint32[:,:,::1], uint32[:,:,::1], "
    "int64[:,::1], int64[::1]",
    arguments="dh (m, H); dstate! (N, H); dcell! (N, H); gates (M, 4H); c (S, H); tanh_c (M, H); "
    "da! (m, 4H); panels (Q, P, W) uint32; rows! (B, R, P) uint32; table (T, F) 0..S; edges (E,) 0..S",
    parallel_from=0,
    dtypes=bfloat16.VERSIONS,
)
def _lstm_steps_rounded_backward(dh, dstate, dcell, gates, c, tanh_c, da, panels, rows, table, edges):
    """The same with factors in bfloat16."""
    for part in prange(edges.size - 1):
        edge = np.empty((bfloat16.ROWS, panels.shape[2]), gates.dtype)
        begin_tiles()
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[part], min(edges[part + 1], table[t, 3])
            if top >= bottom:
                continue
            here = _backward_step(table, t, top, bottom, dh, dstate, dcell, gates, c, tanh_c, da)
            _add_rounded(da[here + top : here + bottom], panels, rows[part], 0, edge, dstate[top:bottom])
        end_tiles()


@inlined
def _forward_step(row, before, after, top, bottom, gates, h, c, tanh_c):
    H = c.shape[1]
    for i in range(top, bottom):
        sigmoid_row(gates[row + i, : 3 * H])
        tanh_row(gates[row + i, 3 * H :])
        lstm_state_row(
            gates[row + i],
            gates[row + i, 3 * H :],
            c[before + i],
            c[after + i],
            tanh_c[row + i],
            h[after + i],
        )


@inlined
def _backward_step(table, t, top, bottom, dh, dstate, dcell, gates, c, tanh_c, da):
    """Return the first row of the step in dh and da."""
    row, before, here = table[t, 0], table[t, 1], table[t, 0] - table[0, 0]
    for i in range(top, bottom):
        dh_, dstate_ = dh[here + i], dstate[i]
        for j in range(dstate_.size):
            dstate_[j] += dh_[j]
        lstm_backward_row(dstate_, dcell[i], gates[row + i], c[before + i], tanh_c[row + i], da[here + i])
    return here


@inlined
def _add_product(x, panels, first_rows, edge, out):
    """out = x w, or out += x w if ``first_rows`` is the number of rows."""
    for panel in range(panels.shape[0]):
        for k in range(0, x.shape[1], DEPTH):
            rows_by_piece(x, k, panels[panel, k : k + DEPTH], panel, 0, 1, out, first_rows, edge, out)


@inlined
def _add_rounded(x, panels, rows, first_rows, edge, out):
    """The same with factors in bfloat16."""
    round_rows(x, 0, panels.shape[1], 0, 1, rows)
    for panel in range(panels.shape[0]):
        rows_by_pairs(rows, False, panels[panel], panel, 0, 1, out, first_rows, edge, out)
