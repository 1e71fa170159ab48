"""Mistakes in the forward of one step of the vanilla RNN, and in what its backward returns."""

from __future__ import annotations

from .mistake import AVERAGED, BATCH, ORDER, TRANSPOSED, WRITTEN, Mistake, either
from .rnn_styles import DICT, STACKED

MISTAKES = [
    Mistake(
        "rnn_step_db_not_summed_over_batch",
        "rnn_step",
        DICT
        + """
def rnn_step_backward(dnext_h, cache):
    grad = dnext_h / np.cosh(cache["a"]) ** 2
    dx = grad @ cache["Wx"].T
    dprev_h = grad @ cache["Wh"].T
    dWx = cache["x"].T @ grad
    dWh = cache["h"].T @ grad
    db = grad
    return dx, dprev_h, dWx, dWh, db
""",
        either("db", BATCH),
        "wrong sum",
        {"db = grad\n": "db = grad.sum(axis=0)\n"},
    ),
    Mistake(
        "rnn_step_db_summed_over_units",
        "rnn_step",
        """
import numpy as np

def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    dpre = dnext_h * (1 - np.square(next_h))
    dx, dprev_h = dpre.dot(Wx.T), dpre.dot(Wh.T)
    dWx, dWh = x.T.dot(dpre), prev_h.T.dot(dpre)
    return dx, dprev_h, dWx, dWh, np.sum(dpre, axis=1)
""",
        either("db", BATCH + "|shape"),
        "wrong sum",
        {"np.sum(dpre, axis=1)": "np.sum(dpre, axis=0)"},
    ),
    Mistake(
        "rnn_step_db_is_mean",
        "rnn_step",
        STACKED
        + """
def rnn_step_backward(dnext_h, cache):
    inp, W, out, D = cache
    local = 1 - out ** 2
    da = local * dnext_h
    dinp = da @ W.T
    dW = inp.T @ da
    db = da.mean(axis=0)
    dx, dprev_h = np.split(dinp, [D], axis=1)
    dWx, dWh = np.split(dW, [D])
    return dx, dprev_h, dWx, dWh, db
""",
        either("db", AVERAGED),
        "wrong scale",
        {"da.mean(axis=0)": "da.sum(axis=0)"},
    ),
    Mistake(
        "rnn_step_db_keeps_batch_axis",
        "rnn_step",
        DICT
        + """
def rnn_step_backward(dnext_h, cache):
    y = np.tanh(cache["a"])
    d = dnext_h * (1 + y) * (1 - y)
    db = np.sum(d, axis=0, keepdims=True)
    dWx, dWh = cache["x"].T @ d, cache["h"].T @ d
    dx, dprev_h = d @ cache["Wx"].T, d @ cache["Wh"].T
    return dx, dprev_h, dWx, dWh, db
""",
        either("db", "shape|keepdims"),
        "wrong shape",
        {"axis=0, keepdims=True": "axis=0"},
    ),
    Mistake(
        "rnn_step_dx_and_dprev_h_swapped",
        "rnn_step",
        STACKED
        + """
def rnn_step_backward(dnext_h, cache):
    inp, W, h, D = cache
    da = dnext_h * (1 - h**2)
    dinp, dW = da.dot(W.T), inp.T.dot(da)
    dprev_h, dx = dinp[:, D:], dinp[:, :D]
    return dprev_h, dx, dW[:D], dW[D:], da.sum(0)
""",
        either("dx", "dprev_h") + either("dx", ORDER),
        "order of results",
        {"return dprev_h, dx,": "return dx, dprev_h,"},
    ),
    Mistake(
        "rnn_step_dWx_and_dWh_swapped",
        "rnn_step",
        """
import numpy as np

def rnn_step_backward(dnext_h, cache):
    x, h_prev, Wx, Wh, h = cache
    g = dnext_h * (1 - h ** 2)
    dWh = h_prev.T @ g
    dWx = x.T @ g
    return g @ Wx.T, g @ Wh.T, dWh, dWx, g.sum(axis=0)
""",
        either("dWx", "dWh") + either("dWx|dWh", ORDER),
        "order of results",
        {"dWh, dWx, g": "dWx, dWh, g"},
    ),
    Mistake(
        "rnn_step_dnext_h_written_into",
        "rnn_step",
        DICT
        + """
def rnn_step_backward(dnext_h, cache):
    dtanh = dnext_h
    dtanh *= 1 - np.tanh(cache["a"]) ** 2
    db = dtanh.sum(axis=0)
    dWx, dWh = cache["x"].T.dot(dtanh), cache["h"].T.dot(dtanh)
    return dtanh.dot(cache["Wx"].T), dtanh.dot(cache["Wh"].T), dWx, dWh, db
""",
        either("dnext_h", WRITTEN),
        "writes into an input",
        {"dtanh = dnext_h\n": "dtanh = dnext_h.copy()\n"},
    ),
    Mistake(
        "rnn_step_dWx_averaged_over_batch",
        "rnn_step",
        STACKED
        + """
def rnn_step_backward(dnext_h, cache):
    inp, W, h, D = cache
    N = inp.shape[0]
    da = dnext_h * (1 - h ** 2)
    dW = inp.T.dot(da)
    dinp = da.dot(W.T)
    dWx = dW[:D] / N
    dWh = dW[D:]
    return dinp[:, :D], dinp[:, D:], dWx, dWh, da.sum(axis=0)
""",
        either("dWx", AVERAGED),
        "wrong scale",
        {"dW[:D] / N": "dW[:D]"},
    ),
    Mistake(
        "rnn_step_forward_lacks_b",
        "rnn_step",
        """
import numpy as np

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    score = np.dot(x, Wx)
    score += np.dot(prev_h, Wh)
    next_h = np.tanh(score)
    return next_h, (x, prev_h, Wx, Wh, next_h)
""",
        either("b|bias", "next_h|forward|added|missing|lacks|lack|left out|without"),
        "wrong forward",
        {"next_h = np.tanh(score)": "next_h = np.tanh(score + b)"},
    ),
    Mistake(
        "rnn_step_forward_sigmoid_for_tanh",
        "rnn_step",
        """
import numpy as np

def sigmoid(z):
    return 1 / (1 + np.exp(-z))

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    out = sigmoid(x @ Wx + prev_h @ Wh + b)
    return out, (x, prev_h, Wx, Wh, out)
""",
        either("next_h|forward", "tanh|sigmoid"),
        "wrong forward",
        {"out = sigmoid(": "out = np.tanh("},
    ),
    Mistake(
        "rnn_step_forward_Wh_transposed",
        "rnn_step",
        """
import numpy as np

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    next_h = np.tanh(x.dot(Wx) + Wh.dot(prev_h.T).T + b)
    cache = (x, prev_h, Wx, Wh, next_h)
    return next_h, cache
""",
        either("Wh", TRANSPOSED),
        "transposed",
        {"Wh.dot(prev_h.T).T": "Wh.T.dot(prev_h.T).T"},
    ),
    Mistake(
        "rnn_step_forward_prev_h_written_into",
        "rnn_step",
        """
import numpy as np

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    h = prev_h
    a = np.dot(x, Wx) + np.dot(h, Wh) + b
    cache = [x, h.copy(), Wx, Wh, None]
    np.tanh(a, out=h)
    cache[4] = h
    return h, cache
""",
        either("prev_h", WRITTEN),
        "writes into an input",
        {"    h = prev_h\n": "    h = prev_h.copy()\n"},
    ),
]
