"""The recurrent cells' primitives on NumPy, one step of the active rows.

``gates`` come in as pre-activations and leave as activations; ``da`` is a gradient with respect to
pre-activations. ``keep`` (n, H), 0 or 1 / (1 - p), is a mask on the candidate g of a cell: recurrent dropout
without memory loss (Semeniuta et al. 2016). ``gates`` hold the g that it has not multiplied.
"""

from __future__ import annotations

import numpy as np

from rnnlab.types import Array


def sigmoid(x: Array, out: Array | None = None) -> Array:
    """1 / (1 + exp(-x)), written as a tanh: it cannot overflow, and NumPy's tanh is vectorised."""
    out = np.multiply(x, 0.5, out=out)
    np.tanh(out, out=out)
    out *= 0.5
    out += 0.5
    return out


def rnn_forward(a: Array, h: Array) -> None:
    """h = tanh(a), both (n, H)."""
    np.tanh(a, out=h)


def rnn_backward(dh: Array, h: Array, da: Array) -> None:
    """da = dh (1 - h^2), all (n, H); ``da`` is written."""
    np.multiply(h, h, out=da)
    np.subtract(1, da, out=da)
    da *= dh


def lstm_forward(gates: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
    """Activate the gates i, f, o, g, (n, 4H), and write c = f prev_c + i g, tanh(c) and h, (n, H)."""
    g = _lstm_gates(gates)
    _lstm_state(gates, g, prev_c, c, tanh_c, h)


def lstm_dropped_forward(gates: Array, keep: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
    """:func:`lstm_forward` with c = f prev_c + i (keep g)."""
    g = _lstm_gates(gates)
    _lstm_state(gates, keep * g, prev_c, c, tanh_c, h)


def lstm_backward(dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array) -> None:
    """Write da (n, 4H); ``dc`` comes in as the gradient of c_t and leaves as that of c_{t-1}."""
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


def lstm_dropped_backward(
    dh: Array, dc: Array, gates: Array, keep: Array, prev_c: Array, tanh_c: Array, da: Array
) -> None:
    """Backward of :func:`lstm_dropped_forward`, as :func:`lstm_backward`."""
    H = dc.shape[1]
    lstm_backward(dh, dc, gates, prev_c, tanh_c, da)
    da[:, :H] *= keep
    da[:, 3 * H :] *= keep


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


def gru_gates_forward(gates: Array, prev_h: Array, reset_h: Array) -> None:
    """Activate z and r in ``gates`` (n, 3H); write reset_h = r prev_h, (n, H)."""
    H = prev_h.shape[1]
    sigmoid(gates[:, : 2 * H], out=gates[:, : 2 * H])
    np.multiply(gates[:, H : 2 * H], prev_h, out=reset_h)


def gru_candidate_forward(gates: Array, prev_h: Array, h: Array) -> None:
    """Activate the candidate in ``gates`` (n, 3H); write h = (1 - z) g + z prev_h, (n, H)."""
    H = prev_h.shape[1]
    g = gates[:, 2 * H :]
    np.tanh(g, out=g)
    _interpolate(gates[:, :H], g, prev_h, h)


def gru_candidate_dropped_forward(gates: Array, keep: Array, prev_h: Array, h: Array) -> None:
    """:func:`gru_candidate_forward` with h = (1 - z) (keep g) + z prev_h."""
    H = prev_h.shape[1]
    g = gates[:, 2 * H :]
    np.tanh(g, out=g)
    _interpolate(gates[:, :H], keep * g, prev_h, h)


def gru_candidate_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write the z and candidate parts of da (n, 3H); ``dh`` leaves as its direct share of dprev_h, dh z."""
    H = prev_h.shape[1]
    g = gates[:, 2 * H :]
    _interpolate_backward(dh, gates[:, :H], g, g, prev_h, da[:, :H], da[:, 2 * H :])


def gru_candidate_dropped_backward(dh: Array, gates: Array, keep: Array, prev_h: Array, da: Array) -> None:
    """Backward of :func:`gru_candidate_dropped_forward`, as :func:`gru_candidate_backward`."""
    H = prev_h.shape[1]
    g, da_g = gates[:, 2 * H :], da[:, 2 * H :]
    _interpolate_backward(dh, gates[:, :H], g, keep * g, prev_h, da[:, :H], da_g)
    da_g *= keep


def gru_gates_backward(dreset_h: Array, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write the r part of da (n, 3H) and add dreset_h r to ``dh``; ``dreset_h`` is scratch afterwards."""
    H = prev_h.shape[1]
    r, dr = gates[:, H : 2 * H], da[:, H : 2 * H]
    np.subtract(1, r, out=dr)
    dr *= r
    dr *= prev_h
    dr *= dreset_h
    dreset_h *= r
    dh += dreset_h


def simplified_gru_forward(gates: Array, prev_h: Array, h: Array) -> None:
    """Activate the gates z, g, (n, 2H); write h = (1 - z) g + z prev_h, (n, H)."""
    z, g = _simplified_gru_gates(gates)
    _interpolate(z, g, prev_h, h)


def simplified_gru_dropped_forward(gates: Array, keep: Array, prev_h: Array, h: Array) -> None:
    """:func:`simplified_gru_forward` with h = (1 - z) (keep g) + z prev_h."""
    z, g = _simplified_gru_gates(gates)
    _interpolate(z, keep * g, prev_h, h)


def simplified_gru_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write da (n, 2H); ``dh`` leaves as its direct share of dprev_h, dh z."""
    H = prev_h.shape[1]
    g = gates[:, H:]
    _interpolate_backward(dh, gates[:, :H], g, g, prev_h, da[:, :H], da[:, H:])


def simplified_gru_dropped_backward(dh: Array, gates: Array, keep: Array, prev_h: Array, da: Array) -> None:
    """Backward of :func:`simplified_gru_dropped_forward`, as :func:`simplified_gru_backward`."""
    H = prev_h.shape[1]
    g, da_g = gates[:, H:], da[:, H:]
    _interpolate_backward(dh, gates[:, :H], g, keep * g, prev_h, da[:, :H], da_g)
    da_g *= keep


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
    """``mixed`` is what was interpolated with prev_h: g, or keep g, whose keep da_g lacks."""
    np.subtract(1, z, out=da_g)  # scratch: 1 - z
    np.subtract(prev_h, mixed, out=da_z)
    da_z *= z
    da_z *= da_g
    da_z *= dh
    da_g *= dh
    dh *= z
    da_g *= 1 - g * g
