"""Mistakes in the LSTM over a sequence: gradients that read or write the wrong step."""

from __future__ import annotations

from .lstm_styles import ARRAYS, STEPS
from .mistake import TRANSPOSED, Mistake, either

MISTAKES = [
    Mistake(
        "lstm_dh0_is_dprev_c",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    dx = []
    dnext_h, dnext_c = np.zeros((N, H)), np.zeros((N, H))
    total = [0, 0, 0]
    for t in reversed(range(T)):
        d, dnext_h, dnext_c, *weights = lstm_step_backward(dh[:, t] + dnext_h, dnext_c, cache[t])
        dx = [d] + dx
        total = [a + b for a, b in zip(total, weights)]
    return np.stack(dx, axis=1), dnext_c, *total
""",
        either("dh0", "dprev_c|dc_t|dprev_h|dc0|cell|dc"),
        "wrong variable",
        {"return np.stack(dx, axis=1), dnext_c,": "return np.stack(dx, axis=1), dnext_h,"},
    ),
    Mistake(
        "lstm_da_f_reads_c_of_same_step",
        "lstm",
        ARRAYS
        + """
def lstm_backward(dh, cache):
    x, Wx, Wh, hs, cs, I, F, O, G = cache
    T, N, H = I.shape
    dx, dWx, dWh, db = np.zeros(x.shape), 0, 0, 0
    dhid, dcell = 0, 0
    for t in range(T - 1, -1, -1):
        h_prev, c = hs[t], cs[t + 1]
        dhid = dhid + dh[:, t]
        dcell = dcell + dhid * O[t] * (1 - np.tanh(c) ** 2)
        dai = dcell * G[t] * I[t] * (1 - I[t])
        daf = dcell * c * F[t] * (1 - F[t])
        dao = dhid * np.tanh(c) * O[t] * (1 - O[t])
        dag = dcell * I[t] * (1 - G[t] ** 2)
        da = np.concatenate([dai, daf, dao, dag], axis=1)
        dx[:, t] = da.dot(Wx.T)
        dWx, dWh, db = dWx + x[:, t].T.dot(da), dWh + h_prev.T.dot(da), db + da.sum(axis=0)
        dhid, dcell = da.dot(Wh.T), dcell * F[t]
    return dx, dhid, dWx, dWh, db
""",
        either("da_f", "prev_c|next_c"),
        "wrong step",
        {"daf = dcell * c *": "daf = dcell * cs[t] *"},
    ),
    Mistake(
        "lstm_dWh_reads_h_of_same_step",
        "lstm",
        ARRAYS
        + """
def lstm_backward(dh, cache):
    x, Wx, Wh, hs, cs, I, F, O, G = cache
    T, N, H = I.shape
    D = x.shape[2]
    da = np.zeros((T, N, 4, H))
    dhid, dcell = np.zeros((N, H)), np.zeros((N, H))
    for t in reversed(range(T)):
        i, f, o, g, tc = I[t], F[t], O[t], G[t], np.tanh(cs[t + 1])
        dhid += dh[:, t]
        dcell += dhid * o * (1 - tc ** 2)
        da[t, :, 0] = dcell * g * i * (1 - i)
        da[t, :, 1] = dcell * cs[t] * f * (1 - f)
        da[t, :, 2] = dhid * tc * o * (1 - o)
        da[t, :, 3] = dcell * i * (1 - g ** 2)
        dhid = da[t].reshape(N, 4 * H).dot(Wh.T)
        dcell *= f
    flat = da.reshape(T * N, 4 * H)
    dx = flat.dot(Wx.T).reshape(T, N, D).swapaxes(0, 1)
    dWx = x.swapaxes(0, 1).reshape(T * N, D).T.dot(flat)
    dWh = hs[1:].reshape(T * N, H).T.dot(flat)
    return dx, dhid, dWx, dWh, flat.sum(0)
""",
        either("dWh", "prev_h|next_h|step|h0"),
        "wrong step",
        {"hs[1:].reshape": "hs[:-1].reshape"},
    ),
    Mistake(
        "lstm_dWh_reads_h0_at_each_step",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    h0 = cache[0]["h"]
    dx, dWx, dWh, db = [None] * T, 0, 0, 0
    dhid, dcell = np.zeros((N, H)), np.zeros((N, H))
    for t in reversed(range(T)):
        saved = dict(cache[t], h=h0)
        dx[t], dhid, dcell, a, b, c = lstm_step_backward(dh[:, t] + dhid, dcell, saved)
        dWx, dWh, db = dWx + a, dWh + b, db + c
    return np.array(dx).transpose(1, 0, 2), dhid, dWx, dWh, db
""",
        either("dWh", "h0|prev_h"),
        "wrong step",
        {"dict(cache[t], h=h0)": "dict(cache[t])"},
    ),
    Mistake(
        "lstm_dc_reads_c_of_previous_step",
        "lstm",
        ARRAYS
        + """
def lstm_backward(dh, cache):
    x, Wx, Wh, hs, cs, I, F, O, G = cache
    T, N, H = I.shape
    dx, dWx, dWh, db = np.zeros(x.shape), np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(4 * H)
    dnext_h = np.zeros((N, H))
    dnext_c = np.zeros((N, H))
    for t in reversed(range(T)):
        dht = dh[:, t] + dnext_h
        dct = dnext_c + dht * O[t] * (1 - np.tanh(cs[t]) ** 2)
        da = np.concatenate([dct * G[t] * I[t] * (1 - I[t]),
                             dct * cs[t] * F[t] * (1 - F[t]),
                             dht * np.tanh(cs[t + 1]) * O[t] * (1 - O[t]),
                             dct * I[t] * (1 - G[t] ** 2)], axis=1)
        dx[:, t] = da.dot(Wx.T)
        dWx += x[:, t].T.dot(da)
        dWh += hs[t].T.dot(da)
        db += np.sum(da, axis=0)
        dnext_h = da.dot(Wh.T)
        dnext_c = dct * F[t]
    return dx, dnext_h, dWx, dWh, db
""",
        either("dc", "prev_c|next_c|tanh_c|tanh"),
        "wrong step",
        {"(1 - np.tanh(cs[t]) ** 2)": "(1 - np.tanh(cs[t + 1]) ** 2)"},
    ),
    Mistake(
        "lstm_dc_multiplied_by_f_of_previous_step",
        "lstm",
        ARRAYS
        + """
def lstm_backward(dh, cache):
    x, Wx, Wh, hs, cs, I, F, O, G = cache
    T, N, H = I.shape
    TC = np.tanh(cs[1:])
    dh_time = dh.transpose(1, 0, 2)
    dA = np.zeros((T, N, 4 * H))
    carry_h, carry_c = np.zeros((N, H)), np.zeros((N, H))
    for t in range(T - 1, -1, -1):
        total_h = dh_time[t] + carry_h
        total_c = carry_c + total_h * O[t] * (1 - TC[t] ** 2)
        dA[t, :, :H] = total_c * G[t] * I[t] * (1 - I[t])
        dA[t, :, H:2*H] = total_c * cs[t] * F[t] * (1 - F[t])
        dA[t, :, 2*H:3*H] = total_h * TC[t] * O[t] * (1 - O[t])
        dA[t, :, 3*H:] = total_c * I[t] * (1 - G[t] ** 2)
        carry_h = dA[t] @ Wh.T
        carry_c = total_c * F[t - 1]
    dx = (dA @ Wx.T).transpose(1, 0, 2)
    dWx = sum(x[:, t].T @ dA[t] for t in range(T))
    dWh = sum(hs[t].T @ dA[t] for t in range(T))
    return dx, carry_h, dWx, dWh, dA.sum(axis=0).sum(axis=0)
""",
        either("dprev_c|dc_t|dnext_c|dc", "f"),
        "wrong step",
        {"total_c * F[t - 1]": "total_c * F[t]"},
    ),
    Mistake(
        "lstm_dx_steps_reversed",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    dxs = []
    sums = {"Wx": 0, "Wh": 0, "b": 0}
    dh_next = np.zeros_like(dh[:, 0])
    dc_next = np.zeros_like(dh[:, 0])
    for t in range(dh.shape[1] - 1, -1, -1):
        dx_t, dh_next, dc_next, gx, gh, gb = lstm_step_backward(dh[:, t] + dh_next, dc_next, cache[t])
        dxs.append(dx_t)
        sums = {"Wx": sums["Wx"] + gx, "Wh": sums["Wh"] + gh, "b": sums["b"] + gb}
    dx = np.stack(dxs, axis=1)
    return dx, dh_next, sums["Wx"], sums["Wh"], sums["b"]
""",
        either("dx", "step|steps|time|reversed|order"),
        "wrong step",
        {"np.stack(dxs, axis=1)": "np.stack(dxs[::-1], axis=1)"},
    ),
    Mistake(
        "lstm_dh_t_lacks_transpose",
        "lstm",
        ARRAYS
        + """
def lstm_backward(dh, cache):
    x, Wx, Wh, hs, cs, I, F, O, G = cache
    T, N, H = I.shape
    dx, dWx, dWh, db = np.zeros(x.shape), np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(4 * H)
    W = dict(zip("ifog", np.split(Wh, 4, axis=1)))
    dhid, dcell = 0.0, 0.0
    for t in range(T - 1, -1, -1):
        tc = np.tanh(cs[t + 1])
        dhid = dhid + dh[:, t]
        dcell = dcell + dhid * O[t] * (1 - tc ** 2)
        d = {
            "i": dcell * G[t] * I[t] * (1 - I[t]),
            "f": dcell * cs[t] * F[t] * (1 - F[t]),
            "o": dhid * tc * O[t] * (1 - O[t]),
            "g": dcell * I[t] * (1 - G[t] ** 2),
        }
        da = np.hstack([d[k] for k in "ifog"])
        dx[:, t] = da.dot(Wx.T)
        dWx += x[:, t].T.dot(da)
        dWh += hs[t].T.dot(da)
        db += da.sum(0)
        dhid = sum(d[k].dot(W[k]) for k in "ifog")
        dcell = dcell * F[t]
    return dx, dhid, dWx, dWh, db
""",
        either("dprev_h|dh_t|dh0", TRANSPOSED),
        "transposed",
        {"d[k].dot(W[k])": "d[k].dot(W[k].T)"},
    ),
]
