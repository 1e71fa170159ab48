"""Mistakes in what the backward of one LSTM step returns, after the gradients of its gates."""

from __future__ import annotations

from .lstm_styles import BLOCK, DICT, STACKED
from .mistake import AVERAGED, BATCH, ORDER, TRANSPOSED, WRITTEN, Mistake, either

MISTAKES = [
    Mistake(
        "lstm_step_da_in_order_ifgo",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    i, f, o, g = np.hsplit(gates, 4)
    t = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - t ** 2)
    dai = dc * g * i * (1 - i)
    daf = dc * prev_c * f * (1 - f)
    dag = dc * i * (1 - g ** 2)
    dao = dnext_h * t * o * (1 - o)
    da = np.hstack((dai, daf, dag, dao))
    return da @ Wx.T, da @ Wh.T, dc * f, x.T @ da, prev_h.T @ da, da.sum(axis=0)
""",
        either("da_o", "da_g") + either("da|gates|da_o|da_g|o", ORDER),
        "gate order",
        {"(dai, daf, dag, dao)": "(dai, daf, dao, dag)"},
    ),
    Mistake(
        "lstm_step_da_in_order_fiog",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    H = prev_h.shape[1]
    tanh_c = np.tanh(next_c)
    da = np.empty((len(x), 4 * H))
    dc = dnext_c + dnext_h * o * (1 - tanh_c ** 2)
    da[:, :H] = dc * prev_c * f * (1 - f)
    da[:, H:2*H] = dc * g * i * (1 - i)
    da[:, 2*H:3*H] = dnext_h * tanh_c * o * (1 - o)
    da[:, 3*H:] = dc * i * (1 - g ** 2)
    dx, dprev_h, dprev_c = da.dot(Wx.T), da.dot(Wh.T), f * dc
    return dx, dprev_h, dprev_c, x.T.dot(da), prev_h.T.dot(da), da.sum(0)
""",
        either("da_i", "da_f") + either("da|gates|da_i|da_f|i", ORDER),
        "gate order",
        {"da[:, :H] = ": "da[:, H:2*H] = ", "da[:, H:2*H] = dc * g": "da[:, :H] = dc * g"},
    ),
    Mistake(
        "lstm_step_dprev_h_and_dprev_c_swapped",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, h, c, Wx, Wh, i, f, o, g, tc = (cache[k] for k in "x h c Wx Wh i f o g tc".split())
    dct = dnext_c + dnext_h * o * (1 - tc ** 2)
    di, df, do, dg = dct * g, dct * c, dnext_h * tc, dct * i
    da = np.concatenate((di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g ** 2)), axis=-1)
    dx = da @ Wx.T
    dprev_c = dct * f
    dprev_h = da @ Wh.T
    dWx = x.T @ da
    dWh = h.T @ da
    return dx, dprev_c, dprev_h, dWx, dWh, da.sum(axis=0)
""",
        either("dprev_h", "dprev_c") + either("dprev_h|dprev_c", ORDER),
        "order of results",
        {"return dx, dprev_c, dprev_h,": "return dx, dprev_h, dprev_c,"},
    ),
    Mistake(
        "lstm_step_dWx_and_dWh_swapped",
        "lstm_step",
        STACKED
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    inp, W, prev_c, ai, af, ao, ag, next_c = cache
    D = inp.shape[1] - prev_c.shape[1]
    i, f, o, g = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag)
    dc = dnext_c + dnext_h * o * (1 - np.tanh(next_c) ** 2)
    da = np.hstack([dc * g, dc * prev_c, dnext_h * np.tanh(next_c), dc * i])
    da *= np.hstack([i - i ** 2, f - f ** 2, o - o ** 2, 1 - g ** 2])
    dx, dprev_h = np.split(da @ W.T, [D], axis=1)
    dWh, dWx = np.split(inp.T @ da, [D], axis=0)
    return dx, dprev_h, dc * f, dWx, dWh, da.sum(axis=0)
""",
        either("dWx", "dWh") + either("dWx|dWh", ORDER),
        "order of results",
        {"dWh, dWx = ": "dWx, dWh = "},
    ),
    Mistake(
        "lstm_step_db_not_summed_over_batch",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    i, f, o, g = np.hsplit(gates, 4)
    u = np.tanh(next_c)
    dc = dnext_c + o * (1 - u ** 2) * dnext_h
    da = np.hstack([dc * g * i * (1 - i), dc * prev_c * f * (1 - f),
                    dnext_h * u * o * (1 - o), dc * i * (1 - g ** 2)])
    dx, dWx = da @ Wx.T, x.T @ da
    dprev_h, dWh = da @ Wh.T, prev_h.T @ da
    db = da.copy()
    return dx, dprev_h, dc * f, dWx, dWh, db
""",
        either("db", BATCH + "|shape"),
        "wrong sum",
        {"db = da.copy()": "db = da.sum(axis=0)"},
    ),
    Mistake(
        "lstm_step_db_is_mean",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    i, f, o, g, tc, c = (cache[k] for k in ("i", "f", "o", "g", "tc", "c"))
    dc = dnext_h * o * (1 - tc ** 2) + dnext_c
    raw = np.hstack([dc * g, dc * c, dnext_h * tc, dc * i])
    slope = np.hstack([i * (1 - i), f * (1 - f), o * (1 - o), 1 - g ** 2])
    da = raw * slope
    db = np.average(da, axis=0)
    dWx, dWh = np.dot(cache["x"].T, da), np.dot(cache["h"].T, da)
    return np.dot(da, cache["Wx"].T), np.dot(da, cache["Wh"].T), dc * f, dWx, dWh, db
""",
        either("db", AVERAGED),
        "wrong scale",
        {"np.average(": "np.sum("},
    ),
    Mistake(
        "lstm_step_db_per_gate",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    t = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - t ** 2)
    dai, daf = dc * g * i * (1 - i), dc * prev_c * f * (1 - f)
    dao, dag = dnext_h * t * o * (1 - o), dc * i * (1 - g ** 2)
    db = np.array([d.sum(axis=0) for d in (dai, daf, dao, dag)])
    da = np.hstack([dai, daf, dao, dag])
    return da @ Wx.T, da @ Wh.T, dc * f, x.T @ da, prev_h.T @ da, db
""",
        either("db", "shape"),
        "wrong shape",
        {"np.array([d.sum": "np.concatenate([d.sum"},
    ),
    Mistake(
        "lstm_step_dnext_c_written_into",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, h, c, Wx, Wh, i, f, o, g, tc = cache.values()
    # the cell state also reaches h
    dnext_c += dnext_h * o * (1 - tc ** 2)
    dai = dnext_c * g * i * (1 - i)
    daf = dnext_c * c * f * (1 - f)
    dao = dnext_h * tc * o * (1 - o)
    dag = dnext_c * i * (1 - g ** 2)
    da = np.hstack((dai, daf, dao, dag))
    return da.dot(Wx.T), da.dot(Wh.T), dnext_c * f, x.T.dot(da), h.T.dot(da), da.sum(axis=0)
""",
        either("dnext_c", WRITTEN),
        "writes into an input",
        {"dnext_c += dnext_h": "dnext_c = dnext_c + dnext_h"},
    ),
    Mistake(
        "lstm_step_dnext_h_written_into",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    i, f, o, g = np.hsplit(gates, 4)
    tanhc = np.tanh(next_c)
    do = dnext_h * tanhc
    dtanhc = np.multiply(dnext_h, o, out=dnext_h)
    dc = dtanhc * (1 - tanhc ** 2) + dnext_c
    da = np.hstack([dc * g * i * (1 - i), dc * prev_c * f * (1 - f), do * o * (1 - o), dc * i * (1 - g ** 2)])
    dprev_c = dc * f
    return da @ Wx.T, da @ Wh.T, dprev_c, x.T @ da, prev_h.T @ da, da.sum(axis=0)
""",
        either("dnext_h", WRITTEN),
        "writes into an input",
        {"np.multiply(dnext_h, o, out=dnext_h)": "np.multiply(dnext_h, o)"},
    ),
    Mistake(
        "lstm_step_dWh_transposed",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    tanh_c = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - tanh_c**2)
    da = np.concatenate([
        dc * g * i * (1 - i),
        dc * prev_c * f * (1 - f),
        dnext_h * tanh_c * o * (1 - o),
        dc * i * (1 - g**2),
    ], axis=1)
    dWx = np.einsum("nd,ng->dg", x, da)
    dWh = np.einsum("nh,ng->gh", prev_h, da)
    return da @ Wx.T, da @ Wh.T, dc * f, dWx, dWh, da.sum(axis=0)
""",
        either("dWh", TRANSPOSED + "|shape"),
        "transposed",
        {'"nh,ng->gh"': '"nh,ng->hg"'},
    ),
    Mistake(
        "lstm_step_dprev_h_lacks_transpose_of_one_gate",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    H = next_c.shape[1]
    i, f, o, g = np.hsplit(gates, 4)
    Whi, Whf, Who, Whg = Wh[:, :H], Wh[:, H:2*H], Wh[:, 2*H:3*H], Wh[:, 3*H:]
    t = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - t ** 2)
    di, df = dc * g * i * (1 - i), dc * prev_c * f * (1 - f)
    do, dg = dnext_h * t * o * (1 - o), dc * i * (1 - g ** 2)
    dprev_h = di.dot(Whi.T) + df.dot(Whf) + do.dot(Who.T) + dg.dot(Whg.T)
    da = np.hstack([di, df, do, dg])
    return da.dot(Wx.T), dprev_h, dc * f, x.T.dot(da), prev_h.T.dot(da), da.sum(axis=0)
""",
        either("dprev_h", TRANSPOSED + "|f|Wh_f|da_f"),
        "transposed",
        {"df.dot(Whf)": "df.dot(Whf.T)"},
    ),
    Mistake(
        "lstm_step_dprev_h_lacks_transpose_of_all_gates",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c = cache["x"], cache["h"], cache["c"]
    i, f, o, g, tc = cache["i"], cache["f"], cache["o"], cache["g"], cache["tc"]
    dc = dnext_c + dnext_h * o * (1 - tc ** 2)
    parts = [dc * g * i * (1 - i), dc * prev_c * f * (1 - f),
             dnext_h * tc * o * (1 - o), dc * i * (1 - g ** 2)]
    dx, dprev_h = 0, 0
    for part, wx, wh in zip(parts, np.split(cache["Wx"], 4, axis=1), np.split(cache["Wh"], 4, axis=1)):
        dx = dx + part @ wx.T
        dprev_h = dprev_h + part @ wh
    da = np.hstack(parts)
    return dx, dprev_h, dc * f, x.T @ da, prev_h.T @ da, da.sum(axis=0)
""",
        either("dprev_h", TRANSPOSED),
        "transposed",
        {"part @ wh\n": "part @ wh.T\n"},
    ),
    Mistake(
        "lstm_step_dx_lacks_output_gate",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    H = prev_h.shape[1]
    tc = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - tc ** 2)
    dai = dc * g * i * (1 - i)
    daf = dc * prev_c * f * (1 - f)
    dao = dnext_h * tc * o * (1 - o)
    dag = dc * i * (1 - g ** 2)
    dx = dai @ Wx[:, :H].T + daf @ Wx[:, H:2*H].T + dag @ Wx[:, 3*H:].T
    da = np.hstack([dai, daf, dao, dag])
    return dx, da @ Wh.T, dc * f, x.T @ da, prev_h.T @ da, da.sum(axis=0)
""",
        either("dx", "da_o|o|output"),
        "missing term",
        {"dag @ Wx[:, 3*H:].T\n": "dag @ Wx[:, 3*H:].T + dao @ Wx[:, 2*H:3*H].T\n"},
    ),
    Mistake(
        "lstm_step_dprev_h_lacks_candidate",
        "lstm_step",
        BLOCK
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, gates, next_c = cache
    H = prev_c.shape[1]
    i, f, o, g = np.hsplit(gates, 4)
    tc = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - tc ** 2)
    da = np.hstack([dc * g, dc * prev_c, dnext_h * tc, dc * i])
    da[:, :3*H] *= gates[:, :3*H] * (1 - gates[:, :3*H])
    da[:, 3*H:] *= 1 - g ** 2
    # only the gates look at the previous state
    dprev_h = da[:, :3*H].dot(Wh[:, :3*H].T)
    return da.dot(Wx.T), dprev_h, dc * f, x.T.dot(da), prev_h.T.dot(da), da.sum(axis=0)
""",
        either("dprev_h", "da_g|g|candidate"),
        "missing term",
        {"da[:, :3*H].dot(Wh[:, :3*H].T)": "da.dot(Wh.T)"},
    ),
    Mistake(
        "lstm_step_dWh_reads_prev_c",
        "lstm_step",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    i, f, o, g, tc = [cache[name] for name in ("i", "f", "o", "g", "tc")]
    dc = dnext_c + dnext_h * o * (1 - tc * tc)
    da = np.hstack((dc * g * i * (1 - i), dc * cache["c"] * f * (1 - f),
                    dnext_h * tc * o * (1 - o), dc * i * (1 - g * g)))
    dWx = cache["x"].T.dot(da)
    dWh = cache["c"].T.dot(da)
    dx = da.dot(cache["Wx"].T)
    dprev_h = da.dot(cache["Wh"].T)
    return dx, dprev_h, dc * f, dWx, dWh, da.sum(axis=0)
""",
        either("dWh", "prev_c|prev_h"),
        "wrong variable",
        {'dWh = cache["c"]': 'dWh = cache["h"]'},
    ),
    Mistake(
        "lstm_step_gradients_averaged_over_batch",
        "lstm_step",
        STACKED
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    inp, W, prev_c, ai, af, ao, ag, next_c = cache
    N, H = next_c.shape
    i, f, o, g, tc = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag), np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - tc ** 2)
    da = np.hstack([dc * g * i * (1 - i), dc * prev_c * f * (1 - f),
                    dnext_h * tc * o * (1 - o), dc * i * (1 - g ** 2)])
    dinp = da @ W.T
    dW = (inp.T @ da) / N
    db = da.sum(axis=0) / N
    return dinp[:, :-H], dinp[:, -H:], dc * f, dW[:-H], dW[-H:], db
""",
        either("dWx|dWh|db", AVERAGED),
        "wrong scale",
        {"(inp.T @ da) / N": "inp.T @ da", "da.sum(axis=0) / N": "da.sum(axis=0)"},
    ),
    Mistake(
        "lstm_step_weights_of_last_sample_only",
        "lstm_step",
        """
import numpy as np

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(Wx.shape[1])
    dx, dprev_h, dprev_c = np.zeros_like(x), np.zeros_like(prev_h), np.zeros_like(prev_c)
    for n in range(len(x)):
        t = np.tanh(next_c[n])
        dc = dnext_c[n] + dnext_h[n] * o[n] * (1 - t ** 2)
        da = np.concatenate([
            dc * g[n] * i[n] * (1 - i[n]),
            dc * prev_c[n] * f[n] * (1 - f[n]),
            dnext_h[n] * t * o[n] * (1 - o[n]),
            dc * i[n] * (1 - g[n] ** 2),
        ])
        dx[n], dprev_h[n], dprev_c[n] = Wx @ da, Wh @ da, dc * f[n]
        dWx = np.outer(x[n], da)
        dWh = np.outer(prev_h[n], da)
        db += da
    return dx, dprev_h, dprev_c, dWx, dWh, db
""",
        either("dWx|dWh", "batch|summed|sum|overwritten|accumulated|last|added|N|samples|rows|sequences"),
        "overwritten",
        {"dWx = np.outer": "dWx += np.outer", "dWh = np.outer": "dWh += np.outer"},
    ),
]
