"""One step of each recurrent cell on NumPy, over the rows of the active sequences.

The ``..._dropped_...`` variants take ``mask`` (n, H), 0 or 1 / (1 - p), and multiply the cell's candidate g
by it: recurrent dropout without memory loss (Semeniuta et al. 2016). ``gates`` hold the unmasked g.
"""

from __future__ import annotations

import numpy as np

from rnnlab.ops.arguments import checked
from rnnlab.ops.numpy.activation import sigmoid
from rnnlab.types import Array


@checked
def rnn_forward(gates: Array, h: Array) -> None:
    np.tanh(gates, out=gates)
    h[...] = gates


@checked
def rnn_backward(dh: Array, gates: Array, da: Array) -> None:
    slope = gates * gates
    np.subtract(1, slope, out=slope)
    np.multiply(dh, slope, out=da)  # da may be dh


@checked
def lstm_forward(gates: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
    g = _lstm_gates(gates)
    _lstm_state(gates, g, prev_c, c, tanh_c, h)


@checked
def lstm_dropped_forward(gates: Array, mask: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
    g = _lstm_gates(gates)
    _lstm_state(gates, mask * g, prev_c, c, tanh_c, h)


@checked
def lstm_backward(dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array) -> None:
    H = dc.shape[1]
    i, f, o, g = (gates[:, k * H : (k + 1) * H] for k in range(4))
    di, df, do, dg = (da[:, k * H : (k + 1) * H] for k in range(4))
    # dc += dh o (1 - tanh(c)^2); di is scratch until it is written below
    np.multiply(tanh_c, tanh_c, out=di)
    np.subtract(1, di, out=di)
    di *= o
    di *= dh
    dc += di
    # gate gradients times the slopes of their nonlinearities: s (1 - s) for sigmoid, 1 - g^2 for tanh
    np.subtract(1, gates[:, : 3 * H], out=da[:, : 3 * H])
    da[:, : 3 * H] *= gates[:, : 3 * H]
    np.multiply(g, g, out=dg)
    np.subtract(1, dg, out=dg)
    dg *= i
    dg *= dc
    di *= g
    di *= dc
    df *= prev_c
    df *= dc
    do *= tanh_c
    do *= dh
    dc *= f


@checked
def lstm_dropped_backward(
    dh: Array, dc: Array, gates: Array, mask: Array, prev_c: Array, tanh_c: Array, da: Array
) -> None:
    H = dc.shape[1]
    lstm_backward(dh, dc, gates, prev_c, tanh_c, da)
    da[:, :H] *= mask
    da[:, 3 * H :] *= mask


def _lstm_gates(gates: Array) -> Array:
    """Activate the gates; return the candidate g."""
    H = gates.shape[1] // 4
    sigmoid(gates[:, : 3 * H], out=gates[:, : 3 * H])
    g = gates[:, 3 * H :]
    np.tanh(g, out=g)
    return g


def _lstm_state(gates: Array, g: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
    H = c.shape[1]
    i, f, o = gates[:, :H], gates[:, H : 2 * H], gates[:, 2 * H : 3 * H]
    np.multiply(f, prev_c, out=c)
    np.multiply(i, g, out=h)
    c += h
    np.tanh(c, out=tanh_c)
    np.multiply(o, tanh_c, out=h)


@checked
def gru_gates_forward(gates: Array, prev_h: Array, reset_h: Array) -> None:
    H = prev_h.shape[1]
    sigmoid(gates[:, : 2 * H], out=gates[:, : 2 * H])
    np.multiply(gates[:, H : 2 * H], prev_h, out=reset_h)


@checked
def gru_candidate_forward(gates: Array, prev_h: Array, h: Array) -> None:
    H = prev_h.shape[1]
    g = gates[:, 2 * H :]
    np.tanh(g, out=g)
    _interpolate(gates[:, :H], g, prev_h, h)


@checked
def gru_candidate_dropped_forward(gates: Array, mask: Array, prev_h: Array, h: Array) -> None:
    H = prev_h.shape[1]
    g = gates[:, 2 * H :]
    np.tanh(g, out=g)
    _interpolate(gates[:, :H], mask * g, prev_h, h)


@checked
def gru_candidate_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    H = prev_h.shape[1]
    g = gates[:, 2 * H :]
    _interpolate_backward(dh, gates[:, :H], g, g, prev_h, da[:, :H], da[:, 2 * H :])


@checked
def gru_candidate_dropped_backward(dh: Array, gates: Array, mask: Array, prev_h: Array, da: Array) -> None:
    H = prev_h.shape[1]
    g, da_g = gates[:, 2 * H :], da[:, 2 * H :]
    _interpolate_backward(dh, gates[:, :H], g, mask * g, prev_h, da[:, :H], da_g)
    da_g *= mask


@checked
def gru_gates_backward(dreset_h: Array, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    H = prev_h.shape[1]
    r, dr = gates[:, H : 2 * H], da[:, H : 2 * H]
    np.subtract(1, r, out=dr)
    dr *= r
    dr *= prev_h
    dr *= dreset_h
    dreset_h *= r
    dh += dreset_h


@checked
def simplified_gru_forward(gates: Array, prev_h: Array, h: Array) -> None:
    z, g = _simplified_gru_gates(gates)
    _interpolate(z, g, prev_h, h)


@checked
def simplified_gru_dropped_forward(gates: Array, mask: Array, prev_h: Array, h: Array) -> None:
    z, g = _simplified_gru_gates(gates)
    _interpolate(z, mask * g, prev_h, h)


@checked
def simplified_gru_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    H = prev_h.shape[1]
    g = gates[:, H:]
    _interpolate_backward(dh, gates[:, :H], g, g, prev_h, da[:, :H], da[:, H:])


@checked
def simplified_gru_dropped_backward(dh: Array, gates: Array, mask: Array, prev_h: Array, da: Array) -> None:
    H = prev_h.shape[1]
    g, da_g = gates[:, H:], da[:, H:]
    _interpolate_backward(dh, gates[:, :H], g, mask * g, prev_h, da[:, :H], da_g)
    da_g *= mask


def _simplified_gru_gates(gates: Array) -> tuple[Array, Array]:
    """Activate the gates; return both."""
    H = gates.shape[1] // 2
    z, g = gates[:, :H], gates[:, H:]
    sigmoid(z, out=z)
    np.tanh(g, out=g)
    return z, g


def _interpolate(z: Array, g: Array, prev_h: Array, h: Array) -> None:
    np.subtract(prev_h, g, out=h)  # (1 - z) g + z prev_h = g + z (prev_h - g)
    h *= z
    h += g


def _interpolate_backward(
    dh: Array, z: Array, g: Array, mixed: Array, prev_h: Array, da_z: Array, da_g: Array
) -> None:
    """``mixed``, g or mask g, was interpolated with prev_h; the caller multiplies da_g by the mask."""
    np.subtract(1, z, out=da_g)  # scratch: 1 - z
    np.subtract(prev_h, mixed, out=da_z)
    da_z *= z
    da_z *= da_g
    da_z *= dh
    da_g *= dh
    dh *= z
    da_g *= 1 - g * g
