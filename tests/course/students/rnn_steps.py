"""Mistakes in the vanilla RNN over a sequence: the wrong step, the forward, and the results."""

from __future__ import annotations

from .mistake import BATCH, ORDER, Mistake, either
from .rnn_styles import ARRAY, LIST, STEP

MISTAKES = [
    Mistake(
        "rnn_forward_reads_h0_at_each_step",
        "rnn",
        STEP
        + """
def rnn_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    h = np.zeros((N, T, h0.shape[1]))
    caches = []
    prev = h0
    for t in range(T):
        h[:, t], cache = rnn_step_forward(x[:, t], prev, Wx, Wh, b)
        caches.append(cache)
    return h, (x, h0, Wx, Wh, np.ones((T, N, 1)), caches)
""",
        either("h0", "h|prev_h|next_h|each step|every step|all steps") + either("prev_h", "h|next_h|step"),
        "wrong step",
        {"caches.append(cache)\n": "caches.append(cache)\n        prev = h[:, t]\n"},
    ),
    Mistake(
        "rnn_dWh_reads_h_of_same_step",
        "rnn",
        ARRAY
        + """
def rnn_backward(dh, cache):
    x, hs, Wx, Wh = cache["x"], cache["hs"], cache["Wx"], cache["Wh"]
    dx, dWx, dWh, db = np.zeros_like(x), np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(len(Wh))
    dhidden = np.zeros_like(hs[:, 0])
    for t in range(x.shape[1], 0, -1):
        dhidden = dhidden + dh[:, t - 1]
        draw = dhidden * (1 - hs[:, t] * hs[:, t])
        dx[:, t - 1] = draw @ Wx.T
        dWx += x[:, t - 1].T @ draw
        dWh += hs[:, t].T @ draw
        db += draw.sum(0)
        dhidden = draw @ Wh.T
    return dx, dhidden, dWx, dWh, db
""",
        either("dWh", "prev_h|next_h|step"),
        "wrong step",
        {"dWh += hs[:, t].T": "dWh += hs[:, t - 1].T"},
    ),
    Mistake(
        "rnn_dWh_reads_h0_at_each_step",
        "rnn",
        """
import numpy as np

def rnn_forward(x, h0, Wx, Wh, b):
    xp = np.einsum("ntd,dh->nth", x, Wx) + b
    out, h = np.zeros_like(xp), h0
    for t in range(xp.shape[1]):
        h = np.tanh(xp[:, t] + h.dot(Wh))
        out[:, t] = h
    return out, (x, h0, Wx, Wh, out)

def rnn_backward(dh, cache):
    x, h0, Wx, Wh, h = cache
    T = h.shape[1]
    dxp = np.zeros(h.shape)
    dprev = np.zeros(h0.shape)
    dWh = np.zeros(Wh.shape)
    for t in reversed(range(T)):
        dxp[:, t] = (dh[:, t] + dprev) * (1 - h[:, t] ** 2)
        dprev = dxp[:, t].dot(Wh.T)
        dWh += h0.T.dot(dxp[:, t])
    dx = np.einsum("nth,dh->ntd", dxp, Wx)
    dWx = np.einsum("ntd,nth->dh", x, dxp)
    return dx, dprev, dWx, dWh, np.einsum("nth->h", dxp)
""",
        either("dWh", "h0|prev_h"),
        "wrong step",
        {"dWh += h0.T.dot": "dWh += (h[:, t - 1] if t > 0 else h0).T.dot"},
    ),
    Mistake(
        "rnn_dx_one_step_late",
        "rnn",
        ARRAY
        + """
def rnn_backward(dh, cache):
    x, hs, Wx, Wh = (cache[k] for k in ("x", "hs", "Wx", "Wh"))
    T = x.shape[1]
    dx, dWx, dWh, db, d = np.zeros(x.shape), 0, 0, 0, 0
    for t in range(T - 1, -1, -1):
        d = (d + dh[:, t]) * (1 - hs[:, t + 1] ** 2)
        dWx, dWh, db = dWx + x[:, t].T @ d, dWh + hs[:, t].T @ d, db + d.sum(axis=0)
        dx[:, (t + 1) % T] = d @ Wx.T
        d = d @ Wh.T
    return dx, d, dWx, dWh, db
""",
        either("dx", "step|steps|time|shifted|order|rolled"),
        "wrong step",
        {"dx[:, (t + 1) % T]": "dx[:, t]"},
    ),
    Mistake(
        "rnn_dh0_is_gradient_of_first_state",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    N, T, H = dh.shape
    dx = np.zeros((N, T, len(cache[0][2])))
    grads = {"Wx": 0, "Wh": 0, "b": 0}
    back = np.zeros((N, H))
    for t in reversed(range(T)):
        total = dh[:, t] + back
        dx[:, t], back, dWx, dWh, db = rnn_step_backward(total, cache[t])
        grads["Wx"] += dWx
        grads["Wh"] += dWh
        grads["b"] += db
    dh0 = total
    return dx, dh0, grads["Wx"], grads["Wh"], grads["b"]
""",
        either("dh0", "dprev_h|step|Wh|dh_t|first|dh"),
        "wrong step",
        {"dh0 = total": "dh0 = back"},
    ),
    Mistake(
        "rnn_forward_time_first",
        "rnn",
        """
import numpy as np

def rnn_forward(x, h0, Wx, Wh, b):
    T = x.shape[1]
    hs, caches = [h0], []
    for t in range(T):
        h = np.tanh(np.dot(x[:, t], Wx) + np.dot(hs[-1], Wh) + b)
        caches.append((x[:, t], hs[-1], Wx, Wh, h))
        hs.append(h)
    out = np.array(hs[1:])
    return out, (x, h0, Wx, Wh, np.ones((T, 1, 1)), caches)
""",
        either("h", "shape|transposed|axes|axis|time"),
        "wrong shape",
        {"np.array(hs[1:])": "np.array(hs[1:]).transpose(1, 0, 2)"},
    ),
    Mistake(
        "rnn_dx_of_one_step_only",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    N, T, H = dh.shape
    x, _, Wx, Wh, _ = cache[0]
    dh_prev, dWx, dWh, db = np.zeros((N, H)), np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(H)
    all_dx = np.zeros((N, T, x.shape[1]))
    for t in range(T - 1, -1, -1):
        dx, dh_prev, gx, gh, gb = rnn_step_backward(dh[:, t] + dh_prev, cache[t])
        all_dx[:, t] = dx
        dWx += gx
        dWh += gh
        db += gb
    return dx, dh_prev, dWx, dWh, db
""",
        either("dx", "shape"),
        "wrong shape",
        {"return dx, dh_prev": "return all_dx, dh_prev"},
    ),
    Mistake(
        "rnn_da_reads_prev_h",
        "rnn",
        """
import numpy as np

def rnn_forward(x, h0, Wx, Wh, b):
    states = [h0]
    for x_t in x.swapaxes(0, 1):
        states.append(np.tanh(x_t @ Wx + states[-1] @ Wh + b))
    return np.stack(states[1:], axis=1), (x, states, Wx, Wh)

def rnn_backward(dh, cache):
    x, states, Wx, Wh = cache
    dx, dWx, dWh, db = np.zeros_like(x), np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(Wh.shape[1])
    dstate = np.zeros_like(states[0])
    for t in reversed(range(len(states) - 1)):
        dstate = dstate + dh[:, t]
        dpre = dstate * (1 - states[t] ** 2)
        dx[:, t] = dpre @ Wx.T
        dWx += x[:, t].T @ dpre
        dWh += states[t].T @ dpre
        db += dpre.sum(0)
        dstate = dpre @ Wh.T
    return dx, dstate, dWx, dWh, db
""",
        either("da", "prev_h|next_h"),
        "wrong step",
        {"(1 - states[t] ** 2)": "(1 - states[t + 1] ** 2)"},
    ),
    Mistake(
        "rnn_forward_first_state_is_h0",
        "rnn",
        """
import numpy as np

def rnn_forward(x, h0, Wx, Wh, b):
    N, T, _ = x.shape
    h = np.zeros((N, T, Wh.shape[0]))
    h[:, 0] = h0
    caches = [(x[:, 0], h0, Wx, Wh, h0)]
    for t in range(1, T):
        h[:, t] = np.tanh(x[:, t].dot(Wx) + h[:, t - 1].dot(Wh) + b)
        caches.append((x[:, t], h[:, t - 1], Wx, Wh, h[:, t]))
    return h, (x, h0, Wx, Wh, np.ones((T, N, 1)), caches)
""",
        either("h|next_h|step|x", "h0|first|0"),
        "wrong step",
        {
            "h[:, 0] = h0": "h[:, 0] = np.tanh(x[:, 0].dot(Wx) + h0.dot(Wh) + b)",
            "caches = [(x[:, 0], h0, Wx, Wh, h0)]": "caches = [(x[:, 0], h0, Wx, Wh, h[:, 0])]",
        },
    ),
    Mistake(
        "rnn_dh0_returned_last",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    dprev_h = np.zeros(dh[:, 0].shape)
    dx, dWx, dWh, db = [], 0, 0, 0
    for t in range(dh.shape[1] - 1, -1, -1):
        step = rnn_step_backward(dh[:, t] + dprev_h, cache[t])
        dx.append(step[0])
        dprev_h = step[1]
        dWx, dWh, db = dWx + step[2], dWh + step[3], db + step[4]
    return np.stack(dx[::-1], axis=1), dWx, dWh, db, dprev_h
""",
        either("dh0", "dWx|db|" + ORDER),
        "order of results",
        {"dWx, dWh, db, dprev_h\n": "dprev_h, dWx, dWh, db\n"},
    ),
    Mistake(
        "rnn_db_not_summed_over_batch",
        "rnn",
        """
import numpy as np

def rnn_backward(dh, cache):
    x, h0, Wx, Wh, _, steps = cache
    N, T, D = x.shape
    dx, dWx, dWh = np.zeros((N, T, D)), np.zeros(Wx.shape), np.zeros(Wh.shape)
    db = np.zeros(h0.shape)
    dprev = np.zeros(h0.shape)
    for t in reversed(range(T)):
        x_t, prev_h, _, _, next_h = steps[t]
        da = (dh[:, t] + dprev) * (1 - next_h ** 2)
        dx[:, t], dprev = da @ Wx.T, da @ Wh.T
        dWx += x_t.T @ da
        dWh += prev_h.T @ da
        db += da
    return dx, dprev, dWx, dWh, db
""",
        either("db", BATCH + "|shape"),
        "wrong sum",
        {"dWx, dWh, db\n": "dWx, dWh, db.sum(axis=0)\n"},
    ),
    Mistake(
        "rnn_forward_reshapes_x_to_time_first",
        "rnn",
        STEP
        + """
def rnn_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    steps = x.reshape(T, N, D)
    h, cache, prev = np.zeros((N, T, h0.shape[1])), [], h0
    for t in range(T):
        prev, c = rnn_step_forward(steps[t], prev, Wx, Wh, b)
        cache.append(c)
        h[:, t] = prev
    return h, (x, h0, Wx, Wh, np.ones((T, N, 1)), cache)
""",
        either("x", "reshape|reshaped|axes|axis|transposed|step|steps|time|order|batch|mixed up|swapped"),
        "wrong forward",
        {"x.reshape(T, N, D)": "x.transpose(1, 0, 2)"},
    ),
]
