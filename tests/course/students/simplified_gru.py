"""Mistakes in the simplified GRU: one step, and a sequence."""

from __future__ import annotations

from .mistake import ORDER, SIGN, Mistake, either

STEP_FORWARD = """
import numpy as np

def simplified_gru_step_forward(x, prev_h, Wx, Wh, b):
    H = prev_h.shape[1]
    scores = x.dot(Wx) + prev_h.dot(Wh) + b
    z = 1 / (1 + np.exp(-scores[:, :H]))
    g = np.tanh(scores[:, H:])
    return z * prev_h + g - z * g, (x, prev_h, Wx, Wh, z, g)
"""

STEP_BACKWARD = """
def simplified_gru_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, z, g = cache
    ds = np.hstack([dnext_h * (prev_h - g) * z * (1 - z), dnext_h * (1 - z) * (1 - g * g)])
    return ds.dot(Wx.T), ds.dot(Wh.T) + dnext_h * z, x.T.dot(ds), prev_h.T.dot(ds), ds.sum(axis=0)
"""

FORWARD = (
    STEP_FORWARD
    + STEP_BACKWARD
    + """
def simplified_gru_forward(x, h0, Wx, Wh, b):
    T = x.shape[1]
    states, caches = [h0], []
    for t in range(T):
        h, c = simplified_gru_step_forward(x[:, t], states[t], Wx, Wh, b)
        states.append(h)
        caches.append(c)
    return np.array(states[1:]).swapaxes(0, 1), caches
"""
)

MISTAKES = [
    Mistake(
        "simplified_gru_step_da_z_lacks_sigmoid_derivative",
        "simplified_gru_step",
        STEP_FORWARD
        + """
def simplified_gru_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, z, g = cache
    H = z.shape[1]
    d = np.zeros((len(x), 2 * H))
    d[:, :H] = (prev_h - g) * dnext_h
    d[:, H:] = (1 - g ** 2) * (1 - z) * dnext_h
    dprev_h = z * dnext_h
    dprev_h += d @ Wh.T
    return d @ Wx.T, dprev_h, x.T @ d, prev_h.T @ d, d.sum(axis=0)
""",
        either("da_z", "z|sigmoid"),
        "missing factor",
        {"(prev_h - g) * dnext_h": "(prev_h - g) * dnext_h * z * (1 - z)"},
    ),
    Mistake(
        "simplified_gru_step_da_z_lacks_g",
        "simplified_gru_step",
        """
import numpy as np

def simplified_gru_step_backward(dnext_h, cache):
    x, h, Wx, Wh, z, g = cache
    dz = dnext_h * h
    dg = dnext_h * (1 - z)
    da = np.concatenate((dz * (z - z * z), dg * (1 - g * g)), axis=1)
    dWx, dWh, db = x.T @ da, h.T @ da, np.sum(da, axis=0)
    return da @ Wx.T, dnext_h * z + da @ Wh.T, dWx, dWh, db
""",
        either("da_z", "g"),
        "missing term",
        {"dz = dnext_h * h\n": "dz = dnext_h * h - dnext_h * g\n"},
    ),
    Mistake(
        "simplified_gru_step_dprev_h_lacks_share_of_z",
        "simplified_gru_step",
        STEP_FORWARD
        + """
def simplified_gru_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, z, g = cache
    dz, dg = np.multiply(dnext_h, prev_h - g), np.multiply(dnext_h, 1 - z)
    da = np.hstack((dz * z * (1 - z), dg * (1 - g ** 2)))
    dprev_h = np.dot(da, Wh.T)
    dx = np.dot(da, Wx.T)
    return dx, dprev_h, np.dot(x.T, da), np.dot(prev_h.T, da), da.sum(0)
""",
        either("dprev_h", "z|dnext_h"),
        "missing term",
        {"dprev_h = np.dot(da, Wh.T)": "dprev_h = np.dot(da, Wh.T) + dnext_h * z"},
    ),
    Mistake(
        "simplified_gru_step_da_g_lacks_1_minus_z",
        "simplified_gru_step",
        STEP_FORWARD
        + """
def simplified_gru_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, z, g = cache
    da_z = dnext_h * z * (1 - z) * (prev_h - g)
    da_g = dnext_h * (1 - g ** 2)
    Wx_z, Wx_g = np.hsplit(Wx, 2)
    Wh_z, Wh_g = np.hsplit(Wh, 2)
    dx = da_z @ Wx_z.T + da_g @ Wx_g.T
    dprev_h = da_z @ Wh_z.T + da_g @ Wh_g.T + dnext_h * z
    dWx = np.hstack([x.T @ da_z, x.T @ da_g])
    dWh = np.hstack([prev_h.T @ da_z, prev_h.T @ da_g])
    return dx, dprev_h, dWx, dWh, np.hstack([da_z.sum(axis=0), da_g.sum(axis=0)])
""",
        either("da_g", "1 - z|1-z|z"),
        "missing factor",
        {"da_g = dnext_h * (1 - g ** 2)": "da_g = dnext_h * (1 - z) * (1 - g ** 2)"},
    ),
    Mistake(
        "simplified_gru_step_da_g_has_wrong_sign",
        "simplified_gru_step",
        STEP_FORWARD
        + """
def simplified_gru_step_backward(dnext_h, cache):
    x, h, Wx, Wh, z, g = cache
    da_z = dnext_h * (h - g) * (z - z ** 2)
    da_g = dnext_h * (z - 1) * (1 - g ** 2)
    da = np.concatenate([da_z, da_g], -1)
    return np.dot(da, Wx.T), np.dot(da, Wh.T) + z * dnext_h, np.dot(x.T, da), np.dot(h.T, da), np.sum(da, 0)
""",
        either("da_g", SIGN + "|1 - z|z - 1"),
        "wrong sign",
        {"(z - 1)": "(1 - z)"},
    ),
    Mistake(
        "simplified_gru_step_forward_gates_in_order_gz",
        "simplified_gru_step",
        """
import numpy as np

def simplified_gru_step_forward(x, prev_h, Wx, Wh, b):
    first, second = np.hsplit(x @ Wx + prev_h @ Wh + b, 2)
    g, z = np.tanh(first), (1 + np.tanh(second / 2)) / 2
    return (1 - z) * g + z * prev_h, (x, prev_h, Wx, Wh, z, g)
""",
        either("gates|z|g", ORDER) + either("z", "g"),
        "gate order",
        {"first, second = ": "second, first = "},
    ),
    Mistake(
        "simplified_gru_step_forward_g_is_sigmoid",
        "simplified_gru_step",
        """
import numpy as np

def simplified_gru_step_forward(x, prev_h, Wx, Wh, b):
    a_z, a_g = np.split(np.hstack((x, prev_h)).dot(np.vstack((Wx, Wh))) + b, 2, axis=1)
    z = 1 / (1 + np.exp(-a_z))
    g = 1 / (1 + np.exp(-a_g))
    return z * prev_h + (1 - z) * g, (x, prev_h, Wx, Wh, z, g)
""",
        either("g|a_g|candidate", "tanh|sigmoid"),
        "wrong forward",
        {"g = 1 / (1 + np.exp(-a_g))": "g = np.tanh(a_g)"},
    ),
    Mistake(
        "simplified_gru_dh_not_accumulated",
        "simplified_gru",
        FORWARD
        + """
def simplified_gru_backward(dh, cache):
    N, T, H = dh.shape
    dx, dWx, dWh, db = [None] * T, 0, 0, 0
    carry = np.zeros((N, H))
    for t in reversed(range(T)):
        incoming = dh[:, t]
        dx[t], carry, gx, gh, gb = simplified_gru_step_backward(incoming, cache[t])
        dWx, dWh, db = dWx + gx, dWh + gh, db + gb
    return np.stack(dx, axis=1), carry, dWx, dWh, db
""",
        either("dh_t|dh|dnext_h", "dprev_h|time|accumulated|carried|next step|step after|later steps|later"),
        "through time",
        {"incoming = dh[:, t]\n": "incoming = dh[:, t] + carry\n"},
    ),
    Mistake(
        "simplified_gru_backward_runs_forward_in_time",
        "simplified_gru",
        FORWARD
        + """
def simplified_gru_backward(dh, cache):
    T = len(cache)
    dx, dh_next, grads = [None] * T, 0, (0, 0, 0)
    steps = list(range(T))
    for t in steps:
        dx[t], dh_next, *step = simplified_gru_step_backward(dh[:, t] + dh_next, cache[t])
        grads = tuple(total + one for total, one in zip(grads, step))
    return np.stack(dx, axis=1), dh_next, *grads
""",
        either("time|steps|loop|order|backward|reversed", "forward|reversed|first|last|order"),
        "through time",
        {"for t in steps:": "for t in steps[::-1]:"},
    ),
]
