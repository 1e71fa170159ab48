"""Mistakes in the forward of one LSTM step."""

from __future__ import annotations

from .lstm_styles import SIGMOID
from .mistake import ORDER, TRANSPOSED, WRITTEN, Mistake, either

# A right backward for forwards that keep the cache (x, prev_h, prev_c, Wx, Wh, gates), next_c is made again.
BACKWARD = """
def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, (i, f, o, g) = cache
    tc = np.tanh(f * prev_c + i * g)
    dc = dnext_c + dnext_h * o * (1 - tc ** 2)
    da = [dc * g * i * (1 - i), dc * prev_c * f * (1 - f), dnext_h * tc * o * (1 - o), dc * i * (1 - g ** 2)]
    da = np.concatenate(da, axis=1)
    return da.dot(Wx.T), da.dot(Wh.T), dc * f, x.T.dot(da), prev_h.T.dot(da), da.sum(axis=0)
"""

MISTAKES = [
    Mistake(
        "lstm_step_forward_lacks_b",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_c.shape[1]
    a = np.matmul(x, Wx) + np.matmul(prev_h, Wh)
    gates = sigmoid(a[:, :H]), sigmoid(a[:, H:2*H]), sigmoid(a[:, 2*H:3*H]), np.tanh(a[:, 3*H:])
    next_c = gates[1] * prev_c + gates[0] * gates[3]
    return gates[2] * np.tanh(next_c), next_c, (x, prev_h, prev_c, Wx, Wh, gates)
"""
        + BACKWARD,
        either("b|bias", "next_h|next_c|forward|added|missing|lacks|lack|left out|without"),
        "wrong forward",
        {"np.matmul(prev_h, Wh)": "np.matmul(prev_h, Wh) + b"},
    ),
    Mistake(
        "lstm_step_forward_lacks_b_of_forget_gate",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    (Wxi, Wxf, Wxo, Wxg), (Whi, Whf, Who, Whg) = np.hsplit(Wx, 4), np.hsplit(Wh, 4)
    bi, bf, bo, bg = np.split(b, 4)
    i = sigmoid(x @ Wxi + prev_h @ Whi + bi)
    f = sigmoid(x @ Wxf + prev_h @ Whf)
    o = sigmoid(x @ Wxo + prev_h @ Who + bo)
    g = np.tanh(x @ Wxg + prev_h @ Whg + bg)
    next_c = f * prev_c + i * g
    next_h = o * np.tanh(next_c)
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)
""",
        either("b|b_f|bias", "f|a_f|forget") + either("f|a_f|forget", "b|b_f|bias"),
        "wrong forward",
        {"prev_h @ Whf)": "prev_h @ Whf + bf)"},
    ),
    Mistake(
        "lstm_step_forward_g_is_sigmoid",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    a = x @ Wx + prev_h @ Wh + b
    gates = np.hsplit(sigmoid(a), 4)
    i, f, o, g = gates
    next_c = f * prev_c + i * g
    next_h = o * np.tanh(next_c)
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, gates)
"""
        + BACKWARD,
        either("g|a_g|candidate", "tanh|sigmoid"),
        "wrong forward",
        {"np.hsplit(sigmoid(a), 4)": "[*np.hsplit(sigmoid(a), 4)[:3], np.tanh(a[:, -len(Wh):])]"},
    ),
    Mistake(
        "lstm_step_forward_o_is_tanh",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = Wh.shape[0]
    act = x.dot(Wx) + prev_h.dot(Wh) + b
    i, f = sigmoid(act[:, :H]), sigmoid(act[:, H:2*H])
    o, g = np.tanh(act[:, 2*H:3*H]), np.tanh(act[:, 3*H:])
    next_c = np.multiply(f, prev_c) + np.multiply(i, g)
    next_h = np.multiply(o, np.tanh(next_c))
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)
""",
        either("o|a_o|output", "tanh|sigmoid"),
        "wrong forward",
        {"o, g = np.tanh(act[:, 2*H:3*H])": "o, g = sigmoid(act[:, 2*H:3*H])"},
    ),
    Mistake(
        "lstm_step_forward_next_c_lacks_prev_c",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    ai, af, ao, ag = np.hsplit(x.dot(Wx) + prev_h.dot(Wh) + b, 4)
    gates = (sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag))
    next_c = gates[0] * gates[3]
    next_h = np.tanh(next_c) * gates[2]
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, gates)
"""
        + BACKWARD,
        either("next_c", "prev_c|f"),
        "missing term",
        {"gates[0] * gates[3]\n": "gates[0] * gates[3] + gates[1] * prev_c\n"},
    ),
    Mistake(
        "lstm_step_forward_next_c_lacks_f",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    z = x @ Wx
    z += prev_h @ Wh
    z += b
    i, f, o, g = np.split(z, 4, axis=1)
    i, f, o, g = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(g)
    next_c = prev_c + i * g
    next_h = o * np.tanh(next_c)
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)
""",
        either("next_c", "f|forget"),
        "missing factor",
        {"next_c = prev_c + i * g": "next_c = prev_c * f + i * g"},
    ),
    Mistake(
        "lstm_step_forward_gates_in_order_ifgo",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x.dot(Wx) + prev_h.dot(Wh) + b
    i = sigmoid(a[:, :H])
    f = sigmoid(a[:, H:2*H])
    g = np.tanh(a[:, 2*H:3*H])
    o = sigmoid(a[:, 3*H:])
    c = f * prev_c + i * g
    cache = {"x": x, "h": prev_h, "c": prev_c, "Wx": Wx, "Wh": Wh, "gates": (i, f, g, o), "next": c}
    return o * np.tanh(c), c, cache

def lstm_step_backward(dnext_h, dnext_c, cache):
    i, f, g, o = cache["gates"]
    t = np.tanh(cache["next"])
    dc = dnext_c + dnext_h * o * (1 - t ** 2)
    di, df = dc * g * i * (1 - i), dc * cache["c"] * f * (1 - f)
    dg, do = dc * i * (1 - g ** 2), dnext_h * t * o * (1 - o)
    da = np.hstack([di, df, dg, do])
    dWx, dWh = cache["x"].T @ da, cache["h"].T @ da
    return da @ cache["Wx"].T, da @ cache["Wh"].T, dc * f, dWx, dWh, da.sum(axis=0)
""",
        either("gates|o|g", ORDER) + either("o", "g"),
        "gate order",
        {
            "g = np.tanh(a[:, 2*H:3*H])": "g = np.tanh(a[:, 3*H:])",
            "o = sigmoid(a[:, 3*H:])": "o = sigmoid(a[:, 2*H:3*H])",
            "[di, df, dg, do]": "[di, df, do, dg]",
        },
    ),
    Mistake(
        "lstm_step_forward_gates_in_order_fiog",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    f, i, o, g = np.array_split(np.dot(x, Wx) + np.dot(prev_h, Wh) + b[None, :], 4, axis=1)
    f, i, o = (sigmoid(gate) for gate in (f, i, o))
    g = np.tanh(g)
    next_c = i * g + f * prev_c
    next_h = np.tanh(next_c) * o
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)
""",
        either("gates|i|f", ORDER) + either("i", "f"),
        "gate order",
        {"    f, i, o, g = ": "    i, f, o, g = "},
    ),
    Mistake(
        "lstm_step_forward_gates_interleaved",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    N, H = prev_h.shape
    a = (x.dot(Wx) + prev_h.dot(Wh) + b).reshape(N, H, 4)
    i, f, o, g = (a[:, :, k] for k in range(4))
    i, f, o, g = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(g)
    next_c = f * prev_c + i * g
    next_h = o * np.tanh(next_c)
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)
""",
        either("gates|columns", ORDER + "|interleaved|columns|blocks|block|split|layout|reshape|reshaped"),
        "gate order",
        {".reshape(N, H, 4)": ".reshape(N, 4, H)", "(a[:, :, k] for": "(a[:, k, :] for"},
    ),
    Mistake(
        "lstm_step_forward_next_h_lacks_tanh",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x @ Wx + prev_h @ Wh + b
    s = sigmoid(a[:, :3 * H])
    gates = s[:, :H], s[:, H:2*H], s[:, 2*H:], np.tanh(a[:, 3*H:])
    i, f, o, g = gates
    next_c = f * prev_c + i * g
    next_h = o * next_c
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, gates)
"""
        + BACKWARD,
        either("next_h", "tanh|tanh_c|tanh(next_c)|next_c"),
        "wrong forward",
        {"next_h = o * next_c": "next_h = o * np.tanh(next_c)"},
    ),
    Mistake(
        "lstm_step_next_h_lacks_tanh_in_both",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    i, f, o, g = np.hsplit(x @ Wx + prev_h @ Wh + b, 4)
    i, f, o, g = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(g)
    next_c = f * prev_c + i * g
    out = next_c
    slope = np.ones(out.shape)
    return o * out, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, out, slope)

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, out, slope = cache
    dc = dnext_c + dnext_h * o * slope
    da = [dc * g * i * (1 - i), dc * prev_c * f * (1 - f), dnext_h * out * o * (1 - o), dc * i * (1 - g ** 2)]
    da = np.hstack(da)
    return da @ Wx.T, da @ Wh.T, dc * f, x.T @ da, prev_h.T @ da, da.sum(axis=0)
""",
        either("next_h", "tanh|tanh_c|tanh(next_c)|next_c"),
        "wrong forward",
        {"out = next_c\n": "out = np.tanh(next_c)\n", "np.ones(out.shape)": "1 - out ** 2"},
    ),
    Mistake(
        "lstm_step_forward_next_h_from_prev_c",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    a_i, a_f, a_o, a_g = np.split(np.dot(x, Wx) + np.dot(prev_h, Wh) + b, 4, axis=-1)
    i, f, o, g = sigmoid(a_i), sigmoid(a_f), sigmoid(a_o), np.tanh(a_g)
    next_h = o * np.tanh(prev_c)
    next_c = f * prev_c + i * g
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)
""",
        either("next_h", "prev_c|next_c"),
        "wrong variable",
        {"o * np.tanh(prev_c)": "o * np.tanh(f * prev_c + i * g)"},
    ),
    Mistake(
        "lstm_step_forward_tanh_of_o_times_c",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    gates = np.vsplit((x.dot(Wx) + prev_h.dot(Wh) + b).T, 4)
    gates = [sigmoid(gates[0].T), sigmoid(gates[1].T), sigmoid(gates[2].T), np.tanh(gates[3].T)]
    i, f, o, g = gates
    next_c = f * prev_c + i * g
    next_h = np.tanh(o * next_c)
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, gates)
"""
        + BACKWARD,
        either("next_h", "tanh|o|tanh_c"),
        "wrong forward",
        {"np.tanh(o * next_c)": "o * np.tanh(next_c)"},
    ),
    Mistake(
        "lstm_step_forward_next_h_and_next_c_swapped",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x.dot(Wx) + prev_h.dot(Wh) + b
    gates = [sigmoid(a[:, k*H:(k+1)*H]) for k in range(3)] + [np.tanh(a[:, 3*H:])]
    c = gates[1] * prev_c + gates[0] * gates[3]
    h = gates[2] * np.tanh(c)
    return c, h, (x, prev_h, prev_c, Wx, Wh, gates)
"""
        + BACKWARD,
        either("next_h", "next_c|" + ORDER),
        "order of results",
        {"return c, h,": "return h, c,"},
    ),
    Mistake(
        "lstm_step_forward_prev_c_written_into",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    i, f, o, g = np.hsplit(x.dot(Wx) + prev_h.dot(Wh) + b, 4)
    i, f, o, g = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(g)
    old_c = prev_c.copy()
    next_c = prev_c
    next_c *= f
    next_c += i * g
    return o * np.tanh(next_c), next_c, (x, prev_h, old_c, Wx, Wh, i, f, o, g, next_c)
""",
        either("prev_c", WRITTEN),
        "writes into an input",
        {"next_c = prev_c\n": "next_c = prev_c.copy()\n"},
    ),
    Mistake(
        "lstm_step_forward_Wh_of_gates_transposed",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    pre = []
    for wx, wh, bias in zip(np.hsplit(Wx, 4), np.hsplit(Wh, 4), np.split(b, 4)):
        pre.append(x @ wx + prev_h @ wh.T + bias)
    gates = (sigmoid(pre[0]), sigmoid(pre[1]), sigmoid(pre[2]), np.tanh(pre[3]))
    i, f, o, g = gates
    next_c = f * prev_c + i * g
    return o * np.tanh(next_c), next_c, (x, prev_h, prev_c, Wx, Wh, gates)
"""
        + BACKWARD,
        either("Wh", TRANSPOSED),
        "transposed",
        {"prev_h @ wh.T": "prev_h @ wh"},
    ),
    Mistake(
        "lstm_step_forward_forgets_with_1_minus_i",
        "lstm_step",
        SIGMOID
        + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    i, f, o, g = np.hsplit(x @ Wx + prev_h @ Wh + b, 4)
    i, f, o, g = 1 / (1 + np.exp(-i)), 1 / (1 + np.exp(-f)), 1 / (1 + np.exp(-o)), np.tanh(g)
    next_c = (1 - i) * prev_c + i * g
    return o * np.tanh(next_c), next_c, (x, prev_h, prev_c, Wx, Wh, (i, f, o, g))
"""
        + BACKWARD,
        either("next_c", "f|forget|i|1 - i"),
        "wrong forward",
        {"(1 - i) * prev_c": "f * prev_c"},
    ),
]
