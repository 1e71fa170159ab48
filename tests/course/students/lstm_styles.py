"""Right forwards of one LSTM step in three styles, each with a cache of its own."""

from __future__ import annotations

SIGMOID = """
import numpy as np

def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))
"""

# A dict with an array for each name.
DICT = (
    SIGMOID
    + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x.dot(Wx) + prev_h.dot(Wh) + b
    i = sigmoid(a[:, :H])
    f = sigmoid(a[:, H:2*H])
    o = sigmoid(a[:, 2*H:3*H])
    g = np.tanh(a[:, 3*H:])
    next_c = f * prev_c + i * g
    tc = np.tanh(next_c)
    next_h = o * tc
    cache = dict(x=x, h=prev_h, c=prev_c, Wx=Wx, Wh=Wh, i=i, f=f, o=o, g=g, tc=tc)
    return next_h, next_c, cache
"""
)

# All sigmoids at once; the activated gates stay in one array (N, 4H).
BLOCK = (
    SIGMOID
    + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = len(Wh)
    gates = np.dot(x, Wx) + np.dot(prev_h, Wh) + b
    gates[:, :3 * H] = sigmoid(gates[:, :3 * H])
    gates[:, 3 * H:] = np.tanh(gates[:, 3 * H:])
    i, f, o, g = np.hsplit(gates, 4)
    next_c = prev_c * f + g * i
    next_h = np.tanh(next_c) * o
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, gates, next_c)
"""
)

# Input and state side by side, one weight; the gates before their nonlinearities are saved.
STACKED = (
    SIGMOID
    + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    inp = np.concatenate((x, prev_h), axis=1)
    W = np.concatenate((Wx, Wh), axis=0)
    ai, af, ao, ag = np.split(inp @ W + b, 4, axis=1)
    next_c = sigmoid(af) * prev_c + sigmoid(ai) * np.tanh(ag)
    next_h = sigmoid(ao) * np.tanh(next_c)
    return next_h, next_c, (inp, W, prev_c, ai, af, ao, ag, next_c)
"""
)

# One step backward with the cache of DICT.
DICT_BACKWARD = """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, h, c, Wx, Wh, i, f, o, g, tc = cache.values()
    dc = dnext_c + dnext_h * o * (1 - tc ** 2)
    di, df, do, dg = dc * g, dc * c, dnext_h * tc, dc * i
    da = np.hstack([di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g ** 2)])
    return da.dot(Wx.T), da.dot(Wh.T), dc * f, x.T.dot(da), h.T.dot(da), da.sum(axis=0)
"""

# A sequence by step functions; the cache is a list of the steps' caches.
STEPS_FORWARD = """
def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    h = np.zeros((N, T, h0.shape[1]))
    prev_h, prev_c, cache = h0, np.zeros(h0.shape), []
    for t in range(T):
        prev_h, prev_c, step = lstm_step_forward(x[:, t], prev_h, prev_c, Wx, Wh, b)
        h[:, t] = prev_h
        cache.append(step)
    return h, cache
"""

STEPS = DICT + DICT_BACKWARD + STEPS_FORWARD

STEPS_BACKWARD = """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    dx, dWx, dWh, db = [], 0, 0, 0
    dhid, dcell = np.zeros((N, H)), np.zeros((N, H))
    for t in reversed(range(T)):
        dx_t, dhid, dcell, dWx_t, dWh_t, db_t = lstm_step_backward(dh[:, t] + dhid, dcell, cache[t])
        dx.append(dx_t)
        dWx, dWh, db = dWx + dWx_t, dWh + dWh_t, db + db_t
    return np.stack(dx[::-1], axis=1), dhid, dWx, dWh, db
"""

# A sequence without step functions; all states and gates in arrays (T, N, H), with the first states in front.
ARRAYS = (
    SIGMOID
    + """
def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = h0.shape[1]
    hs, cs = np.zeros((T + 1, N, H)), np.zeros((T + 1, N, H))
    hs[0] = h0
    I, F, O, G = np.zeros((4, T, N, H))
    for t in range(T):
        a = x[:, t] @ Wx + hs[t] @ Wh + b
        I[t], F[t], O[t] = sigmoid(a[:, :H]), sigmoid(a[:, H:2*H]), sigmoid(a[:, 2*H:3*H])
        G[t] = np.tanh(a[:, 3*H:])
        cs[t + 1] = F[t] * cs[t] + I[t] * G[t]
        hs[t + 1] = O[t] * np.tanh(cs[t + 1])
    return hs[1:].transpose(1, 0, 2), (x, Wx, Wh, hs, cs, I, F, O, G)
"""
)

ARRAYS_BACKWARD = """
def lstm_backward(dh, cache):
    x, Wx, Wh, hs, cs, I, F, O, G = cache
    T, N, H = I.shape
    dx, dWx, dWh, db = np.zeros(x.shape), np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(4 * H)
    dhid, dcell = np.zeros((N, H)), np.zeros((N, H))
    for t in range(T - 1, -1, -1):
        tc = np.tanh(cs[t + 1])
        dhid = dhid + dh[:, t]
        dcell = dcell + dhid * O[t] * (1 - tc ** 2)
        da = np.hstack([dcell * G[t], dcell * cs[t], dhid * tc, dcell * I[t]])
        da *= np.hstack([I[t] * (1 - I[t]), F[t] * (1 - F[t]), O[t] * (1 - O[t]), 1 - G[t] ** 2])
        dx[:, t] = da.dot(Wx.T)
        dWx += x[:, t].T.dot(da)
        dWh += hs[t].T.dot(da)
        db += da.sum(axis=0)
        dhid, dcell = da.dot(Wh.T), dcell * F[t]
    return dx, dhid, dWx, dWh, db
"""
