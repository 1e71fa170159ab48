"""Kernels that run all steps of a chunk of an LSTM.

If the recurrent weight is small, each thread has some of the sequences, and its cache holds the whole weight.
The columns of a larger weight are divided among the threads, so that each of their caches holds a part of it;
the threads then wait for each other twice per step, and three times with masks of the state or of h.

The arguments are those of :mod:`rnnlab.ops.numba.one_state_steps`.
"""

from __future__ import annotations

import numba
import numpy as np

from rnnlab.ops.numba.cells import (
    add_row,
    lstm_backward_row,
    lstm_state_row,
    multiply_row,
    scale_row,
    sigmoid_row,
    tanh_row,
)
from rnnlab.ops.numba.chunk_masks import (
    ARGUMENTS,
    TYPES,
    drops_candidate,
    finish_rows,
    kept_rows,
    mask_row,
    read_rows,
    rows_to_read,
    zoneout_backward_row,
    zoneout_row,
)
from rnnlab.ops.numba.gemm import rows_by_panels
from rnnlab.ops.numba.kernel import kernel, phase
from rnnlab.ops.numba.parallel import in_parts, share
from rnnlab.ops.numba.step_products import (
    edge_rows,
    factor_rows,
    multiply_columns,
    multiply_rows,
    round_factors,
    step_kernels,
)

__all__ = ["BACKWARD", "FORWARD", "NARROW_FORWARD"]

_STATES = "T[:,::1], T[:,::1], T[:,::1], T[:,::1]"
_GRADIENTS = "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]"
_PANELS = "W[:,:,::1]"
_WRITTEN = "gates! (M, 4H); h! (S, H); c! (S, H); tanh_c! (M, H)"
_READ = (
    "dh (m, H); dstate! (N, H); dcell! (N, H); gates (M, 4H); h (S, H); c (S, H); tanh_c (M, H); da! (m, 4H)"
)
_WEIGHT = "panels (Q, K, C) W"
_TABLE = "table (T, F) 0..S"
_EDGES = "edges (E,) 0..S"


# ---------------------------------------------------------------- the sequences are divided


@step_kernels(
    f"{_STATES}, {_PANELS}, {TYPES}, int64[:,::1], int64[::1]",
    arguments=f"{_WRITTEN}; {_WEIGHT}; {ARGUMENTS}; {_TABLE}; {_EDGES}",
)
def _lstm_steps_forward(part, parts, gates, h, c, tanh_c, panels, state_mask, rates, seeds, table, edges):
    edge, mask = edge_rows(panels, c), np.empty(c.shape[1], c.dtype)
    for piece in share(edges.size - 1, part, parts):
        number = edges[piece + 1] - edges[piece]
        factors = factor_rows(number, panels)
        read = np.empty((read_rows(number, state_mask), h.shape[1]), h.dtype)
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before = table[t, 0], table[t, 1]
            now = gates[row + top : row + bottom]
            x = rows_to_read(h, before, top, bottom, state_mask, read)
            multiply_rows(x, panels, factors, now.shape[0], edge, now)
            _forward_step(table, t, top, bottom, gates, h, c, tanh_c, rates, seeds, mask)


@kernel(
    f"{_STATES}, T[:,:,::1], T[:,::1], T[:,:,::1], T[:,::1], {TYPES}, int64[:,::1], int64[::1]",
    arguments=f"{_WRITTEN}; panels (Q, H, C); x (m, D); x_panels (Q, D, C); b (I, 4H); "
    f"{ARGUMENTS}; {_TABLE}; {_EDGES}",
)
def _lstm_narrow_forward(
    part, parts, gates, h, c, tanh_c, panels, x, x_panels, b, state_mask, rates, seeds, table, edges
):
    """The same, including the products of a narrow input, which would be slower to read from memory."""
    edge, mask = edge_rows(panels, c), np.empty(c.shape[1], c.dtype)
    for piece in share(edges.size - 1, part, parts):
        number = edges[piece + 1] - edges[piece]
        read = np.empty((read_rows(number, state_mask), h.shape[1]), h.dtype)
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, here = table[t, 0], table[t, 1], table[t, 0] - table[0, 0]
            now = gates[row + top : row + bottom]
            rows_by_panels(x[here + top : here + bottom], x_panels, 0, 1, b, 1, edge, now, False)
            states = rows_to_read(h, before, top, bottom, state_mask, read)
            rows_by_panels(states, panels, 0, 1, now, now.shape[0], edge, now, False)
            _forward_step(table, t, top, bottom, gates, h, c, tanh_c, rates, seeds, mask)


@step_kernels(
    f"{_GRADIENTS}, {_PANELS}, {TYPES}, int64[:,::1], int64[::1]",
    arguments=f"{_READ}; {_WEIGHT}; {ARGUMENTS}; {_TABLE}; {_EDGES}",
)
def _lstm_steps_backward(
    part, parts, dh, dstate, dcell, gates, h, c, tanh_c, da, panels, state_mask, rates, seeds, table, edges
):
    edge, mask = edge_rows(panels, c), np.empty(c.shape[1], c.dtype)
    for piece in share(edges.size - 1, part, parts):
        first, number = edges[piece], edges[piece + 1] - edges[piece]
        factors = factor_rows(number, panels)
        kept = np.empty((2, kept_rows(number, rates), c.shape[1]), c.dtype)
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = first, min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            _backward_step(
                table, t, top, bottom, dh, dstate, dcell, gates, c, tanh_c, da, rates, seeds, kept, mask
            )
            here = table[t, 0] - table[0, 0]
            da_now, dnow = da[here + top : here + bottom], dstate[top:bottom]
            multiply_rows(da_now, panels, factors, 0, edge, dnow)
            finish_rows(top, bottom, state_mask, rates, kept[0], dstate)


# ---------------------------------------------------------------- the weight is divided


@step_kernels(
    f"{_STATES}, {_PANELS}, {TYPES}, int64[:,::1]",
    arguments=f"{_WRITTEN}; {_WEIGHT}; {ARGUMENTS}; {_TABLE}",
)
def _lstm_shared_forward(parts, gates, h, c, tanh_c, panels, state_mask, rates, seeds, table):
    """First the columns of the weight are divided among the threads, then the rows of the states."""
    read = np.empty((read_rows(table[0, 3], state_mask), h.shape[1]), h.dtype)
    factors = factor_rows(table[0, 3], panels)
    for t in range(table.shape[0]):
        row, before, count = table[t, 0], table[t, 1], table[t, 3]
        x, now = h[before : before + count], gates[row : row + count]
        if state_mask.shape[0] > 0:
            x = read[:count]
            in_parts(parts, _read_part, (table, t, h, state_mask, read))
        round_factors(parts, x, panels, factors)
        in_parts(parts, _multiply_part, (t, x, panels, factors, count, now))
        in_parts(parts, _forward_part, (table, t, gates, h, c, tanh_c, rates, seeds))


@step_kernels(
    f"{_GRADIENTS}, {_PANELS}, {TYPES}, int64[:,::1]",
    arguments=f"{_READ}; {_WEIGHT}; {ARGUMENTS}; {_TABLE}",
)
def _lstm_shared_backward(
    parts, dh, dstate, dcell, gates, h, c, tanh_c, da, panels, state_mask, rates, seeds, table
):
    """First the rows of the states are divided among the threads, then the columns of the weight."""
    kept = np.empty((2, kept_rows(table[0, 3], rates), c.shape[1]), c.dtype)
    factors = factor_rows(table[0, 3], panels)
    for t in range(table.shape[0] - 1, -1, -1):
        here, count = table[t, 0] - table[0, 0], table[t, 3]
        in_parts(
            parts,
            _backward_part,
            (table, t, dh, dstate, dcell, gates, c, tanh_c, da, rates, seeds, kept),
        )
        da_now = da[here : here + count]
        round_factors(parts, da_now, panels, factors)
        in_parts(parts, _multiply_part, (t, da_now, panels, factors, 0, dstate[:count]))
        if state_mask.shape[0] > 0 or rates[0] > 0:
            in_parts(parts, _finish_part, (table, t, state_mask, rates, kept[0], dstate))


# by whether the sequences are divided
FORWARD = {True: _lstm_steps_forward, False: _lstm_shared_forward}
BACKWARD = {True: _lstm_steps_backward, False: _lstm_shared_backward}
NARROW_FORWARD = _lstm_narrow_forward


# ---------------------------------------------------------------- of one step


@phase
def _read_part(part, parts, table, t, h, state_mask, read):
    top, bottom = part * table[t, 3] // parts, (part + 1) * table[t, 3] // parts
    rows_to_read(h, table[t, 1], top, bottom, state_mask, read[top:])


@phase
def _multiply_part(part, parts, t, x, panels, factors, first_rows, out):
    """A part's columns of out = x w; of out += x w if ``first_rows`` is the number of rows.

    Every second step begins with the last panel, which the cache still holds from the step before.
    """
    edge = edge_rows(panels, out)
    multiply_columns(part, parts, x, panels, factors, first_rows, edge, out, t % 2 == 1)


@phase
def _forward_part(part, parts, table, t, gates, h, c, tanh_c, rates, seeds):
    top, bottom = part * table[t, 3] // parts, (part + 1) * table[t, 3] // parts
    mask = np.empty(c.shape[1], c.dtype)
    _forward_step(table, t, top, bottom, gates, h, c, tanh_c, rates, seeds, mask)


@phase
def _backward_part(part, parts, table, t, dh, dstate, dcell, gates, c, tanh_c, da, rates, seeds, kept):
    top, bottom = part * table[t, 3] // parts, (part + 1) * table[t, 3] // parts
    own, mask = kept[:, top:], np.empty(c.shape[1], c.dtype)
    _backward_step(table, t, top, bottom, dh, dstate, dcell, gates, c, tanh_c, da, rates, seeds, own, mask)


@phase
def _finish_part(part, parts, table, t, state_mask, rates, kept, dstate):
    top, bottom = part * table[t, 3] // parts, (part + 1) * table[t, 3] // parts
    finish_rows(top, bottom, state_mask, rates, kept[top:], dstate)


# inline: not compiled on its own as well, which halves the compile time
@numba.njit(inline="always")
def _forward_step(table, t, top, bottom, gates, h, c, tanh_c, rates, seeds, mask):
    """``mask`` (H,) is a workspace."""
    H, row, before, after = c.shape[1], table[t, 0], table[t, 1], table[t, 2]
    for i in range(top, bottom):
        sigmoid_row(gates[row + i, : 3 * H])
        tanh_row(gates[row + i, 3 * H :])
        g, start = gates[row + i, 3 * H :], (row + i) * H
        if drops_candidate(rates, seeds):
            mask_row(rates, seeds, start, mask)
            multiply_row(mask, g, h[after + i])
            g = h[after + i]
        lstm_state_row(gates[row + i], g, c[before + i], c[after + i], tanh_c[row + i], h[after + i])
        zoneout_row(0, h[before + i], rates, seeds, start, h[after + i])
        zoneout_row(1, c[before + i], rates, seeds, start, c[after + i])


@numba.njit(inline="always")
def _backward_step(table, t, top, bottom, dh, dstate, dcell, gates, c, tanh_c, da, rates, seeds, kept, mask):
    """``kept`` (2, n, H) gets the gradients of h and c that bypass the cell; ``mask`` (H,) is a workspace."""
    H, row, before, here = c.shape[1], table[t, 0], table[t, 1], table[t, 0] - table[0, 0]
    for i in range(top, bottom):
        start = (row + i) * H
        add_row(dh[here + i], dstate[i])
        zoneout_backward_row(0, rates, seeds, start, dstate[i], kept[0, i - top])
        zoneout_backward_row(1, rates, seeds, start, dcell[i], kept[1, i - top])
        lstm_backward_row(dstate[i], dcell[i], gates[row + i], c[before + i], tanh_c[row + i], da[here + i])
        if drops_candidate(rates, seeds):
            mask_row(rates, seeds, start, mask)
            scale_row(da[here + i, :H], mask)
            scale_row(da[here + i, 3 * H :], mask)
        if rates[1] > 0:
            add_row(kept[1, i - top], dcell[i])
