"""Mistakes in the LSTM over a sequence: gradients that are not passed from step to step, or not summed."""

from __future__ import annotations

from .lstm_styles import ARRAYS, STEPS
from .mistake import ACCUMULATED, OVER_STEPS, TWICE, WRITTEN, Mistake, either

CARRIED = "time|accumulated|carried|passed|step|steps|next step|later|zero|zeros|dprev_c|dc_t|dnext_c"

MISTAKES = [
    Mistake(
        "lstm_dc_not_passed_back",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    dx = np.zeros((N, T, cache[0]["x"].shape[1]))
    dWx, dWh, db = 0, 0, 0
    dprev_h = np.zeros((N, H))
    for t in reversed(range(T)):
        dnext_c = np.zeros((N, H))
        dx[:, t], dprev_h, dnext_c, a, b, c = lstm_step_backward(dh[:, t] + dprev_h, dnext_c, cache[t])
        dWx, dWh, db = dWx + a, dWh + b, db + c
    return dx, dprev_h, dWx, dWh, db
""",
        either("dc_t|dc|dnext_c|dprev_c", CARRIED),
        "through time",
        {
            "        dnext_c = np.zeros((N, H))\n": "",
            "    dprev_h = np.zeros((N, H))\n": "    dprev_h, dnext_c = np.zeros((N, H)), np.zeros((N, H))\n",
        },
    ),
    Mistake(
        "lstm_dc_not_passed_back_in_arrays",
        "lstm",
        ARRAYS
        + """
def lstm_backward(dh, cache):
    x, Wx, Wh, hs, cs, I, F, O, G = cache
    T, N, H = I.shape
    da = np.zeros((T, N, 4 * H))
    dhid = np.zeros((N, H))
    for t in range(T - 1, -1, -1):
        dhid = dhid + dh[:, t]
        tc = np.tanh(cs[t + 1])
        dcell = dhid * O[t] * (1 - tc ** 2)
        da[t] = np.hstack([
            dcell * G[t] * I[t] * (1 - I[t]),
            dcell * cs[t] * F[t] * (1 - F[t]),
            dhid * tc * O[t] * (1 - O[t]),
            dcell * I[t] * (1 - G[t] ** 2),
        ])
        dhid = da[t].dot(Wh.T)
    dWx = np.einsum("ntd,tng->dg", x, da)
    dWh = np.einsum("tnh,tng->hg", hs[:-1], da)
    return np.einsum("tng,dg->ntd", da, Wx), dhid, dWx, dWh, da.sum(axis=(0, 1))
""",
        either("dc_t|dc|dnext_c|dprev_c", CARRIED),
        "through time",
        {
            "dhid = np.zeros((N, H))\n": "dhid = np.zeros((N, H))\n    dcell = 0\n",
            "dcell = dhid * O[t] * (1 - tc ** 2)\n": "dcell = dcell + dhid * O[t] * (1 - tc ** 2)\n",
            "da[t].dot(Wh.T)\n": "da[t].dot(Wh.T)\n        dcell = dcell * F[t]\n",
        },
    ),
    Mistake(
        "lstm_dh_not_accumulated",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    grads = []
    dc = np.zeros((N, H))
    for t in reversed(range(T)):
        step = lstm_step_backward(dh[:, t, :], dc, cache[t])
        dc = step[2]
        grads.append(step)
    dx = np.stack([step[0] for step in grads[::-1]], axis=1)
    dh0 = grads[-1][1]
    return dx, dh0, sum(s[3] for s in grads), sum(s[4] for s in grads), sum(s[5] for s in grads)
""",
        either("dh_t|dh|dnext_h", "dprev_h|time|accumulated|carried|next step|step after|later steps|later"),
        "through time",
        {
            "    dc = np.zeros((N, H))\n": "    dc, back = np.zeros((N, H)), 0\n",
            "step_backward(dh[:, t, :], dc,": "step_backward(dh[:, t, :] + back, dc,",
            "dc = step[2]": "back, dc = step[1:3]",
        },
    ),
    Mistake(
        "lstm_weights_overwritten",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0]["x"].shape[1]
    dx = np.zeros((N, T, D))
    dWx, dWh, db = np.zeros((D, 4 * H)), np.zeros((H, 4 * H)), np.zeros(4 * H)
    dh_t, dc_t = np.zeros((N, H)), np.zeros((N, H))
    for t in range(T)[::-1]:
        dx[:, t], dh_t, dc_t, dWx, dWh, db = lstm_step_backward(dh[:, t] + dh_t, dc_t, cache[t])
    return dx, dh_t, dWx, dWh, db
""",
        either("dWx|dWh|db|weights", ACCUMULATED),
        "overwritten",
        {
            "dc_t, dWx, dWh, db = lstm_step_backward(": "dc_t, *step = lstm_step_backward(",
            "dh_t, dc_t, cache[t])\n": "dh_t, dc_t, cache[t])\n"
            "        dWx += step[0]\n        dWh += step[1]\n        db += step[2]\n",
        },
    ),
    Mistake(
        "lstm_db_overwritten",
        "lstm",
        ARRAYS
        + """
def lstm_backward(dh, cache):
    x, Wx, Wh, hs, cs, I, F, O, G = cache
    T, N, H = I.shape
    dx, dWx, dWh, db = np.zeros(x.shape), np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(4 * H)
    dhid, dcell = np.zeros((N, H)), np.zeros((N, H))
    for t in reversed(range(T)):
        dhid = dhid + dh[:, t]
        tc = np.tanh(cs[t + 1])
        dcell = dcell + dhid * O[t] * (1 - tc ** 2)
        da = np.hstack([dcell * G[t], dcell * cs[t], dhid * tc, dcell * I[t]])
        da *= np.hstack([I[t] * (1 - I[t]), F[t] * (1 - F[t]), O[t] * (1 - O[t]), 1 - G[t] ** 2])
        dx[:, t] = da @ Wx.T
        dWx += x[:, t].T @ da
        dWh += hs[t].T @ da
        db[:] = da.sum(axis=0)
        dhid, dcell = da @ Wh.T, dcell * F[t]
    return dx, dhid, dWx, dWh, db
""",
        either("db", ACCUMULATED),
        "overwritten",
        {"db[:] = da": "db[:] += da"},
    ),
    Mistake(
        "lstm_backward_runs_forward_in_time",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0]["x"].shape[1]
    dx, dWx, dWh, db = np.zeros((N, T, D)), np.zeros((D, 4 * H)), np.zeros((H, 4 * H)), np.zeros(4 * H)
    dprev_h = dprev_c = np.zeros((N, H))
    for t, step in enumerate(cache):
        out = lstm_step_backward(dh[:, t] + dprev_h, dprev_c, step)
        dx[:, t], dprev_h, dprev_c = out[:3]
        dWx += out[3]
        dWh += out[4]
        db += out[5]
    return dx, dprev_h, dWx, dWh, db
""",
        either("time|steps|loop|order|backward|reversed", "forward|reversed|first|last|order"),
        "through time",
        {"in enumerate(cache):": "in reversed(list(enumerate(cache))):"},
    ),
    Mistake(
        "lstm_dh_written_into",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0]["x"].shape[1]
    dx, dWx, dWh, db = np.zeros((N, T, D)), np.zeros((D, 4*H)), np.zeros((H, 4*H)), np.zeros((4*H,))
    dprev_h, dprev_c = np.zeros((N, H)), np.zeros((N, H))
    for t in reversed(range(T)):
        dcurr = dh[:, t]
        dcurr += dprev_h
        dx[:, t], dprev_h, dprev_c, dWx_t, dWh_t, db_t = lstm_step_backward(dcurr, dprev_c, cache[t])
        dWx += dWx_t
        dWh += dWh_t
        db += db_t
    return dx, dprev_h, dWx, dWh, db
""",
        either("dh", WRITTEN),
        "writes into an input",
        {"dcurr = dh[:, t]\n": "dcurr = dh[:, t].copy()\n"},
    ),
    Mistake(
        "lstm_dc_added_twice",
        "lstm",
        ARRAYS
        + """
def lstm_backward(dh, cache):
    x, Wx, Wh, hs, cs, I, F, O, G = cache
    T, N, H = I.shape
    dx, dWx, dWh, db = np.zeros(x.shape), np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(4 * H)
    dh_acc, dc_acc = np.zeros((N, H)), np.zeros((N, H))
    for t in reversed(range(T)):
        tanhc = np.tanh(cs[t + 1])
        dh_acc = dh_acc + dh[:, t]
        dc = dc_acc + dh_acc * O[t] * (1 - tanhc ** 2)
        dc += dc_acc
        di, df, do, dg = dc * G[t], dc * cs[t], dh_acc * tanhc, dc * I[t]
        da = np.hstack((di * I[t] * (1 - I[t]), df * F[t] * (1 - F[t]),
                        do * O[t] * (1 - O[t]), dg * (1 - G[t] ** 2)))
        dx[:, t] = da.dot(Wx.T)
        dWx += x[:, t].T.dot(da)
        dWh += hs[t].T.dot(da)
        db += da.sum(axis=0)
        dh_acc = da.dot(Wh.T)
        dc_acc = dc * F[t]
    return dx, dh_acc, dWx, dWh, db
""",
        either("dc|dc_t|dnext_c|dprev_c", TWICE),
        "doubled",
        {"        dc += dc_acc\n": ""},
    ),
    Mistake(
        "lstm_dh_of_last_step_added_twice",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    dx = np.zeros((N, T, cache[0]["x"].shape[1]))
    dh_t, dc_t = dh[:, -1], np.zeros((N, H))
    dWx, dWh, db = 0, 0, 0
    for t in reversed(range(T)):
        dx[:, t], dh_t, dc_t, p, q, r = lstm_step_backward(dh_t + dh[:, t], dc_t, cache[t])
        dWx, dWh, db = dWx + p, dWh + q, db + r
    return dx, dh_t, dWx, dWh, db
""",
        either("dh|dh_t", TWICE + "|last"),
        "doubled",
        {"dh_t, dc_t = dh[:, -1], np": "dh_t, dc_t = np.zeros((N, H)), np"},
    ),
    Mistake(
        "lstm_gradients_averaged_over_steps",
        "lstm",
        STEPS
        + """
def lstm_backward(dh, cache):
    N, T, H = dh.shape
    dhid, dcell, steps = np.zeros((N, H)), np.zeros((N, H)), []
    for t in reversed(range(T)):
        step = lstm_step_backward(dh[:, t] + dhid, dcell, cache[t])
        dhid, dcell = step[1], step[2]
        steps.insert(0, step)
    dx = np.stack([s[0] for s in steps], axis=1)
    dWx, dWh, db = (np.mean([s[k] for s in steps], axis=0) for k in (3, 4, 5))
    return dx, dhid, dWx, dWh, db
""",
        either("dWx|dWh|db", OVER_STEPS),
        "wrong scale",
        {"np.mean(": "np.sum("},
    ),
]
