"""The steps of a chunk of an LSTM by compiled kernels.

One kernel runs all steps. If the recurrent weight is small, each thread has some of the sequences, and its
cache holds the whole weight. The columns of a larger weight are divided among the threads, so that each of
their caches holds a part of it; the threads then wait for each other twice per step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rnnlab.ops.numba import bfloat16, cells, memory, products
from rnnlab.ops.numba.bfloat16 import RoundedPanels, begin_tiles, end_tiles, pairs_by_panels, round_rows
from rnnlab.ops.numba.cells import add_row, lstm_backward_row, lstm_state_row, sigmoid_row, tanh_row
from rnnlab.ops.numba.chunks import are_inside, edges, is_weight, number_of, shared
from rnnlab.ops.numba.gemm import Panels, rows_by_panels
from rnnlab.ops.numba.kernel import Kernel, RefusedError, inlined, kernel, phase
from rnnlab.ops.numba.parallel import in_parts, share
from rnnlab.ops.numba.products import NARROW
from rnnlab.ops.numba.registers import ROWS
from rnnlab.ops.step_by_step import step_by_step
from rnnlab.ops.steps import StepInputs, Steps
from rnnlab.types import Array

__all__ = ["lstm_steps_backward", "lstm_steps_forward"]

_by_steps = step_by_step(memory, products, cells)


def lstm_steps_forward(
    gates: Array,
    Wh: Array,
    h: Array,
    c: Array,
    tanh_c: Array,
    steps: Steps,
    inputs: StepInputs | None = None,
) -> None:
    arrays, H = [gates, h, c, tanh_c], h.shape[1]
    fit = is_weight(Wh, (H, 4 * H), gates.dtype) and are_inside(steps, states=h, rows=gates)
    if fit and inputs is not None:
        if _run_narrow(inputs, arrays, Wh, steps):
            return
        products.affine_into(*inputs, gates[steps.rows])
        inputs = None
    if not fit or not _run(_FORWARD, arrays, Wh, steps):
        _by_steps.lstm_steps_forward(gates, Wh, h, c, tanh_c, steps, inputs)


def lstm_steps_backward(
    dh: Array,
    dstate: Array,
    dcell: Array,
    gates: Array,
    c: Array,
    tanh_c: Array,
    da: Array,
    to_h: Array,
    steps: Steps,
) -> None:
    arrays, H = [dh, dstate, dcell, gates, c, tanh_c, da], c.shape[1]
    fit = is_weight(to_h, (4 * H, H), gates.dtype)
    fit = fit and are_inside(steps, states=c, rows=gates, own=dh, first=dstate)
    if not fit or not _run(_BACKWARD, arrays, to_h, steps):
        _by_steps.lstm_steps_backward(*arrays, to_h, steps)


class _Kernels(NamedTuple):
    """The kernels, by what is divided among the threads, in full precision and with rounded factors."""

    sequences: tuple[Kernel, Kernel]
    weight: tuple[Kernel, Kernel]


def _run_narrow(inputs: StepInputs, arrays: list[Array], weight: Panels, steps: Steps) -> bool:
    """Run all steps of a narrow input in one kernel; false if there is none for these arrays."""
    (x, Wx, b), (parts, by_sequences) = inputs, shared([weight], steps)
    if not by_sequences or isinstance(weight, RoundedPanels) or x.ndim != 2:
        return False
    shape = x.shape[1], weight.shape[1]
    if shape[0] > NARROW or not is_weight(Wx, shape, weight.dtype) or isinstance(Wx, RoundedPanels):
        return False
    if len(x) != number_of(steps) or b.shape != shape[1:]:
        return False
    given = *arrays, weight.panels, x, Wx.panels, b[None], steps.table, edges(steps.table[:, 3], parts)
    try:
        _lstm_narrow_forward.run(parts, *given)
    except RefusedError:
        return False
    return True


def _run(kernels: _Kernels, arrays: list[Array], weight: Panels, steps: Steps) -> bool:
    """Run all steps by the kernel for this weight; false if the arrays have another layout."""
    table, (parts, by_sequences) = steps.table, shared([weight], steps)
    run = (kernels.sequences if by_sequences else kernels.weight)[isinstance(weight, RoundedPanels)].run
    given: list[Any] = [*arrays, weight.panels]
    if isinstance(weight, RoundedPanels):
        given.append(weight.scratch(int(table[0, 3]), parts if by_sequences else 1))
    try:
        if by_sequences:
            run(parts, *given, table, edges(table[:, 3], parts))
        else:
            run(parts, *given, table)
    except RefusedError:
        return False
    return True


# ---------------------------------------------------------------- kernels


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], int64[:,::1], int64[::1]",
    arguments="gates! (M, 4H); h! (S, H); c! (S, H); tanh_c! (M, H); panels (Q, H, W); "
    "table (T, F) 0..S; edges (E,) 0..S",
)
def _lstm_steps_forward(part, parts, gates, h, c, tanh_c, panels, table, edges):
    """The sequences are shared."""
    edge = np.empty((ROWS, panels.shape[2]), gates.dtype)
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before = table[t, 0], table[t, 1]
            read, now = h[before + top : before + bottom], gates[row + top : row + bottom]
            rows_by_panels(read, panels, 0, 1, now, now.shape[0], edge, now, False)
            _forward_step(table, t, top, bottom, gates, h, c, tanh_c)


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], T[:,::1], T[:,:,::1], T[:,::1], "
    "int64[:,::1], int64[::1]",
    arguments="gates! (M, 4H); h! (S, H); c! (S, H); tanh_c! (M, H); panels (Q, H, W); x (m, D); "
    "x_panels (Q, D, W); b (I, 4H); table (T, F) 0..S; edges (E,) 0..S",
)
def _lstm_narrow_forward(part, parts, gates, h, c, tanh_c, panels, x, x_panels, b, table, edges):
    """The same, including the products of a narrow input, which would be slower to read from memory."""
    edge = np.empty((ROWS, panels.shape[2]), gates.dtype)
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before, here = table[t, 0], table[t, 1], table[t, 0] - table[0, 0]
            read, now = h[before + top : before + bottom], gates[row + top : row + bottom]
            rows_by_panels(x[here + top : here + bottom], x_panels, 0, 1, b, 1, edge, now, False)
            rows_by_panels(read, panels, 0, 1, now, now.shape[0], edge, now, False)
            _forward_step(table, t, top, bottom, gates, h, c, tanh_c)


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], uint32[:,:,::1], uint32[:,:,::1], int64[:,::1], int64[::1]",
    arguments="gates! (M, 4H); h! (S, H); c! (S, H); tanh_c! (M, H); panels (Q, P, W) uint32; "
    "rows! (B, R, P) uint32; table (T, F) 0..S; edges (E,) 0..S",
    dtypes=bfloat16.VERSIONS,
)
def _lstm_steps_rounded_forward(part, parts, gates, h, c, tanh_c, panels, rows, table, edges):
    """The same with factors in bfloat16."""
    edge = np.empty((bfloat16.ROWS, panels.shape[2]), gates.dtype)
    begin_tiles()
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0]):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                break
            row, before = table[t, 0], table[t, 1]
            read, now = h[before + top : before + bottom], gates[row + top : row + bottom]
            round_rows(0, 1, read, 0, panels.shape[1], rows[piece])
            pairs_by_panels(rows[piece], panels, 0, 1, now.shape[0], edge, now, False)
            _forward_step(table, t, top, bottom, gates, h, c, tanh_c)
    end_tiles()


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], "
    "int64[:,::1], int64[::1]",
    arguments="dh (m, H); dstate! (N, H); dcell! (N, H); gates (M, 4H); c (S, H); tanh_c (M, H); "
    "da! (m, 4H); panels (Q, G, W); table (T, F) 0..S; edges (E,) 0..S",
)
def _lstm_steps_backward(part, parts, dh, dstate, dcell, gates, c, tanh_c, da, panels, table, edges):
    """The sequences are shared."""
    edge = np.empty((ROWS, panels.shape[2]), gates.dtype)
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            _backward_step(table, t, top, bottom, dh, dstate, dcell, gates, c, tanh_c, da)
            here = table[t, 0] - table[0, 0]
            da_now, dnow = da[here + top : here + bottom], dstate[top:bottom]
            rows_by_panels(da_now, panels, 0, 1, dnow, 0, edge, dnow, False)


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], uint32[:,:,::1], uint32[:,:,::1], "
    "int64[:,::1], int64[::1]",
    arguments="dh (m, H); dstate! (N, H); dcell! (N, H); gates (M, 4H); c (S, H); tanh_c (M, H); "
    "da! (m, 4H); panels (Q, P, W) uint32; rows! (B, R, P) uint32; table (T, F) 0..S; edges (E,) 0..S",
    dtypes=bfloat16.VERSIONS,
)
def _lstm_steps_rounded_backward(
    part, parts, dh, dstate, dcell, gates, c, tanh_c, da, panels, rows, table, edges
):
    """The same with factors in bfloat16."""
    edge = np.empty((bfloat16.ROWS, panels.shape[2]), gates.dtype)
    begin_tiles()
    for piece in share(edges.size - 1, part, parts):
        for t in range(table.shape[0] - 1, -1, -1):
            top, bottom = edges[piece], min(edges[piece + 1], table[t, 3])
            if top >= bottom:
                continue
            _backward_step(table, t, top, bottom, dh, dstate, dcell, gates, c, tanh_c, da)
            here = table[t, 0] - table[0, 0]
            da_now, dnow = da[here + top : here + bottom], dstate[top:bottom]
            round_rows(0, 1, da_now, 0, panels.shape[1], rows[piece])
            pairs_by_panels(rows[piece], panels, 0, 1, 0, edge, dnow, False)
    end_tiles()


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], int64[:,::1]",
    arguments="gates! (M, 4H); h! (S, H); c! (S, H); tanh_c! (M, H); panels (Q, H, W); table (T, F) 0..S",
)
def _lstm_shared_forward(parts, gates, h, c, tanh_c, panels, table):
    """First the columns of the weight are divided among the threads, then the rows of the states."""
    for t in range(table.shape[0]):
        row, before, count = table[t, 0], table[t, 1], table[t, 3]
        read, now = h[before : before + count], gates[row : row + count]
        in_parts(parts, _multiply_part, (t, read, panels, count, now))
        in_parts(parts, _forward_part, (table, t, gates, h, c, tanh_c))


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], uint32[:,:,::1], uint32[:,:,::1], int64[:,::1]",
    arguments="gates! (M, 4H); h! (S, H); c! (S, H); tanh_c! (M, H); panels (Q, P, W) uint32; "
    "rows! (B, R, P) uint32; table (T, F) 0..S",
    dtypes=bfloat16.VERSIONS,
)
def _lstm_shared_rounded_forward(parts, gates, h, c, tanh_c, panels, rows, table):
    """The same with factors in bfloat16."""
    for t in range(table.shape[0]):
        row, before, count = table[t, 0], table[t, 1], table[t, 3]
        in_parts(parts, round_rows, (h[before : before + count], 0, panels.shape[1], rows[0]))
        in_parts(parts, _multiply_rounded_part, (t, rows[0], panels, count, gates[row : row + count]))
        in_parts(parts, _forward_part, (table, t, gates, h, c, tanh_c))


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,:,::1], int64[:,::1]",
    arguments="dh (m, H); dstate! (N, H); dcell! (N, H); gates (M, 4H); c (S, H); tanh_c (M, H); "
    "da! (m, 4H); panels (Q, G, W); table (T, F) 0..S",
)
def _lstm_shared_backward(parts, dh, dstate, dcell, gates, c, tanh_c, da, panels, table):
    """First the rows of the states are divided among the threads, then the columns of the weight."""
    for t in range(table.shape[0] - 1, -1, -1):
        here, count = table[t, 0] - table[0, 0], table[t, 3]
        in_parts(parts, _backward_part, (table, t, dh, dstate, dcell, gates, c, tanh_c, da))
        in_parts(parts, _multiply_part, (t, da[here : here + count], panels, 0, dstate[:count]))


@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], uint32[:,:,::1], uint32[:,:,::1], "
    "int64[:,::1]",
    arguments="dh (m, H); dstate! (N, H); dcell! (N, H); gates (M, 4H); c (S, H); tanh_c (M, H); "
    "da! (m, 4H); panels (Q, P, W) uint32; rows! (B, R, P) uint32; table (T, F) 0..S",
    dtypes=bfloat16.VERSIONS,
)
def _lstm_shared_rounded_backward(parts, dh, dstate, dcell, gates, c, tanh_c, da, panels, rows, table):
    """The same with factors in bfloat16."""
    for t in range(table.shape[0] - 1, -1, -1):
        here, count = table[t, 0] - table[0, 0], table[t, 3]
        in_parts(parts, _backward_part, (table, t, dh, dstate, dcell, gates, c, tanh_c, da))
        in_parts(parts, round_rows, (da[here : here + count], 0, panels.shape[1], rows[0]))
        in_parts(parts, _multiply_rounded_part, (t, rows[0], panels, 0, dstate[:count]))


_FORWARD = _Kernels(
    (_lstm_steps_forward, _lstm_steps_rounded_forward), (_lstm_shared_forward, _lstm_shared_rounded_forward)
)
_BACKWARD = _Kernels(
    (_lstm_steps_backward, _lstm_steps_rounded_backward),
    (_lstm_shared_backward, _lstm_shared_rounded_backward),
)


# ---------------------------------------------------------------- of one step


@phase
def _multiply_part(part, parts, t, x, panels, first_rows, out):
    """A part's columns of out = x w; of out += x w if ``first_rows`` is the number of rows.

    Every second step begins with the last panel, which the cache still holds from the step before.
    """
    edge = np.empty((ROWS, panels.shape[2]), out.dtype)
    rows_by_panels(x, panels, part, parts, out, first_rows, edge, out, t % 2 == 1)


@phase
def _multiply_rounded_part(part, parts, t, rows, panels, first_rows, out):
    """The same with factors in bfloat16."""
    edge = np.empty((bfloat16.ROWS, panels.shape[2]), out.dtype)
    begin_tiles()
    pairs_by_panels(rows, panels, part, parts, first_rows, edge, out, t % 2 == 1)
    end_tiles()


@phase
def _forward_part(part, parts, table, t, gates, h, c, tanh_c):
    top, bottom = part * table[t, 3] // parts, (part + 1) * table[t, 3] // parts
    _forward_step(table, t, top, bottom, gates, h, c, tanh_c)


@phase
def _backward_part(part, parts, table, t, dh, dstate, dcell, gates, c, tanh_c, da):
    top, bottom = part * table[t, 3] // parts, (part + 1) * table[t, 3] // parts
    _backward_step(table, t, top, bottom, dh, dstate, dcell, gates, c, tanh_c, da)


@inlined
def _forward_step(table, t, top, bottom, gates, h, c, tanh_c):
    H, row, before, after = c.shape[1], table[t, 0], table[t, 1], table[t, 2]
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
    row, before, here = table[t, 0], table[t, 1], table[t, 0] - table[0, 0]
    for i in range(top, bottom):
        add_row(dh[here + i], dstate[i])
        lstm_backward_row(dstate[i], dcell[i], gates[row + i], c[before + i], tanh_c[row + i], da[here + i])
