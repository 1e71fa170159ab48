"""Mistakes in the gradients of the cell state of one LSTM step."""

from __future__ import annotations

from .lstm_styles import BLOCK, DICT, STACKED
from .mistake import TWICE, Mistake, either

MISTAKES = [
    Mistake(
        "lstm_step_dc_lacks_dnext_c",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    tanh_c = np.tanh(next_c)
    do = dnext_h * tanh_c
    dtanh = dnext_h * o
    dc = dtanh * (1 - tanh_c ** 2)
    da = np.concatenate([dc * g * i * (1 - i), dc * prev_c * f * (1 - f),
                         do * o * (1 - o), dc * i * (1 - g ** 2)], axis=1)
    dprev_c = f * dc
    dx = np.matmul(da, Wx.T)
    dprev_h = np.matmul(da, Wh.T)
    return dx, dprev_h, dprev_c, np.matmul(x.T, da), np.matmul(prev_h.T, da), da.sum(axis=0)
""",
        either("dc", "dnext_c"),
        "missing term",
        {"dc = dtanh * (1": "dc = dnext_c + dtanh * (1"},
    ),
    Mistake(
        "lstm_step_dprev_c_lacks_dnext_c",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    i, f, o, g = np.hsplit(gates, 4)
    t = np.tanh(next_c)
    from_h = dnext_h * o * (1 - t) * (1 + t)
    dprev_c = from_h * f
    total = from_h + dnext_c
    di, df, dg = total * g, total * prev_c, total * i
    do = t * dnext_h
    da = np.hstack((di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g * g)))
    dx, dprev_h = da.dot(Wx.T), da.dot(Wh.T)
    return dx, dprev_h, dprev_c, x.T.dot(da), prev_h.T.dot(da), da.sum(axis=0)
""",
        either("dprev_c", "dnext_c|dc"),
        "missing term",
        {"    dprev_c = from_h * f\n": "", "(1 - g * g)))\n": "(1 - g * g)))\n    dprev_c = total * f\n"},
    ),
    Mistake(
        "lstm_step_dc_lacks_o",
        "lstm_step",
        STACKED
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    inp, W, prev_c, ai, af, ao, ag, nc = cache
    H = nc.shape[1]
    i, f, o, g, th = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag), np.tanh(nc)
    dnc = dnext_c + dnext_h * (1 - th ** 2)
    da = np.hstack([
        dnc * g * i * (1 - i), dnc * prev_c * f * (1 - f), dnext_h * th * o * (1 - o), dnc * i * (1 - g ** 2),
    ])
    dinp = np.dot(da, W.T)
    dW = np.dot(inp.T, da)
    return dinp[:, :-H], dinp[:, -H:], dnc * f, dW[:-H], dW[-H:], np.sum(da, axis=0)
""",
        either("dc", "o"),
        "missing factor",
        {"dnext_h * (1 - th ** 2)": "o * dnext_h * (1 - th ** 2)"},
    ),
    Mistake(
        "lstm_step_dc_lacks_tanh_derivative",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, h, c = cache["x"], cache["h"], cache["c"]
    i, f, o, g, tc = cache["i"], cache["f"], cache["o"], cache["g"], cache["tc"]
    dc = dnext_c + dnext_h * o
    dprev_c = dc * f
    da = np.zeros((x.shape[0], 4 * h.shape[1]))
    H = h.shape[1]
    da[:, :H] = dc * g * i * (1 - i)
    da[:, H:2 * H] = dc * c * f * (1 - f)
    da[:, 2 * H:3 * H] = dnext_h * tc * o * (1 - o)
    da[:, 3 * H:] = dc * i * (1 - g ** 2)
    dx, dprev_h = da.dot(cache["Wx"].T), da.dot(cache["Wh"].T)
    return dx, dprev_h, dprev_c, x.T.dot(da), h.T.dot(da), da.sum(axis=0)
""",
        either("dc", "tanh_c|tanh|1 - tanh_c**2"),
        "missing factor",
        {"dnext_h * o\n": "dnext_h * o * (1 - tc * tc)\n"},
    ),
    Mistake(
        "lstm_step_dc_derivative_at_next_c",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    H = next_c.shape[1]
    i, f, o, g = (gates[:, k * H:(k + 1) * H] for k in range(4))
    dc = dnext_c.copy()
    dc += (1 - next_c ** 2) * o * dnext_h
    deltas = np.hstack([
        g * i * (1 - i) * dc,
        prev_c * f * (1 - f) * dc,
        np.tanh(next_c) * o * (1 - o) * dnext_h,
        i * (1 - g ** 2) * dc,
    ])
    return deltas @ Wx.T, deltas @ Wh.T, f * dc, x.T @ deltas, prev_h.T @ deltas, deltas.sum(axis=0)
""",
        either("dc", "tanh_c|tanh|next_c|1 - tanh_c**2"),
        "wrong derivative",
        {"(1 - next_c ** 2) * o": "(1 - np.tanh(next_c) ** 2) * o"},
    ),
    Mistake(
        "lstm_step_dc_has_square_of_difference",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, h, c, Wx, Wh, i, f, o, g, tc = [cache[k] for k in "x h c Wx Wh i f o g tc".split()]
    dc = dnext_c + dnext_h * o * (1 - tc)**2
    dz = [dc * g * i * (1 - i), dc * c * f * (1 - f), dnext_h * tc * o * (1 - o), dc * i * (1 - g**2)]
    dz = np.concatenate(dz, axis=1)
    return dz.dot(Wx.T), dz.dot(Wh.T), dc * f, x.T.dot(dz), h.T.dot(dz), dz.sum(0)
""",
        either("dc", "tanh_c|tanh|1 - tanh_c**2"),
        "wrong derivative",
        {"(1 - tc)**2": "(1 - tc**2)"},
    ),
    Mistake(
        "lstm_step_dc_lacks_share_through_h",
        "lstm_step",
        STACKED
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    inp, W, prev_c, ai, af, ao, ag, next_c = cache
    i, f, o, g = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag)
    dao = dnext_h * np.tanh(next_c) * sigmoid(ao) * sigmoid(-ao)
    dc = dnext_c
    dai = dc * g * sigmoid(ai) * sigmoid(-ai)
    daf = dc * prev_c * sigmoid(af) * sigmoid(-af)
    dag = dc * i * (1 - g ** 2)
    da = np.hstack((dai, daf, dao, dag))
    dinp, dW = da @ W.T, inp.T @ da
    D = inp.shape[1] - prev_c.shape[1]
    return dinp[:, :D], dinp[:, D:], dc * f, dW[:D], dW[D:], da.sum(axis=0)
""",
        either("dc", "dnext_h"),
        "missing term",
        {"dc = dnext_c\n": "dc = dnext_c + dnext_h * o * (1 - np.tanh(next_c) ** 2)\n"},
    ),
    Mistake(
        "lstm_step_dnext_c_doubled_in_dc",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    dc = dnext_c.copy()
    t = np.tanh(next_c)
    dc = dnext_c + dc + o * (1 - t ** 2) * dnext_h
    grads = []
    for gate, upstream in ((i, dc * g), (f, dc * prev_c), (o, dnext_h * t)):
        grads.append(upstream * gate * (1 - gate))
    grads.append(dc * i * (1 - g ** 2))
    da = np.concatenate(grads, axis=1)
    return da.dot(Wx.T), da.dot(Wh.T), dc * f, x.T.dot(da), prev_h.T.dot(da), da.sum(axis=0)
""",
        either("dc", TWICE + "|dnext_c"),
        "doubled",
        {"dc = dnext_c + dc + o": "dc = dc + o"},
    ),
    Mistake(
        "lstm_step_dprev_c_counts_dnext_c_twice",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, tc = cache.values()
    dprev_c = dnext_c * f
    dc = dnext_h * o * (1 - tc ** 2) + dnext_c
    dprev_c += dc * f
    da = np.hstack([
        i * (1 - i) * dc * g,
        f * (1 - f) * dc * prev_c,
        o * (1 - o) * dnext_h * tc,
        (1 - g ** 2) * dc * i,
    ])
    return da @ Wx.T, da @ Wh.T, dprev_c, x.T @ da, prev_h.T @ da, da.sum(axis=0)
""",
        either("dprev_c", TWICE + "|dnext_c"),
        "doubled",
        {"dprev_c += dc * f": "dprev_c = dc * f"},
    ),
    Mistake(
        "lstm_step_dprev_c_lacks_f",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    i, f, o, g, tc = (cache[k] for k in ("i", "f", "o", "g", "tc"))
    dc = dnext_c + dnext_h * o * (1 - tc ** 2)
    dprev_c = dc
    da = np.hstack([dc * g * i * (1 - i), dc * cache["c"] * f * (1 - f), dnext_h * tc * o * (1 - o),
                    dc * i * (1 - g ** 2)])
    dWx, dWh, db = cache["x"].T @ da, cache["h"].T @ da, da.sum(axis=0)
    return da @ cache["Wx"].T, da @ cache["Wh"].T, dprev_c, dWx, dWh, db
""",
        either("dprev_c", "f"),
        "missing factor",
        {"dprev_c = dc\n": "dprev_c = dc * f\n"},
    ),
    Mistake(
        "lstm_step_dprev_c_from_dnext_c",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c) = cache
    N, H = prev_h.shape
    tanh_c = np.tanh(next_c)
    dc = dnext_c + (dnext_h * o) * (1 - tanh_c * tanh_c)
    da = np.zeros((N, 4, H))
    da[:, 0] = dc * g * i * (1 - i)
    da[:, 1] = dc * prev_c * f * (1 - f)
    da[:, 2] = dnext_h * tanh_c * o * (1 - o)
    da[:, 3] = dc * i * (1 - g * g)
    da = da.reshape(N, 4 * H)
    dprev_c = dnext_c * f
    return da @ Wx.T, da @ Wh.T, dprev_c, x.T @ da, prev_h.T @ da, da.sum(axis=0)
""",
        either("dprev_c", "dc|dnext_h|dnext_c"),
        "wrong variable",
        {"dprev_c = dnext_c * f": "dprev_c = dc * f"},
    ),
    Mistake(
        "lstm_step_dprev_c_reads_i",
        "lstm_step",
        STACKED
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    inp, W, prev_c, ai, af, ao, ag, next_c = cache
    H = prev_c.shape[1]
    i, f, o, g = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag)
    y = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - y ** 2)
    dprev_c = dc * i
    da = np.hstack([dc * g * i * (1 - i), dc * prev_c * f * (1 - f),
                    dnext_h * y * o * (1 - o), dc * i * (1 - g ** 2)])
    back = da @ W.T
    dW = inp.T @ da
    return back[:, :-H], back[:, -H:], dprev_c, dW[:-H], dW[-H:], da.sum(axis=0)
""",
        either("dprev_c", "f|i"),
        "wrong variable",
        {"dprev_c = dc * i\n": "dprev_c = dc * f\n"},
    ),
]
