"""Mistakes in the GRU: one step, and a sequence."""

from __future__ import annotations

from .mistake import ACCUMULATED, BATCH, ORDER, SIGN, TRANSPOSED, Mistake, either, planter

SIGMOID = """
import numpy as np

def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))
"""

DICT = (
    SIGMOID
    + """
def gru_step_forward(x, prev_h, Wx, Wh, b):
    H = prev_h.shape[1]
    xw = x.dot(Wx) + b
    zr = sigmoid(xw[:, :2*H] + prev_h.dot(Wh[:, :2*H]))
    z, r = zr[:, :H], zr[:, H:]
    rh = r * prev_h
    cand = np.tanh(xw[:, 2*H:] + rh.dot(Wh[:, 2*H:]))
    next_h = cand + z * (prev_h - cand)
    return next_h, {"x": x, "h": prev_h, "Wx": Wx, "Wh": Wh, "z": z, "r": r, "cand": cand, "rh": rh}
"""
)

DICT_BACKWARD = """
def gru_step_backward(dnext_h, cache):
    x, h, Wx, Wh, z, r, cand, rh = cache.values()
    H = h.shape[1]
    dz = dnext_h * (h - cand)
    dcand = dnext_h * (1 - z)
    dh = dnext_h * z
    dpre_g = dcand * (1 - cand ** 2)
    drh = dpre_g.dot(Wh[:, 2*H:].T)
    dr = drh * h
    dh = dh + drh * r
    dpre_zr = np.hstack([dz * z * (1 - z), dr * r * (1 - r)])
    dh = dh + dpre_zr.dot(Wh[:, :2*H].T)
    dpre = np.hstack([dpre_zr, dpre_g])
    dWh = np.hstack([h.T.dot(dpre_zr), rh.T.dot(dpre_g)])
    return dpre.dot(Wx.T), dh, x.T.dot(dpre), dWh, dpre.sum(axis=0)
"""

SEQUENCE = """
def gru_forward(x, h0, Wx, Wh, b):
    h, cache, out = h0, [], []
    for t in range(x.shape[1]):
        h, step = gru_step_forward(x[:, t], h, Wx, Wh, b)
        cache.append(step)
        out.append(h)
    return np.stack(out, axis=1), cache
"""


step = planter("gru_step", DICT + DICT_BACKWARD)

MISTAKES = [
    step(
        "da_z_has_wrong_sign",
        "dz = dnext_h * (cand - h)",
        "dz = dnext_h * (h - cand)",
        either("da_z", SIGN + "|prev_h|g"),
        "wrong sign",
    ),
    step(
        "dprev_h_lacks_share_of_z",
        "dh = 0\n",
        "dh = dnext_h * z\n",
        either("dprev_h", "z|dnext_h"),
        "missing term",
    ),
    step(
        "dprev_h_lacks_r",
        "dh = dh + drh\n",
        "dh = dh + drh * r\n",
        either("dprev_h", "r"),
        "missing factor",
    ),
    step(
        "dprev_h_lacks_dq",
        "    dpre_zr = np",
        "    dh = dh + drh * r\n    dpre_zr = np",
        either("dprev_h", "dq|r|candidate|g|da_g"),
        "missing term",
    ),
    step(
        "dprev_h_lacks_gates",
        "    dpre = np.hstack([dpre_zr, dpre_g])\n",
        "    dh = dh + dpre_zr.dot(Wh[:, :2*H].T)\n    dpre = np.hstack([dpre_zr, dpre_g])\n",
        either("dprev_h", "da_z|da_r|z|r|Wh|Wh_z|Wh_r"),
        "missing term",
    ),
    step("da_r_lacks_prev_h", "dr = drh\n", "dr = drh * h\n", either("da_r", "prev_h"), "missing factor"),
    step(
        "da_r_lacks_1_minus_r",
        "dr * r])",
        "dr * r * (1 - r)])",
        either("da_r", "1 - r|1-r|sigmoid|r * (1 - r)"),
        "missing factor",
    ),
    Mistake(
        "gru_step_da_g_reads_z_for_1_minus_z",
        "gru_step",
        """
import numpy as np

def gru_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, z, r, g = cache
    Wz, Wr, Wg = np.hsplit(Wh, 3)
    dg = dnext_h * z * (1 - g ** 2)
    dz = (dnext_h * prev_h - dnext_h * g) * (z - z ** 2)
    drh = dg @ Wg.T
    dr = drh * prev_h * (r - r ** 2)
    dprev_h = dnext_h * z + dz @ Wz.T + dr @ Wr.T + drh * r
    da = np.concatenate((dz, dr, dg), axis=1)
    dWh = np.concatenate((prev_h.T @ dz, prev_h.T @ dr, (prev_h * r).T @ dg), axis=1)
    return da @ Wx.T, dprev_h, x.T @ da, dWh, np.sum(da, axis=0)
""",
        either("da_g", "1 - z|1-z|z"),
        "wrong variable",
        {"dg = dnext_h * z *": "dg = dnext_h * (1 - z) *"},
    ),
    step(
        "dWh_of_candidate_reads_prev_h",
        "h.T.dot(dpre_g)])",
        "rh.T.dot(dpre_g)])",
        either("dWh|dWh_g", "r"),
        "missing factor",
    ),
    step(
        "dq_lacks_transpose",
        "drh = dpre_g.dot(Wh[:, 2*H:])",
        "drh = dpre_g.dot(Wh[:, 2*H:].T)",
        either("dq", TRANSPOSED + "|Wh_g.T|Wh.T"),
        "transposed",
    ),
    step(
        "da_g_has_sigmoid_derivative",
        "dcand * cand * (1 - cand)",
        "dcand * (1 - cand ** 2)",
        either("da_g", "tanh|sigmoid|1 - g**2|g"),
        "wrong derivative",
    ),
    step(
        "db_not_summed_over_batch",
        "dWh, dpre\n",
        "dWh, dpre.sum(axis=0)\n",
        either("db", BATCH + "|shape"),
        "wrong sum",
    ),
    Mistake(
        "gru_step_forward_z_and_1_minus_z_exchanged",
        "gru_step",
        SIGMOID
        + """
def gru_step_forward(x, prev_h, Wx, Wh, b):
    xz, xr, xg = np.hsplit(x.dot(Wx) + b, 3)
    Uz, Ur, Ug = np.hsplit(Wh, 3)
    z = sigmoid(xz + prev_h.dot(Uz))
    r = sigmoid(xr + prev_h.dot(Ur))
    g = np.tanh(xg + (prev_h * r).dot(Ug))
    next_h = z * g + (1 - z) * prev_h
    return next_h, (x, prev_h, Wx, Wh, z, r, g)
""",
        either("next_h", "z|1 - z"),
        "wrong forward",
        {"z * g + (1 - z) * prev_h": "(1 - z) * g + z * prev_h"},
    ),
    Mistake(
        "gru_step_forward_r_after_product",
        "gru_step",
        SIGMOID
        + """
def gru_step_forward(x, prev_h, Wx, Wh, b):
    H = len(Wh)
    hw = prev_h @ Wh
    xw = x @ Wx + b
    z = sigmoid(hw[:, :H] + xw[:, :H])
    r = sigmoid(hw[:, H:2*H] + xw[:, H:2*H])
    g = np.tanh(xw[:, 2*H:] + r * hw[:, 2*H:])
    return (1 - z) * g + z * prev_h, (x, prev_h, Wx, Wh, z, r, g)
""",
        either("g|a_g", "r"),
        "wrong forward",
        {"r * hw[:, 2*H:]": "(r * prev_h) @ Wh[:, 2*H:]"},
    ),
    Mistake(
        "gru_step_forward_gates_in_order_rzg",
        "gru_step",
        SIGMOID
        + """
def gru_step_forward(x, prev_h, Wx, Wh, b):
    (xr, xz, xg), (Wr, Wz, Wg) = np.split(x @ Wx + b, 3, axis=1), np.split(Wh, 3, axis=1)
    r, z = sigmoid(xr + prev_h @ Wr), sigmoid(xz + prev_h @ Wz)
    g = np.tanh(xg + (r * prev_h) @ Wg)
    return g - z * g + z * prev_h, (x, prev_h, Wx, Wh, z, r, g)
""",
        either("gates|z|r", ORDER) + either("z", "r"),
        "gate order",
        {"(xr, xz, xg), (Wr, Wz, Wg)": "(xz, xr, xg), (Wz, Wr, Wg)"},
    ),
    Mistake(
        "gru_dh_not_accumulated",
        "gru",
        DICT
        + DICT_BACKWARD
        + SEQUENCE
        + """
def gru_backward(dh, cache):
    results = [gru_step_backward(dh[:, t], cache[t]) for t in range(dh.shape[1])]
    dx = np.stack([one[0] for one in results], axis=1)
    dh0 = results[0][1]
    dWx, dWh, db = (sum(one[k] for one in results) for k in (2, 3, 4))
    return dx, dh0, dWx, dWh, db
""",
        either("dh_t|dh|dnext_h", "dprev_h|time|accumulated|carried|next step|step after|later steps|later"),
        "through time",
        {
            "    results = [gru_step_backward(dh[:, t], cache[t]) for t in range(dh.shape[1])]\n": ""
            "    results, d = [], 0\n"
            "    for t in reversed(range(dh.shape[1])):\n"
            "        results.insert(0, gru_step_backward(dh[:, t] + d, cache[t]))\n"
            "        d = results[0][1]\n"
        },
    ),
    Mistake(
        "gru_dWh_overwritten",
        "gru",
        DICT
        + DICT_BACKWARD
        + SEQUENCE
        + """
def gru_backward(dh, cache):
    N, T, H = dh.shape
    Wx, Wh = cache[0]["Wx"], cache[0]["Wh"]
    dx, dWx, dWh, db = np.zeros((N, T, len(Wx))), np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(3 * H)
    carry = np.zeros((N, H))
    for t in reversed(range(T)):
        dx[:, t], carry, gx, gh, gb = gru_step_backward(dh[:, t] + carry, cache[t])
        dWx += gx
        dWh = gh
        db += gb
    return dx, carry, dWx, dWh, db
""",
        either("dWh", ACCUMULATED),
        "overwritten",
        {"dWh = gh": "dWh += gh"},
    ),
    Mistake(
        "gru_forward_reads_h0_at_each_step",
        "gru",
        DICT
        + DICT_BACKWARD
        + """
def gru_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    h, caches = np.zeros((N, T, h0.shape[1])), [None] * T
    for t in range(T):
        prev = h0
        h[:, t], caches[t] = gru_step_forward(x[:, t], prev, Wx, Wh, b)
    return h, caches

def gru_backward(dh, cache):
    dx, d, dWx, dWh, db = [], 0, 0, 0, 0
    for t in range(dh.shape[1] - 1, -1, -1):
        dx_t, d, a, b, c = gru_step_backward(dh[:, t] + d, cache[t])
        dx.insert(0, dx_t)
        dWx, dWh, db = dWx + a, dWh + b, db + c
    return np.stack(dx, 1), d, dWx, dWh, db
""",
        either("h0", "h|prev_h|next_h|each step|every step|all steps")
        + either("prev_h", "h|next_h|step|time"),
        "wrong step",
        {"prev = h0\n": "prev = h[:, t - 1] if t else h0\n"},
    ),
]
