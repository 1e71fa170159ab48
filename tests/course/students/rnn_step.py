"""Mistakes in the gradients of one step of the vanilla RNN."""

from __future__ import annotations

from .mistake import SIGN, TRANSPOSED, Mistake, either
from .rnn_styles import DICT, STACKED

MISTAKES = [
    Mistake(
        "rnn_step_da_lacks_tanh_derivative",
        "rnn_step",
        STACKED
        + """
def rnn_step_backward(dnext_h, cache):
    inp, W, next_h, D = cache
    dscores = dnext_h
    dinp = dscores @ W.T
    dW = inp.T @ dscores
    return dinp[:, :D], dinp[:, D:], dW[:D], dW[D:], np.sum(dscores, axis=0)
""",
        either("da", "next_h|1 - next_h**2|tanh"),
        "missing factor",
        {"dscores = dnext_h\n": "dscores = dnext_h * (1 - next_h ** 2)\n"},
    ),
    Mistake(
        "rnn_step_da_has_sigmoid_derivative",
        "rnn_step",
        DICT
        + """
def rnn_step_backward(dnext_h, cache):
    out = np.tanh(cache["a"])
    dact = out * (1 - out) * dnext_h
    dx = dact.dot(cache["Wx"].T)
    dprev_h = dact.dot(cache["Wh"].T)
    dWx = cache["x"].T.dot(dact)
    dWh = cache["h"].T.dot(dact)
    db = dact.sum(0)
    return dx, dprev_h, dWx, dWh, db
""",
        either("da", "tanh|sigmoid|1 - next_h**2|next_h"),
        "wrong derivative",
        {"out * (1 - out)": "(1 - out * out)"},
    ),
    Mistake(
        "rnn_step_da_lacks_square",
        "rnn_step",
        """
import numpy as np

def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    dtanh = dnext_h - dnext_h * next_h
    db = np.sum(dtanh, axis=0)
    dWh = np.dot(prev_h.T, dtanh)
    dprev_h = np.dot(dtanh, Wh.T)
    dWx = np.dot(x.T, dtanh)
    dx = np.dot(dtanh, Wx.T)
    return dx, dprev_h, dWx, dWh, db
""",
        either("da", "tanh|1 - next_h**2|next_h"),
        "wrong derivative",
        {"dnext_h - dnext_h * next_h": "dnext_h - dnext_h * next_h ** 2"},
    ),
    Mistake(
        "rnn_step_da_derivative_at_a",
        "rnn_step",
        DICT
        + """
def rnn_step_backward(dnext_h, cache):
    x, h, Wx, Wh, a = (cache[k] for k in ("x", "h", "Wx", "Wh", "a"))
    da = (1 - a ** 2) * dnext_h
    return da @ Wx.T, da @ Wh.T, x.T @ da, h.T @ da, da.sum(axis=0)
""",
        either("da", "tanh|1 - next_h**2|next_h"),
        "wrong derivative",
        {"(1 - a ** 2)": "(1 - np.tanh(a) ** 2)"},
    ),
    Mistake(
        "rnn_step_da_has_wrong_sign",
        "rnn_step",
        STACKED
        + """
def rnn_step_backward(dnext_h, cache):
    inp, W, h, D = cache
    dz = dnext_h * (h * h - 1)
    dW = np.dot(inp.T, dz)
    dinp = np.dot(dz, W.T)
    db = np.dot(np.ones(len(dz)), dz)
    return dinp[:, :D], dinp[:, D:], dW[:D, :], dW[D:, :], db
""",
        either("da", SIGN),
        "wrong sign",
        {"(h * h - 1)": "(1 - h * h)"},
    ),
    Mistake(
        "rnn_step_dprev_h_lacks_transpose",
        "rnn_step",
        """
import numpy as np

def rnn_step_backward(dnext_h, cache):
    (inp, hid, W_x, W_h, out) = cache
    delta = dnext_h * (1.0 - out ** 2)
    dprev_h = np.matmul(delta, W_h)
    dx = np.matmul(delta, W_x.T)
    dW_x = np.matmul(inp.T, delta)
    dW_h = np.matmul(hid.T, delta)
    return dx, dprev_h, dW_x, dW_h, delta.sum(axis=0)
""",
        either("dprev_h", TRANSPOSED + "|Wh.T"),
        "transposed",
        {"np.matmul(delta, W_h)": "np.matmul(delta, W_h.T)"},
    ),
    Mistake(
        "rnn_step_dx_lacks_transpose",
        "rnn_step",
        DICT
        + """
def rnn_step_backward(dnext_h, cache):
    x, h, Wx, Wh, a = cache.values()
    dh_raw = (1 - np.tanh(a) ** 2) * dnext_h
    db = np.einsum("nh->h", dh_raw)
    dWx = np.einsum("nd,nh->dh", x, dh_raw)
    dWh = np.einsum("nk,nh->kh", h, dh_raw)
    dx = np.einsum("nh,hd->nd", dh_raw, Wx)
    dprev_h = np.einsum("nh,kh->nk", dh_raw, Wh)
    return dx, dprev_h, dWx, dWh, db
""",
        either("dx", TRANSPOSED + "|Wx.T"),
        "transposed",
        {'"nh,hd->nd"': '"nh,dh->nd"'},
        square=True,
    ),
    Mistake(
        "rnn_step_dWh_transposed",
        "rnn_step",
        STACKED
        + """
def rnn_step_backward(dnext_h, cache):
    inp, W, next_h, D = cache
    da = dnext_h * (1 - next_h**2)
    dinp = da @ W.T
    dW = inp.T @ da
    return dinp[:, :D], dinp[:, D:], dW[:D], dW[D:].T, da.sum(axis=0)
""",
        either("dWh", TRANSPOSED),
        "transposed",
        {"dW[D:].T": "dW[D:]"},
    ),
    Mistake(
        "rnn_step_dWx_transposed",
        "rnn_step",
        """
import numpy as np

def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    da = dnext_h - dnext_h * next_h * next_h
    dWx = np.dot(da.T, x)
    dWh = np.dot(prev_h.T, da)
    dx, dprev_h, db = np.dot(da, Wx.T), np.dot(da, Wh.T), np.sum(da, 0)
    return dx, dprev_h, dWx, dWh, db
""",
        either("dWx", TRANSPOSED + "|shape"),
        "transposed",
        {"np.dot(da.T, x)": "np.dot(x.T, da)"},
    ),
    Mistake(
        "rnn_step_dWh_reads_next_h",
        "rnn_step",
        """
import numpy as np

def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    N, D = x.shape
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(len(Wh))
    dx, dprev_h = np.zeros_like(x), np.zeros_like(prev_h)
    for n in range(N):
        da = dnext_h[n] * (1 - next_h[n] ** 2)
        dWx += np.outer(x[n], da)
        dWh += np.outer(next_h[n], da)
        db += da
        dx[n] = Wx.dot(da)
        dprev_h[n] = Wh.dot(da)
    return dx, dprev_h, dWx, dWh, db
""",
        either("dWh", "next_h|prev_h"),
        "wrong variable",
        {"np.outer(next_h[n], da)": "np.outer(prev_h[n], da)"},
    ),
    Mistake(
        "rnn_step_dWx_from_dnext_h",
        "rnn_step",
        DICT
        + """
def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh = cache["x"], cache["h"], cache["Wx"], cache["Wh"]
    da = dnext_h * (1 - np.tanh(cache["a"]) ** 2)
    dx = da.dot(Wx.T)
    dprev_h = da.dot(Wh.T)
    dWx = x.T.dot(dnext_h)
    dWh = prev_h.T.dot(da)
    return dx, dprev_h, dWx, dWh, da.sum(axis=0)
""",
        either("dWx", "da|1 - next_h**2|next_h|dnext_h|tanh"),
        "wrong variable",
        {"x.T.dot(dnext_h)": "x.T.dot(da)"},
    ),
    Mistake(
        "rnn_step_dprev_h_has_extra_dnext_h",
        "rnn_step",
        """
import numpy as np

def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    dsum = (1 - next_h ** 2) * dnext_h
    dprev_h = dnext_h + dsum @ Wh.T
    dWh = prev_h.T @ dsum
    dx = dsum @ Wx.T
    dWx = x.T @ dsum
    db = np.sum(dsum, axis=0)
    return dx, dprev_h, dWx, dWh, db
""",
        either("dprev_h", "dnext_h"),
        "extra term",
        {"dnext_h + dsum @ Wh.T": "dsum @ Wh.T"},
    ),
]
