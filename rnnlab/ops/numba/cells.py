"""The primitives of recurrent cells as kernels: one pass over each row, which stays in the cache.

Each equation has its own loop. A loop vectorises only if the compiler can check beforehand that the arrays
which it writes do not overlap those which it reads, and the compiler gives up beyond a few arrays.
"""

from __future__ import annotations

from rnnlab.ops.numba.kernel import inlined, kernel, primitive
from rnnlab.ops.numba.math import sigmoid, tanh
from rnnlab.ops.numba.parallel import share

_UNITS = 1 << 15  # hidden units for which a step takes some 50 microseconds, worth waking other threads


@primitive
@kernel("T[:,::1], T[:,::1]", parallel_from=4 * _UNITS)
def rnn_forward(part, parts, gates, h):
    """h = gates = tanh(a)."""
    for row in share(h.shape[0], part, parts):
        rnn_row(gates[row], h[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1]", parallel_from=4 * _UNITS)
def rnn_backward(part, parts, dh, gates, da):
    """da = dh (1 - tanh(a)^2)."""
    for row in share(dh.shape[0], part, parts):
        rnn_backward_row(dh[row], gates[row], da[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=4 * _UNITS)
def lstm_forward(part, parts, gates, prev_c, c, tanh_c, h):
    """i, f, o = sigmoid(a); g = tanh(a); c = f prev_c + i g; h = o tanh(c)."""
    H = c.shape[1]
    for row in share(c.shape[0], part, parts):
        sigmoid_row(gates[row, : 3 * H])
        tanh_row(gates[row, 3 * H :])
        lstm_state_row(gates[row], gates[row, 3 * H :], prev_c[row], c[row], tanh_c[row], h[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=4 * _UNITS)
def lstm_dropped_forward(part, parts, gates, mask, prev_c, c, tanh_c, h):
    """c = f prev_c + i (mask g); h serves as workspace for mask g until it is written."""
    H = c.shape[1]
    for row in share(c.shape[0], part, parts):
        sigmoid_row(gates[row, : 3 * H])
        tanh_row(gates[row, 3 * H :])
        multiply_row(mask[row], gates[row, 3 * H :], h[row])
        lstm_state_row(gates[row], h[row], prev_c[row], c[row], tanh_c[row], h[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=_UNITS)
def lstm_backward(part, parts, dh, dc, gates, prev_c, tanh_c, da):
    """The equations of :mod:`rnnlab.layers.recurrent.lstm`; dc becomes the gradient of c_{t-1}."""
    for row in share(dc.shape[0], part, parts):
        lstm_backward_row(dh[row], dc[row], gates[row], prev_c[row], tanh_c[row], da[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=_UNITS)
def lstm_dropped_backward(part, parts, dh, dc, gates, mask, prev_c, tanh_c, da):
    """The same with di and dg multiplied by the mask."""
    H = dc.shape[1]
    for row in share(dc.shape[0], part, parts):
        lstm_backward_row(dh[row], dc[row], gates[row], prev_c[row], tanh_c[row], da[row])
        scale_row(da[row, :H], mask[row])
        scale_row(da[row, 3 * H :], mask[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1]", parallel_from=3 * _UNITS)
def gru_gates_forward(part, parts, gates, prev_h, reset_h):
    """z, r = sigmoid(a); reset_h = r prev_h."""
    for row in share(prev_h.shape[0], part, parts):
        gru_gates_row(gates[row], prev_h[row], reset_h[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1]", parallel_from=3 * _UNITS)
def gru_candidate_forward(part, parts, gates, prev_h, h):
    """g = tanh(a); h = (1 - z) g + z prev_h."""
    for row in share(prev_h.shape[0], part, parts):
        gru_candidate_row(gates[row], prev_h[row], h[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=3 * _UNITS)
def gru_candidate_dropped_forward(part, parts, gates, mask, prev_h, h):
    """h = (1 - z) (mask g) + z prev_h."""
    for row in share(prev_h.shape[0], part, parts):
        gru_candidate_dropped_row(gates[row], mask[row], prev_h[row], h[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=_UNITS)
def gru_candidate_backward(part, parts, dh, gates, prev_h, da):
    """da_z = dh (prev_h - g) z (1 - z); da_g = dh (1 - z) (1 - g^2); dh = dh z."""
    for row in share(prev_h.shape[0], part, parts):
        gru_candidate_backward_row(dh[row], gates[row], prev_h[row], da[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=_UNITS)
def gru_candidate_dropped_backward(part, parts, dh, gates, mask, prev_h, da):
    """da_z = dh (prev_h - mask g) z (1 - z); da_g = dh (1 - z) mask (1 - g^2); dh = dh z."""
    for row in share(prev_h.shape[0], part, parts):
        gru_candidate_dropped_backward_row(dh[row], gates[row], mask[row], prev_h[row], da[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=_UNITS)
def gru_gates_backward(part, parts, dreset_h, dh, gates, prev_h, da):
    """da_r = dreset_h prev_h r (1 - r); dh += dreset_h r."""
    for row in share(prev_h.shape[0], part, parts):
        gru_gates_backward_row(dreset_h[row], dh[row], gates[row], prev_h[row], da[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1]", parallel_from=2 * _UNITS)
def simplified_gru_forward(part, parts, gates, prev_h, h):
    """z = sigmoid(a); g = tanh(a); h = (1 - z) g + z prev_h."""
    for row in share(prev_h.shape[0], part, parts):
        simplified_gru_row(gates[row], prev_h[row], h[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=2 * _UNITS)
def simplified_gru_dropped_forward(part, parts, gates, mask, prev_h, h):
    """h = (1 - z) (mask g) + z prev_h."""
    for row in share(prev_h.shape[0], part, parts):
        simplified_gru_dropped_row(gates[row], mask[row], prev_h[row], h[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=_UNITS)
def simplified_gru_backward(part, parts, dh, gates, prev_h, da):
    """da_z = dh (prev_h - g) z (1 - z); da_g = dh (1 - z) (1 - g^2); dh = dh z."""
    for row in share(prev_h.shape[0], part, parts):
        simplified_gru_backward_row(dh[row], gates[row], prev_h[row], da[row])


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], T[:,::1], T[:,::1]", parallel_from=_UNITS)
def simplified_gru_dropped_backward(part, parts, dh, gates, mask, prev_h, da):
    """da_z = dh (prev_h - mask g) z (1 - z); da_g = dh (1 - z) mask (1 - g^2); dh = dh z."""
    for row in share(prev_h.shape[0], part, parts):
        simplified_gru_dropped_backward_row(dh[row], gates[row], mask[row], prev_h[row], da[row])


# ---------------------------------------------------------------- of one row


@inlined
def sigmoid_row(a):
    for j in range(a.size):
        a[j] = sigmoid(a[j])


@inlined
def tanh_row(a):
    for j in range(a.size):
        a[j] = tanh(a[j])


@inlined
def rnn_row(gates, h):
    tanh_row(gates)
    copy_row(gates, h)


@inlined
def rnn_backward_row(dh, gates, da):
    one = gates.dtype.type(1)
    for j in range(gates.size):
        da[j] = dh[j] * (one - gates[j] * gates[j])


@inlined
def copy_row(x, out):
    for j in range(out.size):
        out[j] = x[j]


@inlined
def add_row(x, out):
    for j in range(out.size):
        out[j] += x[j]


@inlined
def multiply_row(x, y, out):
    for j in range(out.size):
        out[j] = x[j] * y[j]


@inlined
def scale_row(x, y):
    for j in range(x.size):
        x[j] *= y[j]


@inlined
def lstm_state_row(gates, g, prev_c, c, tanh_c, h):
    H = c.size
    i, f, o = gates[:H], gates[H : 2 * H], gates[2 * H : 3 * H]
    for j in range(H):
        c[j] = f[j] * prev_c[j] + i[j] * g[j]
    for j in range(H):
        tanh_c[j] = tanh(c[j])
    for j in range(H):
        h[j] = o[j] * tanh_c[j]


@inlined
def lstm_backward_row(dh, dc, gates, prev_c, tanh_c, da):
    H, one = dc.size, dc.dtype.type(1)
    i, f, o, g = gates[:H], gates[H : 2 * H], gates[2 * H : 3 * H], gates[3 * H :]
    di, df, do, dg = da[:H], da[H : 2 * H], da[2 * H : 3 * H], da[3 * H :]
    for j in range(H):
        dc[j] += dh[j] * o[j] * (one - tanh_c[j] * tanh_c[j])
    for j in range(H):
        di[j] = dc[j] * g[j] * i[j] * (one - i[j])
    for j in range(H):
        df[j] = dc[j] * prev_c[j] * f[j] * (one - f[j])
    for j in range(H):
        do[j] = dh[j] * tanh_c[j] * o[j] * (one - o[j])
    for j in range(H):
        dg[j] = dc[j] * i[j] * (one - g[j] * g[j])
    for j in range(H):
        dc[j] *= f[j]


@inlined
def gru_gates_row(gates, prev_h, reset_h):
    H = prev_h.size
    sigmoid_row(gates[: 2 * H])
    multiply_row(gates[H : 2 * H], prev_h, reset_h)


@inlined
def gru_candidate_row(gates, prev_h, h):
    H = prev_h.size
    z, g = gates[:H], gates[2 * H :]
    tanh_row(g)
    _interpolate(z, g, prev_h, h)


@inlined
def gru_candidate_dropped_row(gates, mask, prev_h, h):
    H = prev_h.size
    z, g = gates[:H], gates[2 * H :]
    tanh_row(g)
    _interpolate_dropped(z, g, mask, prev_h, h)


@inlined
def gru_candidate_dropped_backward_row(dh, gates, mask, prev_h, da):
    H = prev_h.size
    _interpolate_dropped_backward(dh, gates[:H], gates[2 * H :], mask, prev_h, da[:H], da[2 * H :])


@inlined
def gru_candidate_backward_row(dh, gates, prev_h, da):
    H = prev_h.size
    _interpolate_backward(dh, gates[:H], gates[2 * H :], prev_h, da[:H], da[2 * H :])


@inlined
def gru_gates_backward_row(dreset_h, dh, gates, prev_h, da):
    H, one = prev_h.size, prev_h.dtype.type(1)
    r, dr = gates[H : 2 * H], da[H : 2 * H]
    for j in range(H):
        dr[j] = dreset_h[j] * prev_h[j] * r[j] * (one - r[j])
    for j in range(H):
        dh[j] += dreset_h[j] * r[j]


@inlined
def simplified_gru_row(gates, prev_h, h):
    H = prev_h.size
    z, g = gates[:H], gates[H:]
    sigmoid_row(z)
    tanh_row(g)
    _interpolate(z, g, prev_h, h)


@inlined
def simplified_gru_dropped_row(gates, mask, prev_h, h):
    H = prev_h.size
    z, g = gates[:H], gates[H:]
    sigmoid_row(z)
    tanh_row(g)
    _interpolate_dropped(z, g, mask, prev_h, h)


@inlined
def simplified_gru_dropped_backward_row(dh, gates, mask, prev_h, da):
    H = prev_h.size
    _interpolate_dropped_backward(dh, gates[:H], gates[H:], mask, prev_h, da[:H], da[H:])


@inlined
def simplified_gru_backward_row(dh, gates, prev_h, da):
    H = prev_h.size
    _interpolate_backward(dh, gates[:H], gates[H:], prev_h, da[:H], da[H:])


@inlined
def _interpolate(z, g, prev_h, h):
    for j in range(h.size):
        h[j] = g[j] + z[j] * (prev_h[j] - g[j])  # (1 - z) g + z prev_h


@inlined
def _interpolate_dropped(z, g, mask, prev_h, h):
    for j in range(h.size):
        masked = mask[j] * g[j]
        h[j] = masked + z[j] * (prev_h[j] - masked)


@inlined
def _interpolate_backward(dh, z, g, prev_h, da_z, da_g):
    one = z.dtype.type(1)
    for j in range(z.size):
        da_z[j] = dh[j] * (prev_h[j] - g[j]) * z[j] * (one - z[j])
    _candidate_backward(dh, z, g, da_g)


@inlined
def _interpolate_dropped_backward(dh, z, g, mask, prev_h, da_z, da_g):
    one = z.dtype.type(1)
    for j in range(z.size):
        da_z[j] = dh[j] * (prev_h[j] - mask[j] * g[j]) * z[j] * (one - z[j])
    _candidate_backward(dh, z, g, da_g)
    scale_row(da_g, mask)


@inlined
def _candidate_backward(dh, z, g, da_g):
    one = z.dtype.type(1)
    for j in range(z.size):
        da_g[j] = dh[j] * (one - z[j]) * (one - g[j] * g[j])
    for j in range(z.size):
        dh[j] *= z[j]
