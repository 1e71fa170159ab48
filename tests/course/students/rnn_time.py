"""Mistakes in the vanilla RNN over a sequence: how gradients pass from step to step and are summed."""

from __future__ import annotations

from .mistake import ACCUMULATED, OVER_STEPS, TRANSPOSED, WRITTEN, Mistake, either
from .rnn_styles import ARRAY, LIST

MISTAKES = [
    Mistake(
        "rnn_dh_not_accumulated",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0][0].shape[1]
    dx = np.zeros((N, T, D))
    dWx, dWh, db = np.zeros((D, H)), np.zeros((H, H)), np.zeros(H)
    for t in reversed(range(T)):
        dx[:, t], dprev, dwx, dwh, dbias = rnn_step_backward(dh[:, t], cache[t])
        dWx += dwx
        dWh += dwh
        db += dbias
    return dx, dprev, dWx, dWh, db
""",
        either("dh_t|dh|dnext_h", "dprev_h|time|accumulated|next step|step after|later steps|later"),
        "through time",
        {
            "    for t in reversed(range(T)):\n": "    dprev = 0\n    for t in reversed(range(T)):\n",
            "rnn_step_backward(dh[:, t], cache[t])": "rnn_step_backward(dh[:, t] + dprev, cache[t])",
        },
    ),
    Mistake(
        "rnn_backward_runs_forward_in_time",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    N, T, H = dh.shape
    x0, _, Wx, Wh, _ = cache[0]
    dx = np.zeros((N, T, x0.shape[1]))
    dWx = np.zeros_like(Wx)
    dWh = np.zeros_like(Wh)
    db = np.zeros(H)
    dcarry = np.zeros((N, H))
    for t in range(T):
        dx_t, dcarry, dWx_t, dWh_t, db_t = rnn_step_backward(dh[:, t, :] + dcarry, cache[t])
        dx[:, t, :] = dx_t
        dWx, dWh, db = dWx + dWx_t, dWh + dWh_t, db + db_t
    return dx, dcarry, dWx, dWh, db
""",
        either("time|steps|loop|order|backward|reversed", "forward|reversed|first|last|order"),
        "through time",
        {"for t in range(T):": "for t in range(T - 1, -1, -1):"},
    ),
    Mistake(
        "rnn_weights_overwritten",
        "rnn",
        ARRAY
        + """
def rnn_backward(dh, cache):
    x, hs, Wx, Wh = cache["x"], cache["hs"], cache["Wx"], cache["Wh"]
    dx = np.empty(x.shape)
    dWx, dWh, db = 0, 0, 0
    dnext = np.zeros(hs[:, 0].shape)
    for t in range(x.shape[1])[::-1]:
        da = (1 - hs[:, t + 1] ** 2) * (dh[:, t] + dnext)
        dx[:, t] = da @ Wx.T
        dnext = da @ Wh.T
        dWx = x[:, t].T @ da
        dWh = hs[:, t].T @ da
        db = da.sum(axis=0)
    return dx, dnext, dWx, dWh, db
""",
        either("dWx|dWh|db|weights", ACCUMULATED),
        "overwritten",
        {"dWx = x[:, t]": "dWx += x[:, t]", "dWh = hs": "dWh += hs", "db = da": "db += da"},
    ),
    Mistake(
        "rnn_dWh_overwritten",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    T = len(cache)
    dxs, dh0, dWx, db = [], 0.0, 0.0, 0.0
    for t in range(T):
        s = T - 1 - t
        dxt, dh0, a, dWh, c = rnn_step_backward(dh[:, s] + dh0, cache[s])
        dxs.insert(0, dxt)
        dWx = dWx + a
        db = db + c
    return np.stack(dxs, 1), dh0, dWx, dWh, db
""",
        either("dWh", ACCUMULATED),
        "overwritten",
        {
            "dxs, dh0, dWx, db = [], 0.0, 0.0, 0.0": "dxs, dh0, dWx, dWh, db = [], 0.0, 0.0, 0.0, 0.0",
            "a, dWh, c = ": "a, e, c = ",
            "dWx = dWx + a\n": "dWx = dWx + a\n        dWh = dWh + e\n",
        },
    ),
    Mistake(
        "rnn_db_of_first_step_only",
        "rnn",
        ARRAY
        + """
def rnn_backward(dh, cache):
    x, hs = cache["x"], cache["hs"]
    N, T, D = x.shape
    dA = np.zeros(dh.shape)
    dnext = 0
    for t in reversed(range(T)):
        dA[:, t] = (dh[:, t] + dnext) * (1 - hs[:, t + 1] ** 2)
        dnext = dA[:, t].dot(cache["Wh"].T)
    dx = dA.dot(cache["Wx"].T)
    dWx = np.tensordot(x, dA, axes=((0, 1), (0, 1)))
    dWh = np.tensordot(hs[:, :-1], dA, axes=((0, 1), (0, 1)))
    db = dA[:, 0].sum(axis=0)
    return dx, dnext, dWx, dWh, db
""",
        either("db", ACCUMULATED),
        "overwritten",
        {"dA[:, 0].sum(axis=0)": "dA.sum(axis=(0, 1))"},
    ),
    Mistake(
        "rnn_dh_written_into",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    x, prev_h, Wx, Wh, next_h = cache[-1]
    N, T, H = dh.shape
    dx = np.zeros((N, T, x.shape[1]))
    dWx, dWh, db = np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(H)
    for t in reversed(range(T)):
        dx[:, t], dprev_h, dWx_t, dWh_t, db_t = rnn_step_backward(dh[:, t], cache[t])
        if t > 0:
            dh[:, t - 1] += dprev_h
        dWx += dWx_t
        dWh += dWh_t
        db += db_t
    return dx, dprev_h, dWx, dWh, db
""",
        either("dh", WRITTEN),
        "writes into an input",
        {"    x, prev_h, Wx, Wh, next_h = cache[-1]\n": "    dh = dh + 0\n    x, _, Wx, Wh, _ = cache[-1]\n"},
    ),
    Mistake(
        "rnn_dh_of_later_steps_kept",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    N, T, H = dh.shape
    dx, dprev_h = [None] * T, np.zeros((N, H))
    dWx, dWh, db = 0, 0, 0
    for t in reversed(range(T)):
        dx[t], dh_t, dWx_t, dWh_t, db_t = rnn_step_backward(dh[:, t] + dprev_h, cache[t])
        dprev_h += dh_t
        dWx, dWh, db = dWx + dWx_t, dWh + dWh_t, db + db_t
    return np.transpose(dx, (1, 0, 2)), dprev_h, dWx, dWh, db
""",
        either("dh_t", "dprev_h|twice|later|again|kept|added|accumulated|past|extra")
        + either("dprev_h", "twice|later|again|kept|added|accumulated|extra|dh_t"),
        "extra term",
        {"dprev_h += dh_t": "dprev_h = dh_t"},
    ),
    Mistake(
        "rnn_weights_averaged_over_steps",
        "rnn",
        ARRAY
        + """
def rnn_backward(dh, cache):
    x, hs, Wx, Wh = cache["x"], cache["hs"], cache["Wx"], cache["Wh"]
    N, T, D = x.shape
    dx, dWx, dWh, db = np.zeros((N, T, D)), np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(Wh.shape[0])
    upstream = np.zeros_like(hs[:, 0])
    for t in range(T - 1, -1, -1):
        local = (upstream + dh[:, t]) * (1.0 - hs[:, t + 1] ** 2)
        dx[:, t] = np.dot(local, Wx.T)
        upstream = np.dot(local, Wh.T)
        dWx += np.dot(x[:, t].T, local)
        dWh += np.dot(hs[:, t].T, local)
        db += local.sum(axis=0)
    dWx /= T
    dWh /= T
    db /= T
    return dx, upstream, dWx, dWh, db
""",
        either("dWx|dWh|db", OVER_STEPS),
        "wrong scale",
        {"    dWx /= T\n    dWh /= T\n    db /= T\n": ""},
    ),
    Mistake(
        "rnn_backward_skips_first_step",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0][0].shape[-1]
    dx, dh_next = np.zeros((N, T, D)), np.zeros((N, H))
    dWx, dWh, db = np.zeros((D, H)), np.zeros((H, H)), np.zeros((H,))
    for t in range(T - 1, 0, -1):
        dx_t, dh_next, dWx_t, dWh_t, db_t = rnn_step_backward(dh[:, t] + dh_next, cache[t])
        dx[:, t] = dx_t
        dWx += dWx_t
        dWh += dWh_t
        db += db_t
    return dx, dh_next, dWx, dWh, db
""",
        either("step|steps|loop|dx|dh0|t", "0|first|left out|skipped|skips|leaves out|omits|t = 0"),
        "wrong step",
        {"range(T - 1, 0, -1)": "range(T - 1, -1, -1)"},
    ),
    Mistake(
        "rnn_dh_of_last_step_only",
        "rnn",
        ARRAY
        + """
def rnn_backward(dh, cache):
    x, hs, Wx, Wh = cache["x"], cache["hs"], cache["Wx"], cache["Wh"]
    T = x.shape[1]
    dx, dWx, dWh, db = np.zeros(x.shape), 0, 0, 0
    g = dh[:, T - 1]
    for t in reversed(range(T)):
        g = g * (1 - hs[:, t + 1] ** 2)
        dx[:, t] = g @ Wx.T
        dWx += x[:, t].T @ g
        dWh += hs[:, t].T @ g
        db += g.sum(axis=0)
        g = g @ Wh.T
    return dx, g, dWx, dWh, db
""",
        either("dh_t|dnext_h|dh", "dh|last|steps|time|every step|each step"),
        "through time",
        {"g = g @ Wh.T\n": "g = g @ Wh.T + (dh[:, t - 1] if t else 0)\n"},
    ),
    Mistake(
        "rnn_dprev_h_lacks_transpose",
        "rnn",
        ARRAY
        + """
def rnn_backward(dh, cache):
    x, hs, W, U = cache["x"], cache["hs"], cache["Wx"], cache["Wh"]
    N, T, D = x.shape
    dz = np.zeros_like(dh)
    back = np.zeros((N, dh.shape[2]))
    for t in reversed(range(T)):
        dz[:, t] = (dh[:, t] + back) * (1 - hs[:, t + 1] ** 2)
        back = dz[:, t] @ U
    flat = dz.reshape(N * T, -1)
    dW = x.reshape(N * T, D).T @ flat
    dU = hs[:, :T].reshape(N * T, -1).T @ flat
    return (flat @ W.T).reshape(N, T, D), back, dW, dU, flat.sum(axis=0)
""",
        either("dprev_h|dh_t|dh0", TRANSPOSED + "|Wh.T"),
        "transposed",
        {"dz[:, t] @ U\n": "dz[:, t] @ U.T\n"},
    ),
    Mistake(
        "rnn_dh_halved_at_each_step",
        "rnn",
        LIST
        + """
def rnn_backward(dh, cache):
    N, T, H = dh.shape
    x, h0, Wx, Wh, _ = cache[0]
    grads = [np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(H)]
    dx, dprev = np.zeros((N, T, x.shape[1])), np.zeros_like(h0)
    for t in range(T - 1, -1, -1):
        # the gradient of h comes from two places: take their mean
        dx[:, t], dprev, *step = rnn_step_backward((dh[:, t] + dprev) / 2, cache[t])
        for total, g in zip(grads, step):
            total += g
    return dx, dprev, *grads
""",
        either("dh_t|dnext_h|dh", "half|0.5|factor|mean|average|averaged|2|divided"),
        "wrong scale",
        {"(dh[:, t] + dprev) / 2": "(dh[:, t] + dprev)"},
    ),
]
