"""Mistakes in the forward of the LSTM over a sequence, and in the results of its backward."""

from __future__ import annotations

from .lstm_styles import (
    ARRAYS,
    ARRAYS_BACKWARD,
    DICT,
    DICT_BACKWARD,
    SIGMOID,
    STEPS,
    STEPS_BACKWARD,
    STEPS_FORWARD,
)
from .mistake import BATCH, ORDER, TWICE, Mistake, either, planted

MISTAKES = [
    Mistake(
        "lstm_forward_c_not_carried",
        "lstm",
        SIGMOID
        + """
def lstm_forward(x, h0, Wx, Wh, b):
    (N, T, D), H = x.shape, h0.shape[1]
    h, caches, prev_h = np.zeros((N, T, H)), [], h0
    for t in range(T):
        prev_c = np.zeros((N, H))
        i, f, o, g = np.hsplit(x[:, t].dot(Wx) + prev_h.dot(Wh) + b, 4)
        i, f, o, g = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(g)
        next_c = f * prev_c + i * g
        next_h = o * np.tanh(next_c)
        caches.append((x[:, t], prev_h, prev_c, Wx, Wh, i, f, o, g, next_c))
        prev_h = h[:, t] = next_h
        prev_c = next_c
    return h, (x, h0, None, Wx, Wh, np.ones((T, N, 1)), caches)
""",
        either("prev_c|next_c", "zero|zeros|carried|passed|step|steps|time|each step|every step"),
        "through time",
        {
            "        prev_c = np.zeros((N, H))\n": "",
            "caches, prev_h = np.zeros((N, T, H)), [], h0": "caches, prev_h = np.zeros((N, T, H)), [], h0\n"
            "    prev_c = np.zeros((N, H))",
        },
    ),
    Mistake(
        "lstm_forward_first_cell_state_is_h0",
        "lstm",
        SIGMOID
        + """
def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = h0.shape[1]
    hs, cs = np.zeros((T + 1, N, H)), np.zeros((T + 1, N, H))
    hs[0] = h0
    cs[0] = h0
    gates = np.zeros((4, T, N, H))
    for t in range(T):
        a = x[:, t].dot(Wx) + hs[t].dot(Wh) + b
        for k in range(3):
            gates[k, t] = sigmoid(a[:, k*H:(k+1)*H])
        gates[3, t] = np.tanh(a[:, 3*H:])
        cs[t + 1] = gates[1, t] * cs[t] + gates[0, t] * gates[3, t]
        hs[t + 1] = gates[2, t] * np.tanh(cs[t + 1])
    return hs[1:].transpose(1, 0, 2), (x, Wx, Wh, hs, cs, *gates)
"""
        + ARRAYS_BACKWARD,
        either("prev_c|c0|next_c|cell", "h0|zero|zeros|first|start|starts"),
        "wrong forward",
        {"cs[0] = h0\n": "cs[0] = 0\n"},
    ),
    Mistake(
        "lstm_forward_ignores_h0",
        "lstm",
        DICT
        + DICT_BACKWARD
        + """
def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = Wh.shape[0]
    h = np.zeros((N, T, H))
    cache = []
    state = (np.zeros((N, H)), np.zeros((N, H)))
    for t in range(T):
        *state, step = lstm_step_forward(x[:, t], *state, Wx, Wh, b)
        h[:, t] = state[0]
        cache.append(step)
    return h, cache
"""
        + STEPS_BACKWARD,
        either("h0", "h|prev_h|next_h|zero|zeros|ignored|first|read|used|forward|lacks"),
        "wrong forward",
        {"state = (np.zeros((N, H)), np.zeros((N, H)))": "state = (h0, np.zeros((N, H)))"},
    ),
    Mistake(
        "lstm_gates_in_order_ifgo",
        "lstm",
        SIGMOID
        + """
def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    h, c = h0, np.zeros_like(h0)
    saved = []
    for t in range(T):
        ai, af, ag, ao = np.split(x[:, t] @ Wx + h @ Wh + b, 4, axis=1)
        i, f, g, o = sigmoid(ai), sigmoid(af), np.tanh(ag), sigmoid(ao)
        new_c = f * c + i * g
        new_h = o * np.tanh(new_c)
        saved.append((h, c, i, f, g, o, new_c, new_h))
        h, c = new_h, new_c
    return np.stack([s[-1] for s in saved], axis=1), (x, Wx, Wh, saved)

def lstm_backward(dh, cache):
    x, Wx, Wh, saved = cache
    dx, dWx, dWh, db = np.zeros(x.shape), 0, 0, 0
    dhid, dcell = 0, 0
    for t in reversed(range(len(saved))):
        h, c, i, f, g, o, new_c, new_h = saved[t]
        dhid = dhid + dh[:, t]
        dcell = dcell + dhid * o * (1 - np.tanh(new_c) ** 2)
        dai, daf = dcell * g * i * (1 - i), dcell * c * f * (1 - f)
        dag, dao = dcell * i * (1 - g ** 2), dhid * np.tanh(new_c) * o * (1 - o)
        da = np.hstack([dai, daf, dag, dao])
        dx[:, t] = da @ Wx.T
        dWx, dWh, db = dWx + x[:, t].T @ da, dWh + h.T @ da, db + da.sum(axis=0)
        dhid, dcell = da @ Wh.T, dcell * f
    return dx, dhid, dWx, dWh, db
""",
        either("gates|o|g", ORDER) + either("o", "g"),
        "gate order",
        {
            "ai, af, ag, ao = np.split": "ai, af, ao, ag = np.split",
            "[dai, daf, dag, dao]": "[dai, daf, dao, dag]",
        },
    ),
    Mistake(
        "lstm_forward_reads_h0_at_each_step",
        "lstm",
        SIGMOID
        + """
def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    hs, cs = np.zeros((T + 1, N, len(Wh))), np.zeros((T + 1, N, len(Wh)))
    hs[0] = h0
    I, F, O, G = np.zeros((4, T, N, len(Wh)))
    # all steps' products at once
    A = x.transpose(1, 0, 2) @ Wx + h0 @ Wh + b
    for t in range(T):
        a = A[t]
        ai, af, ao, ag = np.split(a, 4, axis=1)
        I[t], F[t], O[t], G[t] = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag)
        cs[t + 1] = F[t] * cs[t] + I[t] * G[t]
        hs[t + 1] = O[t] * np.tanh(cs[t + 1])
    return hs[1:].transpose(1, 0, 2), (x, Wx, Wh, hs, cs, I, F, O, G)
"""
        + ARRAYS_BACKWARD,
        either("h0", "h|prev_h|next_h|each step|every step|all steps")
        + either("prev_h", "h|next_h|step|time"),
        "wrong step",
        {"Wx + h0 @ Wh + b": "Wx + b", "a = A[t]\n": "a = A[t] + hs[t] @ Wh\n"},
    ),
    Mistake(
        "lstm_forward_passes_c_as_h",
        "lstm",
        DICT
        + DICT_BACKWARD
        + """
def lstm_forward(x, h0, Wx, Wh, b):
    outputs, cache = [], []
    h, c = h0, np.zeros(h0.shape)
    for t in range(x.shape[1]):
        next_h, next_c, step = lstm_step_forward(x[:, t, :], h, c, Wx, Wh, b)
        outputs.append(next_h)
        cache.append(step)
        h, c = next_c, next_c
    return np.stack(outputs, axis=1), cache
"""
        + STEPS_BACKWARD,
        either("prev_h", "next_c|next_h|prev_c"),
        "wrong variable",
        {"h, c = next_c, next_c": "h, c = next_h, next_c"},
    ),
    Mistake(
        "lstm_forward_adds_b_twice",
        "lstm",
        SIGMOID
        + """
def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = h0.shape[1]
    xa = (x.reshape(N * T, D).dot(Wx) + b).reshape(N, T, 4 * H)
    h, c = h0, np.zeros((N, H))
    out, caches = np.zeros((N, T, H)), []
    for t in range(T):
        a = xa[:, t] + h.dot(Wh) + b
        i, f, o = (sigmoid(a[:, k * H:(k + 1) * H]) for k in range(3))
        g = np.tanh(a[:, -H:])
        new_c = f * c + i * g
        new_h = o * np.tanh(new_c)
        caches.append((x[:, t], h, c, Wx, Wh, i, f, o, g, new_c))
        h, c = new_h, new_c
        out[:, t] = h
    return out, (x, h0, None, Wx, Wh, np.ones((T, N, 1)), caches)
""",
        either("b|bias", TWICE),
        "doubled",
        {"h.dot(Wh) + b\n": "h.dot(Wh)\n"},
    ),
    planted(
        "lstm_forward_cells_returned_for_h",
        "lstm",
        ARRAYS + ARRAYS_BACKWARD,
        {"return hs[1:]": "return cs[1:]"},
        either("h|next_h", "c|next_c|cell"),
        "wrong variable",
    ),
    Mistake(
        "lstm_db_not_summed_over_batch",
        "lstm",
        DICT
        + """
def lstm_step_backward(dnext_h, dnext_c, cache):
    i, f, o, g, tc = (cache[k] for k in ("i", "f", "o", "g", "tc"))
    dc = dnext_c + dnext_h * o * (1 - tc ** 2)
    da = np.hstack([dc * g, dc * cache["c"], dnext_h * tc, dc * i])
    da *= np.hstack([i * (1 - i), f * (1 - f), o * (1 - o), 1 - g ** 2])
    return da @ cache["Wx"].T, da @ cache["Wh"].T, dc * f, cache["x"].T @ da, cache["h"].T @ da, da
"""
        + STEPS_FORWARD
        + STEPS_BACKWARD,
        either("db", BATCH + "|shape"),
        "wrong sum",
        {'cache["h"].T @ da, da\n': 'cache["h"].T @ da, da.sum(axis=0)\n'},
    ),
    Mistake(
        "lstm_dWx_and_dWh_swapped",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    dh_next, dc_next = np.zeros(dh[:, 0].shape), np.zeros(dh[:, 0].shape)
    dx, grads = [], {}
    for t in reversed(range(len(cache))):
        dxt, dh_next, dc_next, *step = lstm_step_backward(dh[:, t] + dh_next, dc_next, cache[t])
        dx.append(dxt)
        for name, value in zip(("Wx", "Wh", "b"), step):
            grads[name] = grads.get(name, 0) + value
    return np.stack(dx[::-1], axis=1), dh_next, grads["Wh"], grads["Wx"], grads["b"]
""",
        either("dWx", "dWh") + either("dWx|dWh", ORDER),
        "order of results",
        {'grads["Wh"], grads["Wx"], grads["b"]': 'grads["Wx"], grads["Wh"], grads["b"]'},
    ),
    Mistake(
        "lstm_db_has_two_axes",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0]["x"].shape[1]
    dx, dWx, dWh, db = np.zeros((N, T, D)), np.zeros((D, 4 * H)), np.zeros((H, 4 * H)), np.zeros((1, 4 * H))
    dhid = dcell = np.zeros((N, H))
    for t in reversed(range(T)):
        dx[:, t], dhid, dcell, a, b, c = lstm_step_backward(dh[:, t] + dhid, dcell, cache[t])
        dWx += a
        dWh += b
        db += c
    return dx, dhid, dWx, dWh, db
""",
        either("db", "shape"),
        "wrong shape",
        {"np.zeros((1, 4 * H))": "np.zeros(4 * H)"},
    ),
    Mistake(
        "lstm_da_i_lacks_g",
        "lstm",
        """
import numpy as np

def lstm_backward(dh, cache):
    x, h0, c0, Wx, Wh, m, steps = cache
    dx, dWx, dWh, db = np.zeros(x.shape), np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(Wx.shape[1])
    dhid, dcell = np.zeros(h0.shape), np.zeros(h0.shape)
    for t in reversed(range(len(steps))):
        xt, hp, cp, _, _, i, f, o, g, c = steps[t]
        dhid = dhid + dh[:, t]
        tc = np.tanh(c)
        dcell = dcell + dhid * o * (1 - tc ** 2)
        di = dcell
        da = np.hstack((di * i * (1 - i), dcell * cp * f * (1 - f),
                        dhid * tc * o * (1 - o), dcell * i * (1 - g ** 2)))
        dx[:, t] = da.dot(Wx.T)
        dWx += xt.T.dot(da)
        dWh += hp.T.dot(da)
        db += da.sum(axis=0)
        dhid, dcell = da.dot(Wh.T), dcell * f
    return dx, dhid, dWx, dWh, db
""",
        either("da_i", "g"),
        "missing factor",
        {"di = dcell\n": "di = dcell * g\n"},
    ),
    planted(
        "lstm_dc_lacks_o",
        "lstm",
        ARRAYS + ARRAYS_BACKWARD,
        {"dhid * O[t] * (1 - tc ** 2)": "dhid * (1 - tc ** 2)"},
        either("dc", "o"),
        "missing factor",
    ),
]
