"""Kernels that run all steps of a chunk of a cell whose state is one array: RNN, GRU and simplified GRU.

Each thread has some of the sequences: those from ``edges[k]`` to ``edges[k + 1]``. ``table`` is that of
:class:`~rnnlab.ops.steps.Steps`, and ``panels`` are prepacked weights. The other arguments are those of
:meth:`~rnnlab.ops.api.Primitives.steps_forward` and its backward, the same for each cell, and
:mod:`rnnlab.ops.numba.chunk_masks`.
"""

from __future__ import annotations

import numpy as np

from rnnlab.ops.numba.cells import (
    add_row,
    gru_candidate_backward_row,
    gru_candidate_dropped_backward_row,
    gru_candidate_dropped_row,
    gru_candidate_row,
    gru_gates_backward_row,
    gru_gates_row,
    rnn_backward_row,
    rnn_row,
    simplified_gru_backward_row,
    simplified_gru_dropped_backward_row,
    simplified_gru_dropped_row,
    simplified_gru_row,
)
from rnnlab.ops.numba.chunk_masks import (
    ARGUMENTS,
    TYPES,
    drops_candidate,
    finish_carried_rows,
    finish_rows,
    kept_rows,
    mask_row,
    read_rows,
    rows_to_add,
    rows_to_read,
    zoneout_backward_row,
    zoneout_row,
)
from rnnlab.ops.numba.parallel import share
from rnnlab.ops.numba.step_products import edge_rows, factor_rows, multiply_rows, step_kernels

__all__ = ["BACKWARD", "FORWARD"]

_STATES = "T[:,::1], T[:,::1], T[:,::1]"
_GRADIENTS = "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]"
_PANELS = "W[:,:,::1]"
_TABLES = "int64[:,::1], int64[::1]"
_DIVISION = "table (T, F) 0..S; edges (E,) 0..S"


@step_kernels(
    f"{_STATES}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments=f"gates! (M, H); h! (S, H); saved! (M, Z); panels (Q, K, C) W; {ARGUMENTS}; {_DIVISION}",
)
def _rnn_steps_forward(part, parts, gates, h, saved, panels, state_mask, rates, seeds, table, edges):
    H, edge = h.shape[1], edge_rows(panels, h)
    for piece in share(edges.size - 1, part, parts):
        number = edges[piece + 1] - edges[piece]
        factors = factor_rows(number, panels)
        read = np.empty((read_rows(number, state_mask), H), h.dtype)
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            now = gates[row + top : row + bottom]
            x = rows_to_read(h, before, top, bottom, state_mask, read)
            multiply_rows(x, panels, factors, now.shape[0], edge, now)
            for i in range(top, bottom):
                rnn_row(gates[row + i], h[after + i])
                zoneout_row(0, h[before + i], rates, seeds, (row + i) * H, h[after + i])


@step_kernels(
    f"{_GRADIENTS}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments="dh (m, H); dstate! (N, H); gates (M, H); h (S, H); saved (M, Z); da! (m, H); "
    f"panels (Q, K, C) W; {ARGUMENTS}; {_DIVISION}",
)
def _rnn_steps_backward(
    part, parts, dh, dstate, gates, h, saved, da, panels, state_mask, rates, seeds, table, edges
):
    H, edge = h.shape[1], edge_rows(panels, h)
    for piece in share(edges.size - 1, part, parts):
        number = edges[piece + 1] - edges[piece]
        factors = factor_rows(number, panels)
        kept = np.empty((kept_rows(number, rates), H), h.dtype)
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            row, here = table[t, 0], table[t, 0] - table[0, 0]
            for i in range(top, bottom):
                add_row(dh[here + i], dstate[i])
                zoneout_backward_row(0, rates, seeds, (row + i) * H, dstate[i], kept[i - top])
                rnn_backward_row(dstate[i], gates[row + i], da[here + i])
            da_now, dnow = da[here + top : here + bottom], dstate[top:bottom]
            multiply_rows(da_now, panels, factors, 0, edge, dnow)
            finish_rows(top, bottom, state_mask, rates, kept, dstate)


@step_kernels(
    f"{_STATES}, {_PANELS}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments="gates! (M, 3H); h! (S, H); reset_h! (M, H); panels (Q, K, C) W; candidate_panels (q, k, C) W; "
    f"{ARGUMENTS}; {_DIVISION}",
)
def _gru_steps_forward(
    part, parts, gates, h, reset_h, panels, candidate_panels, state_mask, rates, seeds, table, edges
):
    H, edge = h.shape[1], edge_rows(panels, h)
    mask = np.empty(H, h.dtype)
    for piece in share(edges.size - 1, part, parts):
        number = edges[piece + 1] - edges[piece]
        factors, candidate_factors = factor_rows(number, panels), factor_rows(number, candidate_panels)
        read = np.empty((read_rows(number, state_mask), H), h.dtype)
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            now, reset = gates[row + top : row + bottom], reset_h[row + top : row + bottom]
            z_and_r, g = now[:, : 2 * H], now[:, 2 * H :]
            x = rows_to_read(h, before, top, bottom, state_mask, read)
            multiply_rows(x, panels, factors, bottom - top, edge, z_and_r)
            for i in range(bottom - top):
                gru_gates_row(now[i], x[i], reset[i])
            multiply_rows(reset, candidate_panels, candidate_factors, bottom - top, edge, g)
            for i in range(top, bottom):
                if drops_candidate(rates, seeds):
                    mask_row(rates, seeds, (row + i) * H, mask)
                    gru_candidate_dropped_row(gates[row + i], mask, h[before + i], h[after + i])
                else:
                    gru_candidate_row(gates[row + i], h[before + i], h[after + i])
                zoneout_row(0, h[before + i], rates, seeds, (row + i) * H, h[after + i])


@step_kernels(
    f"{_GRADIENTS}, {_PANELS}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments="dh (m, H); dstate! (N, H); gates (M, 3H); h (S, H); reset_h (M, H); da! (m, 3H); "
    f"panels (Q, K, C) W; candidate_panels (Q, k, C) W; {ARGUMENTS}; {_DIVISION}",
)
def _gru_steps_backward(
    part, parts, dh, dstate, gates, h, reset_h, da,
    panels, candidate_panels, state_mask, rates, seeds, table, edges,
):  # fmt: skip
    H, edge = h.shape[1], edge_rows(panels, h)
    mask = np.empty(H, h.dtype)
    for piece in share(edges.size - 1, part, parts):
        number = edges[piece + 1] - edges[piece]
        factors, candidate_factors = factor_rows(number, panels), factor_rows(number, candidate_panels)
        dreset_h, kept = np.empty((number, H), h.dtype), np.empty((kept_rows(number, rates), H), h.dtype)
        read = np.empty((read_rows(number, state_mask), H), h.dtype)
        apart = np.empty(read.shape, h.dtype)
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            row, before, here = table[t, 0], table[t, 1], table[t, 0] - table[0, 0]
            for i in range(top, bottom):
                start = (row + i) * H
                add_row(dh[here + i], dstate[i])
                zoneout_backward_row(0, rates, seeds, start, dstate[i], kept[i - top])
                if drops_candidate(rates, seeds):
                    mask_row(rates, seeds, start, mask)
                    gru_candidate_dropped_backward_row(
                        dstate[i], gates[row + i], mask, h[before + i], da[here + i]
                    )
                else:
                    gru_candidate_backward_row(dstate[i], gates[row + i], h[before + i], da[here + i])
            n, da_now, now = bottom - top, da[here + top : here + bottom], gates[row + top : row + bottom]
            dreset = dreset_h[:n]
            multiply_rows(da_now[:, 2 * H :], candidate_panels, candidate_factors, 0, edge, dreset)
            x = rows_to_read(h, before, top, bottom, state_mask, read)
            dread = rows_to_add(dstate, top, bottom, state_mask, apart)
            for i in range(n):
                gru_gates_backward_row(dreset[i], dread[i], now[i], x[i], da_now[i])
            multiply_rows(da_now[:, : 2 * H], panels, factors, n, edge, dread)
            finish_carried_rows(top, bottom, state_mask, rates, kept, dread, dstate)


@step_kernels(
    f"{_STATES}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments=f"gates! (M, 2H); h! (S, H); saved! (M, Z); panels (Q, K, C) W; {ARGUMENTS}; {_DIVISION}",
)
def _simplified_gru_steps_forward(
    part, parts, gates, h, saved, panels, state_mask, rates, seeds, table, edges
):
    H, edge = h.shape[1], edge_rows(panels, h)
    mask = np.empty(H, h.dtype)
    for piece in share(edges.size - 1, part, parts):
        number = edges[piece + 1] - edges[piece]
        factors = factor_rows(number, panels)
        read = np.empty((read_rows(number, state_mask), H), h.dtype)
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            now = gates[row + top : row + bottom]
            x = rows_to_read(h, before, top, bottom, state_mask, read)
            multiply_rows(x, panels, factors, now.shape[0], edge, now)
            for i in range(top, bottom):
                if drops_candidate(rates, seeds):
                    mask_row(rates, seeds, (row + i) * H, mask)
                    simplified_gru_dropped_row(gates[row + i], mask, h[before + i], h[after + i])
                else:
                    simplified_gru_row(gates[row + i], h[before + i], h[after + i])
                zoneout_row(0, h[before + i], rates, seeds, (row + i) * H, h[after + i])


@step_kernels(
    f"{_GRADIENTS}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments="dh (m, H); dstate! (N, H); gates (M, 2H); h (S, H); saved (M, Z); da! (m, 2H); "
    f"panels (Q, K, C) W; {ARGUMENTS}; {_DIVISION}",
)
def _simplified_gru_steps_backward(
    part, parts, dh, dstate, gates, h, saved, da, panels, state_mask, rates, seeds, table, edges
):
    H, edge = h.shape[1], edge_rows(panels, h)
    mask = np.empty(H, h.dtype)
    for piece in share(edges.size - 1, part, parts):
        number = edges[piece + 1] - edges[piece]
        factors = factor_rows(number, panels)
        kept = np.empty((kept_rows(number, rates), H), h.dtype)
        apart = np.empty((read_rows(number, state_mask), H), h.dtype)
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            row, before, here = table[t, 0], table[t, 1], table[t, 0] - table[0, 0]
            for i in range(top, bottom):
                start = (row + i) * H
                add_row(dh[here + i], dstate[i])
                zoneout_backward_row(0, rates, seeds, start, dstate[i], kept[i - top])
                if drops_candidate(rates, seeds):
                    mask_row(rates, seeds, start, mask)
                    simplified_gru_dropped_backward_row(
                        dstate[i], gates[row + i], mask, h[before + i], da[here + i]
                    )
                else:
                    simplified_gru_backward_row(dstate[i], gates[row + i], h[before + i], da[here + i])
            da_now = da[here + top : here + bottom]
            dread = rows_to_add(dstate, top, bottom, state_mask, apart)
            multiply_rows(da_now, panels, factors, bottom - top, edge, dread)
            finish_carried_rows(top, bottom, state_mask, rates, kept, dread, dstate)


# by cell, then by whether the sequences are divided
FORWARD = {
    "rnn": {True: _rnn_steps_forward},
    "gru": {True: _gru_steps_forward},
    "simplified_gru": {True: _simplified_gru_steps_forward},
}
BACKWARD = {
    "rnn": {True: _rnn_steps_backward},
    "gru": {True: _gru_steps_backward},
    "simplified_gru": {True: _simplified_gru_steps_backward},
}
