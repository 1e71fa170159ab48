"""The steps of a chunk of a vanilla RNN, a GRU and a simplified GRU by compiled kernels.

If the recurrent weight is small or there is one thread, a kernel runs all steps, and each thread has some of
the sequences. Otherwise, and with rounded factors, each primitive of a step runs on all threads.
"""

from __future__ import annotations

import numpy as np

from rnnlab.ops.numba import cells, memory, products
from rnnlab.ops.numba.cells import (
    add_row,
    gru_candidate_backward_row,
    gru_candidate_row,
    gru_gates_backward_row,
    gru_gates_row,
    rnn_backward_row,
    rnn_row,
    simplified_gru_backward_row,
    simplified_gru_row,
)
from rnnlab.ops.numba.chunks import run_by_sequences
from rnnlab.ops.numba.gemm import rows_by_panels
from rnnlab.ops.numba.kernel import kernel
from rnnlab.ops.numba.parallel import share
from rnnlab.ops.numba.registers import ROWS
from rnnlab.ops.step_by_step import step_by_step
from rnnlab.ops.steps import StepInputs, Steps
from rnnlab.types import Array

__all__ = [
    "gru_steps_backward",
    "gru_steps_forward",
    "rnn_steps_backward",
    "rnn_steps_forward",
    "simplified_gru_steps_backward",
    "simplified_gru_steps_forward",
]

_by_steps = step_by_step(memory, products, cells)


def rnn_steps_forward(
    gates: Array, Wh: Array, h: Array, steps: Steps, inputs: StepInputs | None = None
) -> None:
    arrays, H = [gates, h], h.shape[1]
    weights = [(Wh, (H, H))]
    if not run_by_sequences(_rnn_steps_forward, arrays, weights, steps, inputs, states=h, rows=gates):
        _by_steps.rnn_steps_forward(gates, Wh, h, steps, inputs)


def rnn_steps_backward(dh: Array, dstate: Array, h: Array, da: Array, to_h: Array, steps: Steps) -> None:
    arrays, H = [dh, dstate, h, da], h.shape[1]
    weights = [(to_h, (H, H))]
    if not run_by_sequences(_rnn_steps_backward, arrays, weights, steps, states=h, own=dh, first=dstate):
        _by_steps.rnn_steps_backward(*arrays, to_h, steps)


def gru_steps_forward(
    gates: Array,
    Wh_gates: Array,
    Wh_candidate: Array,
    h: Array,
    reset_h: Array,
    steps: Steps,
    inputs: StepInputs | None = None,
) -> None:
    arrays, H = [gates, h, reset_h], h.shape[1]
    weights = [(Wh_gates, (H, 2 * H)), (Wh_candidate, (H, H))]
    if not run_by_sequences(_gru_steps_forward, arrays, weights, steps, inputs, states=h, rows=gates):
        _by_steps.gru_steps_forward(gates, Wh_gates, Wh_candidate, h, reset_h, steps, inputs)


def gru_steps_backward(
    dh: Array,
    dstate: Array,
    gates: Array,
    h: Array,
    da: Array,
    gates_to_h: Array,
    candidate_to_h: Array,
    steps: Steps,
) -> None:
    arrays, H = [dh, dstate, gates, h, da], h.shape[1]
    weights = [(gates_to_h, (2 * H, H)), (candidate_to_h, (H, H))]
    rows_of = {"states": h, "rows": gates, "own": dh, "first": dstate}
    if not run_by_sequences(_gru_steps_backward, arrays, weights, steps, **rows_of):
        _by_steps.gru_steps_backward(*arrays, gates_to_h, candidate_to_h, steps)


def simplified_gru_steps_forward(
    gates: Array, Wh: Array, h: Array, steps: Steps, inputs: StepInputs | None = None
) -> None:
    kernel, arrays, H = _simplified_gru_steps_forward, [gates, h], h.shape[1]
    weights = [(Wh, (H, 2 * H))]
    if not run_by_sequences(kernel, arrays, weights, steps, inputs, states=h, rows=gates):
        _by_steps.simplified_gru_steps_forward(gates, Wh, h, steps, inputs)


def simplified_gru_steps_backward(
    dh: Array, dstate: Array, gates: Array, h: Array, da: Array, to_h: Array, steps: Steps
) -> None:
    kernel, arrays, H = _simplified_gru_steps_backward, [dh, dstate, gates, h, da], h.shape[1]
    weights, rows_of = [(to_h, (2 * H, H))], {"states": h, "rows": gates, "own": dh, "first": dstate}
    if not run_by_sequences(kernel, arrays, weights, steps, **rows_of):
        _by_steps.simplified_gru_steps_backward(*arrays, to_h, steps)


# ---------------------------------------------------------------- kernels


@kernel(
    "T[:,::1], T[:,::1], T[:,:,::1], int64[:,::1], int64[::1]",
    arguments="gates! (M, H); h! (S, H); panels (Q, H, W); table (T, F) 0..S; edges (E,) 0..S",
)
def _rnn_steps_forward(part, parts, gates, h, panels, table, edges):
    edge = np.empty((ROWS, panels.shape[2]), gates.dtype)
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            read, now = h[before + top : before + bottom], gates[row + top : row + bottom]
            rows_by_panels(read, panels, 0, 1, now, now.shape[0], edge, now, False)
            for i in range(top, bottom):
                rnn_row(gates[row + i], h[after + i])


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], int64[:,::1], int64[::1]",
    arguments="dh (m, H); dstate! (N, H); h (S, H); da! (m, H); panels (Q, H, W); table (T, F) 0..S; "
    "edges (E,) 0..S",
)
def _rnn_steps_backward(part, parts, dh, dstate, h, da, panels, table, edges):
    edge = np.empty((ROWS, panels.shape[2]), h.dtype)
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            here, after = table[t, 0] - table[0, 0], table[t, 2]
            for i in range(top, bottom):
                add_row(dh[here + i], dstate[i])
                rnn_backward_row(dstate[i], h[after + i], da[here + i])
            da_now, dnow = da[here + top : here + bottom], dstate[top:bottom]
            rows_by_panels(da_now, panels, 0, 1, dnow, 0, edge, dnow, False)


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], T[:,:,::1], int64[:,::1], int64[::1]",
    arguments="gates! (M, 3H); h! (S, H); reset_h! (M, H); panels (Q, H, W); candidate_panels (C, H, W); "
    "table (T, F) 0..S; edges (E,) 0..S",
)
def _gru_steps_forward(part, parts, gates, h, reset_h, panels, candidate_panels, table, edges):
    H, edge = h.shape[1], np.empty((ROWS, panels.shape[2]), gates.dtype)
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            read, reset = h[before + top : before + bottom], reset_h[row + top : row + bottom]
            z_and_r, g = gates[row + top : row + bottom, : 2 * H], gates[row + top : row + bottom, 2 * H :]
            rows_by_panels(read, panels, 0, 1, z_and_r, bottom - top, edge, z_and_r, False)
            for i in range(top, bottom):
                gru_gates_row(gates[row + i], h[before + i], reset_h[row + i])
            rows_by_panels(reset, candidate_panels, 0, 1, g, bottom - top, edge, g, False)
            for i in range(top, bottom):
                gru_candidate_row(gates[row + i], h[before + i], h[after + i])


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], T[:,:,::1], int64[:,::1], int64[::1]",
    arguments="dh (m, H); dstate! (N, H); gates (M, 3H); h (S, H); da! (m, 3H); panels (Q, G, W); "
    "candidate_panels (Q, H, W); table (T, F) 0..S; edges (E,) 0..S",
)
def _gru_steps_backward(part, parts, dh, dstate, gates, h, da, panels, candidate_panels, table, edges):
    H, edge = h.shape[1], np.empty((ROWS, panels.shape[2]), h.dtype)
    for piece in share(edges.size - 1, part, parts):
        dreset_h = np.empty((edges[piece + 1] - edges[piece], H), h.dtype)
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            row, before, here = table[t, 0], table[t, 1], table[t, 0] - table[0, 0]
            for i in range(top, bottom):
                add_row(dh[here + i], dstate[i])
                gru_candidate_backward_row(dstate[i], gates[row + i], h[before + i], da[here + i])
            da_now, dnow = da[here + top : here + bottom], dstate[top:bottom]
            dreset = dreset_h[: bottom - top]
            rows_by_panels(da_now[:, 2 * H :], candidate_panels, 0, 1, dreset, 0, edge, dreset, False)
            for i in range(top, bottom):
                gru_gates_backward_row(
                    dreset[i - top], dstate[i], gates[row + i], h[before + i], da[here + i]
                )
            rows_by_panels(da_now[:, : 2 * H], panels, 0, 1, dnow, bottom - top, edge, dnow, False)


@kernel(
    "T[:,::1], T[:,::1], T[:,:,::1], int64[:,::1], int64[::1]",
    arguments="gates! (M, 2H); h! (S, H); panels (Q, H, W); table (T, F) 0..S; edges (E,) 0..S",
)
def _simplified_gru_steps_forward(part, parts, gates, h, panels, table, edges):
    edge = np.empty((ROWS, panels.shape[2]), gates.dtype)
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, after = table[t, 0], table[t, 1], table[t, 2]
            read, now = h[before + top : before + bottom], gates[row + top : row + bottom]
            rows_by_panels(read, panels, 0, 1, now, now.shape[0], edge, now, False)
            for i in range(top, bottom):
                simplified_gru_row(gates[row + i], h[before + i], h[after + i])


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], int64[:,::1], int64[::1]",
    arguments="dh (m, H); dstate! (N, H); gates (M, 2H); h (S, H); da! (m, 2H); panels (Q, G, W); "
    "table (T, F) 0..S; edges (E,) 0..S",
)
def _simplified_gru_steps_backward(part, parts, dh, dstate, gates, h, da, panels, table, edges):
    edge = np.empty((ROWS, panels.shape[2]), h.dtype)
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            row, before, here = table[t, 0], table[t, 1], table[t, 0] - table[0, 0]
            for i in range(top, bottom):
                add_row(dh[here + i], dstate[i])
                simplified_gru_backward_row(dstate[i], gates[row + i], h[before + i], da[here + i])
            da_now, dnow = da[here + top : here + bottom], dstate[top:bottom]
            rows_by_panels(da_now, panels, 0, 1, dnow, bottom - top, edge, dnow, False)
