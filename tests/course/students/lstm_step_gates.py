"""Mistakes in the gradients of the gates of one LSTM step."""

from __future__ import annotations

from .lstm_styles import BLOCK, DICT, STACKED
from .mistake import SIGN, Mistake, either

MISTAKES = [
    Mistake(
        "lstm_step_da_f_lacks_prev_c",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    i, f, o, g, tc = cache["i"], cache["f"], cache["o"], cache["g"], cache["tc"]
    do = dnext_h * tc
    dcell = dnext_c + dnext_h * o * (1 - tc ** 2)
    df = dcell
    di = dcell * g
    dg = dcell * i
    dprev_c = dcell * f
    da = np.hstack([di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g ** 2)])
    dx, dprev_h = da.dot(cache["Wx"].T), da.dot(cache["Wh"].T)
    dWx, dWh = cache["x"].T.dot(da), cache["h"].T.dot(da)
    return dx, dprev_h, dprev_c, dWx, dWh, da.sum(axis=0)
""",
        either("da_f", "prev_c"),
        "missing factor",
        {"df = dcell\n": 'df = dcell * cache["c"]\n'},
    ),
    Mistake(
        "lstm_step_da_f_reads_next_c",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    t = np.tanh(next_c)
    dnext_c = dnext_c + dnext_h * o * (1 - t * t)
    H = prev_h.shape[1]
    da = np.zeros((x.shape[0], 4 * H))
    da[:, 0:H] = dnext_c * g * (i - i * i)
    da[:, H:2*H] = dnext_c * next_c * (f - f * f)
    da[:, 2*H:3*H] = dnext_h * t * (o - o * o)
    da[:, 3*H:4*H] = dnext_c * i * (1 - g * g)
    return da @ Wx.T, da @ Wh.T, dnext_c * f, x.T @ da, prev_h.T @ da, np.sum(da, axis=0)
""",
        either("da_f", "prev_c|next_c"),
        "wrong variable",
        {"dnext_c * next_c * (f - f * f)": "dnext_c * prev_c * (f - f * f)"},
    ),
    Mistake(
        "lstm_step_da_f_lacks_1_minus_f",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, c = cache
    H = c.shape[1]
    i, f, o, g = gates[:, :H], gates[:, H:2*H], gates[:, 2*H:3*H], gates[:, 3*H:]
    dc = dnext_c + dnext_h * o / np.cosh(c) ** 2
    d_in = i * (1 - i) * g * dc
    d_forget = f * prev_c * dc
    d_out = o * (1 - o) * np.tanh(c) * dnext_h
    d_cand = (1 - g ** 2) * i * dc
    d = np.concatenate((d_in, d_forget, d_out, d_cand), axis=1)
    return d.dot(Wx.T), d.dot(Wh.T), f * dc, x.T.dot(d), prev_h.T.dot(d), d.sum(0)
""",
        either("da_f", "1 - f|1-f|sigmoid|f * (1 - f)"),
        "missing factor",
        {"d_forget = f * prev_c": "d_forget = f * (1 - f) * prev_c"},
    ),
    Mistake(
        "lstm_step_da_i_lacks_g",
        "lstm_step",
        STACKED
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    inp, W, prev_c, ai, af, ao, ag, c = cache
    D = inp.shape[1] - c.shape[1]
    s = [sigmoid(z) for z in (ai, af, ao)]
    slope = [y * (1 - y) for y in s]
    g = np.tanh(ag)
    dc = dnext_c + dnext_h * s[2] * (1 - np.tanh(c) ** 2)
    da = np.hstack((
        dc * slope[0],
        dc * prev_c * slope[1],
        dnext_h * np.tanh(c) * slope[2],
        dc * s[0] * (1 - g ** 2),
    ))
    dinp, dW = da @ W.T, inp.T @ da
    return dinp[:, :D], dinp[:, D:], dc * s[1], dW[:D], dW[D:], da.sum(axis=0)
""",
        either("da_i", "g"),
        "missing factor",
        {"dc * slope[0],": "dc * g * slope[0],"},
    ),
    Mistake(
        "lstm_step_da_i_lacks_sigmoid_derivative",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, h, c, Wx, Wh, i, f, o, g, tc = cache.values()
    dct = dnext_h * o
    dct = dct * (1 - tc * tc) + dnext_c
    dai = dct * g
    daf = dct * c * f * (1 - f)
    dao = dnext_h * tc * o * (1 - o)
    dag = dct * i * (1 - g * g)
    dA = np.concatenate([dai, daf, dao, dag], axis=1)
    dx = np.dot(dA, Wx.T)
    dprev_h = np.dot(dA, Wh.T)
    dWx = np.dot(x.T, dA)
    dWh = np.dot(h.T, dA)
    db = np.sum(dA, axis=0)
    return dx, dprev_h, dct * f, dWx, dWh, db
""",
        either("da_i", "i|sigmoid|i * (1 - i)"),
        "missing factor",
        {"dai = dct * g\n": "dai = dct * g * i * (1 - i)\n"},
    ),
    Mistake(
        "lstm_step_da_i_lacks_1_minus_i",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, hp, cp, Wx, Wh, i, f, o, g, c = cache
    th = np.tanh(c)
    dc = o * dnext_h * (1 - th**2) + dnext_c
    gate_grads = {
        "i": dc * g * i,
        "f": dc * cp * f * (1 - f),
        "o": dnext_h * th * o * (1 - o),
        "g": dc * i * (1 - g**2),
    }
    da = np.hstack([gate_grads[k] for k in "ifog"])
    return da @ Wx.T, da @ Wh.T, dc * f, x.T @ da, hp.T @ da, da.sum(axis=0)
""",
        either("da_i", "1 - i|1-i|sigmoid|i * (1 - i)"),
        "missing factor",
        {"dc * g * i,": "dc * g * i * (1 - i),"},
    ),
    Mistake(
        "lstm_step_da_o_lacks_tanh_c",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    i, f, o, g = np.hsplit(gates, 4)
    tanhc = np.tanh(next_c)
    dtanhc = dnext_h * o
    dc = dnext_c + dtanhc * (1 - tanhc ** 2)
    dgates = np.empty(gates.shape)
    di, df, do, dg = np.hsplit(dgates, 4)
    di[...] = dc * g * i * (1 - i)
    df[...] = dc * prev_c * f * (1 - f)
    do[...] = dnext_h * o * (1 - o)
    dg[...] = dc * i * (1 - g ** 2)
    return dgates @ Wx.T, dgates @ Wh.T, dc * f, x.T @ dgates, prev_h.T @ dgates, dgates.sum(axis=0)
""",
        either("da_o", "tanh_c|tanh|tanh(next_c)"),
        "missing factor",
        {"do[...] = dnext_h * o": "do[...] = dnext_h * tanhc * o"},
    ),
    Mistake(
        "lstm_step_da_o_reads_next_c",
        "lstm_step",
        STACKED
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    inp, W, prev_c, ai, af, ao, ag, next_c = cache
    H = next_c.shape[1]
    i, f, o, g = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag)
    dh_o = dnext_h * next_c * o * (1 - o)
    dc = (1 - np.tanh(next_c) ** 2) * o * dnext_h + dnext_c
    dW = np.zeros_like(W)
    d = np.zeros((len(inp), 4 * H))
    for k, part in enumerate([dc * g * i * (1 - i), dc * prev_c * f * (1 - f), dh_o, dc * i * (1 - g ** 2)]):
        d[:, k * H:(k + 1) * H] = part
        dW[:, k * H:(k + 1) * H] = inp.T @ part
    dinp = d @ W.T
    return dinp[:, :-H], dinp[:, -H:], dc * f, dW[:-H], dW[-H:], d.sum(axis=0)
""",
        either("da_o", "tanh_c|tanh|next_c|tanh(next_c)"),
        "wrong variable",
        {"dnext_h * next_c * o": "dnext_h * np.tanh(next_c) * o"},
    ),
    Mistake(
        "lstm_step_da_o_from_dc",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    tanh_next_c = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - tanh_next_c**2)
    di = dc * g
    df = dc * prev_c
    do = dc * tanh_next_c
    dg = dc * i
    dprev_c = dc * f
    dai, daf, dao = di * i * (1 - i), df * f * (1 - f), do * o * (1 - o)
    dag = dg * (1 - g**2)
    da = np.hstack((dai, daf, dao, dag))
    dx, dWx = da.dot(Wx.T), x.T.dot(da)
    dprev_h, dWh = da.dot(Wh.T), prev_h.T.dot(da)
    return dx, dprev_h, dprev_c, dWx, dWh, da.sum(axis=0)
""",
        either("da_o", "dnext_h|dc|dnext_c"),
        "wrong variable",
        {"do = dc * tanh_next_c": "do = dnext_h * tanh_next_c"},
    ),
    Mistake(
        "lstm_step_da_g_lacks_tanh_derivative",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    i, f, o, g = (cache[k] for k in "ifog")
    dc = dnext_c + (1 - cache["tc"] ** 2) * o * dnext_h
    dscore_i = g * dc * (i - i ** 2)
    dscore_f = cache["c"] * dc * (f - f ** 2)
    dscore_o = cache["tc"] * dnext_h * (o - o ** 2)
    dscore_g = i * dc
    dscore = np.concatenate([dscore_i, dscore_f, dscore_o, dscore_g], axis=1)
    db = np.ones(len(dscore)) @ dscore
    dWx = cache["x"].T @ dscore
    dWh = cache["h"].T @ dscore
    return dscore @ cache["Wx"].T, dscore @ cache["Wh"].T, dc * f, dWx, dWh, db
""",
        either("da_g", "1 - g**2|tanh|g"),
        "missing factor",
        {"dscore_g = i * dc\n": "dscore_g = i * dc * (1 - g ** 2)\n"},
    ),
    Mistake(
        "lstm_step_da_g_has_sigmoid_derivative",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    i, f, o, g = np.split(gates, 4, axis=1)
    y = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - y ** 2)
    dgates = np.hstack([dc * g, dc * prev_c, dnext_h * y, dc * i])
    # every gate: y * (1 - y)
    dgates *= gates * (1 - gates)
    return dgates @ Wx.T, dgates @ Wh.T, dc * f, x.T @ dgates, prev_h.T @ dgates, np.sum(dgates, 0)
""",
        either("da_g", "tanh|sigmoid|1 - g**2|g"),
        "wrong derivative",
        {"gates * (1 - gates)": "np.hstack([i - i * i, f - f * f, o - o * o, 1 - g * g])"},
    ),
    Mistake(
        "lstm_step_da_g_lacks_i",
        "lstm_step",
        STACKED
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    inp, W, prev_c, ai, af, ao, ag, next_c = cache
    i, f, o = sigmoid(ai), sigmoid(af), sigmoid(ao)
    g, u = np.tanh(ag), np.tanh(next_c)
    D = W.shape[0] - u.shape[1]
    du = dnext_h * o
    dc = dnext_c + du * (1 - u ** 2)
    dag = dc * (1 - g ** 2)
    dai = dc * g * i * (1 - i)
    daf = dc * prev_c * f * (1 - f)
    dao = dnext_h * u * o * (1 - o)
    grad = np.concatenate((dai, daf, dao, dag), 1)
    dinp = grad.dot(W.T)
    dW = inp.T.dot(grad)
    return dinp[:, :D], dinp[:, D:], f * dc, dW[:D], dW[D:], grad.sum(0)
""",
        either("da_g", "i"),
        "missing factor",
        {"dag = dc * (1": "dag = dc * i * (1"},
    ),
    Mistake(
        "lstm_step_da_o_has_tanh_derivative",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    c = cache
    dtc = dnext_h * c["o"]
    dnc = dtc * (1 - c["tc"] ** 2) + dnext_c
    blocks = [
        dnc * c["g"] * c["i"] * (1 - c["i"]),
        dnc * c["c"] * c["f"] * (1 - c["f"]),
        dnext_h * c["tc"] * (1 - c["o"] ** 2),
        dnc * c["i"] * (1 - c["g"] ** 2),
    ]
    da = np.hstack(blocks)
    return da @ c["Wx"].T, da @ c["Wh"].T, dnc * c["f"], c["x"].T @ da, c["h"].T @ da, da.sum(axis=0)
""",
        either("da_o", "sigmoid|tanh|o|1 - o"),
        "wrong derivative",
        {'(1 - c["o"] ** 2)': 'c["o"] * (1 - c["o"])'},
    ),
    Mistake(
        "lstm_step_da_g_has_wrong_sign",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    i, f, o, g = np.hsplit(gates, 4)
    y = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - y ** 2)
    dsig = gates * (1 - gates)
    si, sf, so, _ = np.hsplit(dsig, 4)
    da = np.concatenate([dc * g * si, dc * prev_c * sf, dnext_h * y * so, dc * i * (g ** 2 - 1)], axis=1)
    return da @ Wx.T, da @ Wh.T, dc * f, x.T @ da, prev_h.T @ da, da.sum(axis=0)
""",
        either("da_g", SIGN),
        "wrong sign",
        {"(g ** 2 - 1)": "(1 - g ** 2)"},
    ),
    Mistake(
        "lstm_step_da_i_has_wrong_sign",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, h_tm1, c_tm1, Wx, Wh, i, f, o, g, c_t = cache
    tanh_ct = np.tanh(c_t)
    dc_t = dnext_c + dnext_h * o * (1 - tanh_ct ** 2)
    dz_i = dc_t * g * i * (i - 1)
    dz_f = dc_t * c_tm1 * f * (1 - f)
    dz_o = dnext_h * tanh_ct * o * (1 - o)
    dz_g = dc_t * i * (1 - g ** 2)
    dz = np.hstack([dz_i, dz_f, dz_o, dz_g])
    return dz @ Wx.T, dz @ Wh.T, f * dc_t, x.T @ dz, h_tm1.T @ dz, dz.sum(axis=0)
""",
        either("da_i", SIGN),
        "wrong sign",
        {"(i - 1)": "(1 - i)"},
    ),
    Mistake(
        "lstm_step_da_i_and_da_g_exchange_factors",
        "lstm_step",
        STACKED
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    inp, W, prev_c, ai, af, ao, ag, next_c = cache
    D = inp.shape[1] - prev_c.shape[1]
    i, f, o, g = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag)
    th = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - th ** 2)
    di = dc * i
    dg = dc * g
    df = dc * prev_c
    do = dnext_h * th
    da = np.hstack([di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g ** 2)])
    dinp, dW = da.dot(W.T), inp.T.dot(da)
    return dinp[:, :D], dinp[:, D:], dc * f, dW[:D], dW[D:], da.sum(axis=0)
""",
        either("da_i", "g|i") + either("da_g", "i|g"),
        "wrong variable",
        {"di = dc * i\n": "di = dc * g\n", "dg = dc * g\n": "dg = dc * i\n"},
    ),
]
