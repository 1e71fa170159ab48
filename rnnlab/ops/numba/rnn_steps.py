"""Kernels that run all steps of a chunk of a vanilla RNN, a GRU and a simplified GRU.

Each thread has some of the sequences: those from ``edges[k]`` to ``edges[k + 1]``. ``table`` is that of
:class:`~rnnlab.ops.steps.Steps`, and ``panels`` are prepacked weights. The other arguments are those of
:meth:`~rnnlab.ops.api.Primitives.steps_forward` and its backward, the same for each cell, and
:mod:`rnnlab.ops.numba.chunk_masks`.
"""

from __future__ import annotations

import numpy as np

from rnnlab.ops.numba.cells import (
    add_row,
    copy_row,
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
from rnnlab.ops.numba.gemm import rows_by_panels
from rnnlab.ops.numba.kernel import kernel
from rnnlab.ops.numba.parallel import share
from rnnlab.ops.numba.registers import ROWS

__all__ = ["BACKWARD", "FORWARD"]

_STATES = "T[:,::1], T[:,::1], T[:,::1]"
_GRADIENTS = "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]"
_PANELS = "T[:,:,::1]"
_TABLES = "int64[:,::1], int64[::1]"
_DIVISION = "table (T, F) 0..S; edges (E,) 0..S"


@kernel(
    f"{_STATES}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments=f"gates! (M, H); h! (S, H); saved! (M, H); panels (Q, H, W); {ARGUMENTS}; {_DIVISION}",
)
def _rnn_steps_forward(part, parts, gates, h, saved, panels, state_mask, rates, seeds, table, edges):
    """With zoneout, ``saved`` is h before it."""
    H, edge = h.shape[1], np.empty((ROWS, panels.shape[2]), gates.dtype)
    for piece in share(edges.size - 1, part, parts):
        read = np.empty((read_rows(edges[piece + 1] - edges[piece], state_mask), H), h.dtype)
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            now = gates[row + top : row + bottom]
            x = rows_to_read(h, before, top, bottom, state_mask, read)
            rows_by_panels(x, panels, 0, 1, now, now.shape[0], edge, now, False)
            for i in range(top, bottom):
                rnn_row(gates[row + i], h[after + i])
                if rates[0] > 0:
                    copy_row(h[after + i], saved[row + i])
                    zoneout_row(0, h[before + i], rates, seeds, (row + i) * H, h[after + i])


@kernel(
    f"{_GRADIENTS}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments="dh (m, H); dstate! (N, H); gates (M, H); h (S, H); saved (M, H); da! (m, H); "
    f"panels (Q, H, W); {ARGUMENTS}; {_DIVISION}",
)
def _rnn_steps_backward(
    part, parts, dh, dstate, gates, h, saved, da, panels, state_mask, rates, seeds, table, edges
):
    H, edge = h.shape[1], np.empty((ROWS, panels.shape[2]), h.dtype)
    for piece in share(edges.size - 1, part, parts):
        kept = np.empty((kept_rows(edges[piece + 1] - edges[piece], rates), H), h.dtype)
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            row, after, here = table[t, 0], table[t, 2], table[t, 0] - table[0, 0]
            for i in range(top, bottom):
                add_row(dh[here + i], dstate[i])
                zoneout_backward_row(0, rates, seeds, (row + i) * H, dstate[i], kept[i - top])
                activated = saved[row + i] if rates[0] > 0 else h[after + i]
                rnn_backward_row(dstate[i], activated, da[here + i])
            da_now, dnow = da[here + top : here + bottom], dstate[top:bottom]
            rows_by_panels(da_now, panels, 0, 1, dnow, 0, edge, dnow, False)
            finish_rows(top, bottom, state_mask, rates, kept, dstate)


@kernel(
    f"{_STATES}, {_PANELS}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments="gates! (M, 3H); h! (S, H); reset_h! (M, H); panels (Q, H, W); candidate_panels (C, H, W); "
    f"{ARGUMENTS}; {_DIVISION}",
)
def _gru_steps_forward(
    part, parts, gates, h, reset_h, panels, candidate_panels, state_mask, rates, seeds, table, edges
):
    H, edge = h.shape[1], np.empty((ROWS, panels.shape[2]), gates.dtype)
    mask = np.empty(H, h.dtype)
    for piece in share(edges.size - 1, part, parts):
        read = np.empty((read_rows(edges[piece + 1] - edges[piece], state_mask), H), h.dtype)
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            now, reset = gates[row + top : row + bottom], reset_h[row + top : row + bottom]
            z_and_r, g = now[:, : 2 * H], now[:, 2 * H :]
            x = rows_to_read(h, before, top, bottom, state_mask, read)
            rows_by_panels(x, panels, 0, 1, z_and_r, bottom - top, edge, z_and_r, False)
            for i in range(bottom - top):
                gru_gates_row(now[i], x[i], reset[i])
            rows_by_panels(reset, candidate_panels, 0, 1, g, bottom - top, edge, g, False)
            for i in range(top, bottom):
                if drops_candidate(rates, seeds):
                    mask_row(rates, seeds, (row + i) * H, mask)
                    gru_candidate_dropped_row(gates[row + i], mask, h[before + i], h[after + i])
                else:
                    gru_candidate_row(gates[row + i], h[before + i], h[after + i])
                zoneout_row(0, h[before + i], rates, seeds, (row + i) * H, h[after + i])


@kernel(
    f"{_GRADIENTS}, {_PANELS}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments="dh (m, H); dstate! (N, H); gates (M, 3H); h (S, H); reset_h (M, H); da! (m, 3H); "
    f"panels (Q, G, W); candidate_panels (Q, H, W); {ARGUMENTS}; {_DIVISION}",
)
def _gru_steps_backward(
    part, parts, dh, dstate, gates, h, reset_h, da,
    panels, candidate_panels, state_mask, rates, seeds, table, edges,
):  # fmt: skip
    H, edge = h.shape[1], np.empty((ROWS, panels.shape[2]), h.dtype)
    mask = np.empty(H, h.dtype)
    for piece in share(edges.size - 1, part, parts):
        rows = edges[piece + 1] - edges[piece]
        dreset_h, kept = np.empty((rows, H), h.dtype), np.empty((kept_rows(rows, rates), H), h.dtype)
        read = np.empty((read_rows(rows, state_mask), H), h.dtype)
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
            rows_by_panels(da_now[:, 2 * H :], candidate_panels, 0, 1, dreset, 0, edge, dreset, False)
            x = rows_to_read(h, before, top, bottom, state_mask, read)
            dread = rows_to_add(dstate, top, bottom, state_mask, apart)
            for i in range(n):
                gru_gates_backward_row(dreset[i], dread[i], now[i], x[i], da_now[i])
            rows_by_panels(da_now[:, : 2 * H], panels, 0, 1, dread, n, edge, dread, False)
            finish_carried_rows(top, bottom, state_mask, rates, kept, dread, dstate)


@kernel(
    f"{_STATES}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments=f"gates! (M, 2H); h! (S, H); saved! (M, Z); panels (Q, H, W); {ARGUMENTS}; {_DIVISION}",
)
def _simplified_gru_steps_forward(
    part, parts, gates, h, saved, panels, state_mask, rates, seeds, table, edges
):
    H, edge = h.shape[1], np.empty((ROWS, panels.shape[2]), gates.dtype)
    mask = np.empty(H, h.dtype)
    for piece in share(edges.size - 1, part, parts):
        read = np.empty((read_rows(edges[piece + 1] - edges[piece], state_mask), H), h.dtype)
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            now = gates[row + top : row + bottom]
            x = rows_to_read(h, before, top, bottom, state_mask, read)
            rows_by_panels(x, panels, 0, 1, now, now.shape[0], edge, now, False)
            for i in range(top, bottom):
                if drops_candidate(rates, seeds):
                    mask_row(rates, seeds, (row + i) * H, mask)
                    simplified_gru_dropped_row(gates[row + i], mask, h[before + i], h[after + i])
                else:
                    simplified_gru_row(gates[row + i], h[before + i], h[after + i])
                zoneout_row(0, h[before + i], rates, seeds, (row + i) * H, h[after + i])


@kernel(
    f"{_GRADIENTS}, {_PANELS}, {TYPES}, {_TABLES}",
    arguments="dh (m, H); dstate! (N, H); gates (M, 2H); h (S, H); saved (M, Z); da! (m, 2H); "
    f"panels (Q, G, W); {ARGUMENTS}; {_DIVISION}",
)
def _simplified_gru_steps_backward(
    part, parts, dh, dstate, gates, h, saved, da, panels, state_mask, rates, seeds, table, edges
):
    H, edge = h.shape[1], np.empty((ROWS, panels.shape[2]), h.dtype)
    mask = np.empty(H, h.dtype)
    for piece in share(edges.size - 1, part, parts):
        rows = edges[piece + 1] - edges[piece]
        kept = np.empty((kept_rows(rows, rates), H), h.dtype)
        apart = np.empty((read_rows(rows, state_mask), H), h.dtype)
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
            rows_by_panels(da_now, panels, 0, 1, dread, bottom - top, edge, dread, False)
            finish_carried_rows(top, bottom, state_mask, rates, kept, dread, dstate)


# by cell, then by whether the sequences are divided, and whether factors are rounded
FORWARD = {
    "rnn": {(True, False): _rnn_steps_forward},
    "gru": {(True, False): _gru_steps_forward},
    "simplified_gru": {(True, False): _simplified_gru_steps_forward},
}
BACKWARD = {
    "rnn": {(True, False): _rnn_steps_backward},
    "gru": {(True, False): _gru_steps_backward},
    "simplified_gru": {(True, False): _simplified_gru_steps_backward},
}
