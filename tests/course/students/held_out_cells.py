"""Held-out mistakes in the recurrent cells, written without knowledge of the edits that a diagnosis tries."""

from __future__ import annotations

from .mistake import ACCUMULATED, AVERAGED, BATCH, ORDER, SIGN, TRANSPOSED, WRITTEN, either, planted

_SIGMOID = """
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))

"""

_RNN_STEP = """
import numpy as np


def rnn_step_forward(x, prev_h, Wx, Wh, b):
    next_h = np.tanh(np.dot(x, Wx) + np.dot(prev_h, Wh) + b)
    cache = (x, prev_h, Wx, Wh, next_h)
    return next_h, cache


def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    dtanh = dnext_h * (1 - next_h ** 2)
    dx = np.dot(dtanh, Wx.T)
    dprev_h = np.dot(dtanh, Wh.T)
    dWx = np.dot(x.T, dtanh)
    dWh = np.dot(prev_h.T, dtanh)
    db = np.sum(dtanh, axis=0)
    return dx, dprev_h, dWx, dWh, db
"""

_RNN = (
    _RNN_STEP
    + """

def rnn_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = h0.shape[1]
    h = np.zeros((N, T, H))
    cache = []
    prev_h = h0
    for t in range(T):
        prev_h, step_cache = rnn_step_forward(x[:, t, :], prev_h, Wx, Wh, b)
        h[:, t, :] = prev_h
        cache.append(step_cache)
    return h, cache


def rnn_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0][0].shape[1]
    dx = np.zeros((N, T, D))
    dWx, dWh, db = np.zeros((D, H)), np.zeros((H, H)), np.zeros(H)
    dprev_h = np.zeros((N, H))
    for t in reversed(range(T)):
        dnext_h = dh[:, t, :] + dprev_h
        dx[:, t, :], dprev_h, dWx_t, dWh_t, db_t = rnn_step_backward(dnext_h, cache[t])
        dWx += dWx_t
        dWh += dWh_t
        db += db_t
    dh0 = dprev_h
    return dx, dh0, dWx, dWh, db
"""
)

_LSTM_STEP = (
    _SIGMOID
    + """
def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x.dot(Wx) + prev_h.dot(Wh) + b
    i = sigmoid(a[:, :H])
    f = sigmoid(a[:, H:2*H])
    o = sigmoid(a[:, 2*H:3*H])
    g = np.tanh(a[:, 3*H:])
    next_c = f * prev_c + i * g
    next_h = o * np.tanh(next_c)
    cache = (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)
    return next_h, next_c, cache


def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    tanh_c = np.tanh(next_c)
    do = dnext_h * tanh_c
    dc = dnext_c + dnext_h * o * (1 - tanh_c ** 2)
    di = dc * g
    df = dc * prev_c
    dg = dc * i
    dprev_c = dc * f
    dai = di * i * (1 - i)
    daf = df * f * (1 - f)
    dao = do * o * (1 - o)
    dag = dg * (1 - g ** 2)
    da = np.concatenate((dai, daf, dao, dag), axis=1)
    dx = da.dot(Wx.T)
    dprev_h = da.dot(Wh.T)
    dWx = x.T.dot(da)
    dWh = prev_h.T.dot(da)
    db = da.sum(axis=0)
    return dx, dprev_h, dprev_c, dWx, dWh, db
"""
)

_LSTM = (
    _LSTM_STEP
    + """

def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = h0.shape[1]
    h = np.zeros((N, T, H))
    cache = []
    hidden, cell = h0, np.zeros((N, H))
    for t in range(T):
        hidden, cell, step_cache = lstm_step_forward(x[:, t, :], hidden, cell, Wx, Wh, b)
        h[:, t, :] = hidden
        cache.append(step_cache)
    return h, cache


def lstm_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0][0].shape[1]
    dx = np.zeros((N, T, D))
    dWx, dWh, db = np.zeros((D, 4 * H)), np.zeros((H, 4 * H)), np.zeros(4 * H)
    dhidden, dcell = np.zeros((N, H)), np.zeros((N, H))
    for t in reversed(range(T)):
        dx_t, dhidden, dcell, dWx_t, dWh_t, db_t = lstm_step_backward(dh[:, t, :] + dhidden, dcell, cache[t])
        dx[:, t, :] = dx_t
        dWx += dWx_t
        dWh += dWh_t
        db += db_t
    return dx, dhidden, dWx, dWh, db
"""
)

_GRU_STEP = (
    _SIGMOID
    + """
def gru_step_forward(x, prev_h, Wx, Wh, b):
    H = prev_h.shape[1]
    ax = x.dot(Wx) + b
    z = sigmoid(ax[:, :H] + prev_h.dot(Wh[:, :H]))
    r = sigmoid(ax[:, H:2*H] + prev_h.dot(Wh[:, H:2*H]))
    g = np.tanh(ax[:, 2*H:] + np.dot(r * prev_h, Wh[:, 2*H:]))
    next_h = (1 - z) * g + z * prev_h
    return next_h, (x, prev_h, Wx, Wh, z, r, g)


def gru_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, z, r, g = cache
    H = prev_h.shape[1]
    dz = dnext_h * (prev_h - g)
    dg = dnext_h * (1 - z)
    daz = dz * z * (1 - z)
    dag = dg * (1 - g ** 2)
    drh = dag.dot(Wh[:, 2*H:].T)
    dr = drh * prev_h
    dar = dr * r * (1 - r)
    dprev_h = dnext_h * z
    dprev_h += drh * r
    dprev_h += daz.dot(Wh[:, :H].T)
    dprev_h += dar.dot(Wh[:, H:2*H].T)
    da = np.hstack((daz, dar, dag))
    dWh = np.hstack((prev_h.T.dot(daz), prev_h.T.dot(dar), (r * prev_h).T.dot(dag)))
    return da.dot(Wx.T), dprev_h, x.T.dot(da), dWh, np.sum(da, axis=0)
"""
)

_GRU = (
    _GRU_STEP
    + """

def gru_forward(x, h0, Wx, Wh, b):
    h, caches = np.zeros(x.shape[:2] + (h0.shape[1],)), []
    state = h0
    for t in range(x.shape[1]):
        state, cache = gru_step_forward(x[:, t], state, Wx, Wh, b)
        h[:, t] = state
        caches.append(cache)
    return h, caches


def gru_backward(dh, cache):
    T = dh.shape[1]
    x, h0, Wx, Wh = cache[0][:4]
    dx = np.zeros((len(x), T, x.shape[1]))
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(Wx.shape[1])
    dstate = np.zeros_like(h0)
    for t in range(T - 1, -1, -1):
        dstate = dstate + dh[:, t]
        dx[:, t], dstate, dWx_t, dWh_t, db_t = gru_step_backward(dstate, cache[t])
        dWx += dWx_t
        dWh += dWh_t
        db += db_t
    return dx, dstate, dWx, dWh, db
"""
)

_SIMPLIFIED_GRU_STEP = (
    _SIGMOID
    + """
def simplified_gru_step_forward(x, prev_h, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x.dot(Wx) + prev_h.dot(Wh) + b
    z = sigmoid(a[:, :H])
    g = np.tanh(a[:, H:])
    next_h = (1 - z) * g + z * prev_h
    return next_h, (x, prev_h, Wx, Wh, z, g)


def simplified_gru_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, z, g = cache
    daz = dnext_h * (prev_h - g) * z * (1 - z)
    dag = dnext_h * (1 - z) * (1 - g ** 2)
    da = np.hstack((daz, dag))
    dprev_h = dnext_h * z + da.dot(Wh.T)
    return da.dot(Wx.T), dprev_h, x.T.dot(da), prev_h.T.dot(da), np.sum(da, axis=0)
"""
)

_LOST = "lacks|missing|without|left out|does not reach|not added|0"  # a term that is not there
_PREVIOUS = "prev_h|h0|previous|first step|every step|each step|steps|time|state"

HELD_OUT = [
    planted(
        "held_out_rnn_step_tanh_of_tanh",
        "rnn_step",
        _RNN_STEP,
        {"(1 - next_h ** 2)": "(1 - np.tanh(next_h) ** 2)"},
        either("da", "tanh|derivative|next_h"),
        "wrong derivative",
    ),
    planted(
        "held_out_rnn_step_dprev_h_through_wh_itself",
        "rnn_step",
        _RNN_STEP,
        {"np.dot(dtanh, Wh.T)": "np.dot(dtanh, Wh)"},
        either("dprev_h|Wh", TRANSPOSED),
        "transposed",
    ),
    planted(
        "held_out_rnn_step_dwh_transposed",
        "rnn_step",
        _RNN_STEP,
        {"np.dot(prev_h.T, dtanh)": "np.dot(dtanh.T, prev_h)"},
        either("dWh", TRANSPOSED),
        "transposed",
    ),
    planted(
        "held_out_rnn_step_db_is_a_mean",
        "rnn_step",
        _RNN_STEP,
        {"np.sum(dtanh, axis=0)": "np.mean(dtanh, axis=0)"},
        either("db", AVERAGED),
        "wrong scale",
    ),
    planted(
        "held_out_rnn_step_no_square",
        "rnn_step",
        _RNN_STEP,
        {"(1 - next_h ** 2)": "(1 - next_h)"},
        either("next_h|da", "square|squared|**2|**|^2|1 - next_h"),
        "wrong derivative",
    ),
    planted(
        "held_out_rnn_every_step_from_h0",
        "rnn",
        _RNN,
        {"prev_h, step_cache = rnn_step_forward": "next_h, step_cache = rnn_step_forward",
         "h[:, t, :] = prev_h": "h[:, t, :] = next_h"},
        either("prev_h|h0|previous", "step|steps|time|state|updated|prev_h"),
        "through time",
    ),
    planted(
        "held_out_rnn_first_step_reads_zeros",
        "rnn",
        _RNN,
        {"    for t in range(T):\n": "    for t in range(T):\n        prev_h = h[:, t - 1, :]\n"},
        either("h0|initial|first step", "zero|zeros|ignored|not used|lacks|without|does not|0|initial|state"),
        "wrong step",
    ),
    planted(
        "held_out_rnn_gradient_of_the_next_step_lost",
        "rnn",
        _RNN,
        {"dnext_h = dh[:, t, :] + dprev_h": "dnext_h = dh[:, t, :]"},
        either("dh_t|dprev_h|dh", _LOST + "|" + _PREVIOUS),
        "through time",
    ),
    planted(
        "held_out_rnn_adds_into_dh",
        "rnn",
        _RNN,
        {"dnext_h = dh[:, t, :] + dprev_h": "dh[:, t, :] += dprev_h\n        dnext_h = dh[:, t, :]"},
        either("dh", WRITTEN),
        "writes into an input",
    ),
    planted(
        "held_out_rnn_dwh_of_one_step",
        "rnn",
        _RNN,
        {"dWh += dWh_t": "dWh = dWh_t"},
        either("dWh", ACCUMULATED),
        "overwritten",
    ),
    planted(
        "held_out_rnn_backward_stops_at_step_1",
        "rnn",
        _RNN,
        {"reversed(range(T))": "range(T - 1, 0, -1)"},
        either("first step|step 0|t = 0|step 1|range|loop"),
        "wrong step",
    ),
    planted(
        "held_out_rnn_dh0_counts_dh_again",
        "rnn",
        _RNN,
        {"dh0 = dprev_h": "dh0 = dprev_h + dh[:, 0, :]"},
        either("dh0", "dh|twice|too much|extra|added"),
        "extra term",
    ),
    planted(
        "held_out_lstm_step_do_from_dc",
        "lstm_step",
        _LSTM_STEP,
        {"    do = dnext_h * tanh_c\n    dc = dnext_c + dnext_h * o * (1 - tanh_c ** 2)\n":
         "    dc = dnext_c + dnext_h * o * (1 - tanh_c ** 2)\n    do = dc * tanh_c\n"},
        either("da_o", "dc|dnext_h"),
        "wrong variable",
    ),
    planted(
        "held_out_lstm_step_g_before_o",
        "lstm_step",
        _LSTM_STEP,
        {"o = sigmoid(a[:, 2*H:3*H])": "o = sigmoid(a[:, 3*H:])",
         "g = np.tanh(a[:, 3*H:])": "g = np.tanh(a[:, 2*H:3*H])",
         "(dai, daf, dao, dag)": "(dai, daf, dag, dao)"},
        either("gates|order|blocks", ORDER + "|i, f, g, o|g and o|o and g"),
        "gate order",
    ),
    planted(
        "held_out_lstm_step_da_in_another_order",
        "lstm_step",
        _LSTM_STEP,
        {"(dai, daf, dao, dag)": "(dai, daf, dag, dao)"},
        either("da|gates|blocks|da_o", ORDER),
        "gate order",
    ),
    planted(
        "held_out_lstm_step_dnext_c_forgotten",
        "lstm_step",
        _LSTM_STEP,
        {"dc = dnext_c + dnext_h * o": "dc = dnext_h * o"},
        either("dnext_c"),
        "missing term",
    ),
    planted(
        "held_out_lstm_step_dprev_c_from_dnext_c",
        "lstm_step",
        _LSTM_STEP,
        {"dprev_c = dc * f": "dprev_c = dnext_c * f"},
        either("dprev_c", "dnext_c|dc"),
        "wrong variable",
    ),
    planted(
        "held_out_lstm_step_g_like_a_sigmoid",
        "lstm_step",
        _LSTM_STEP,
        {"dag = dg * (1 - g ** 2)": "dag = dg * g * (1 - g)"},
        either("da_g"),
        "wrong derivative",
    ),
    planted(
        "held_out_lstm_step_h_without_tanh",
        "lstm_step",
        _LSTM_STEP,
        {"next_h = o * np.tanh(next_c)": "next_h = o * next_c"},
        either("next_h|next_c", "tanh"),
        "wrong forward",
    ),
    planted(
        "held_out_lstm_step_input_and_forget_exchanged",
        "lstm_step",
        _LSTM_STEP,
        {"next_c = f * prev_c + i * g": "next_c = i * prev_c + f * g"},
        either("i|f", "i|f", "next_c|" + ORDER + "|gates|order"),
        "wrong forward",
    ),
    planted(
        "held_out_lstm_step_square_of_c_itself",
        "lstm_step",
        _LSTM_STEP,
        {"o * (1 - tanh_c ** 2)": "o * (1 - next_c ** 2)"},
        either("dc|tanh_c", "next_c|tanh"),
        "wrong derivative",
    ),
    planted(
        "held_out_lstm_step_forget_gate_copied_from_input_gate",
        "lstm_step",
        _LSTM_STEP,
        {"daf = df * f * (1 - f)": "daf = df * i * (1 - i)"},
        either("da_f", "i|1 - i|sigmoid|derivative"),
        "wrong variable",
    ),
    planted(
        "held_out_lstm_step_adds_into_dnext_c",
        "lstm_step",
        _LSTM_STEP,
        {"    dc = dnext_c + dnext_h": "    dc = dnext_c\n    dc += dnext_h"},
        either("dnext_c", WRITTEN),
        "writes into an input",
    ),
    planted(
        "held_out_lstm_step_db_over_the_gates",
        "lstm_step",
        _LSTM_STEP,
        {"db = da.sum(axis=0)": "db = da.sum(axis=1)"},
        either("db", BATCH + "|shape"),
        "wrong shape",
    ),
    planted(
        "held_out_lstm_cell_state_not_kept",
        "lstm",
        _LSTM,
        {"hidden, cell, step_cache = lstm_step_forward": "hidden, _, step_cache = lstm_step_forward"},
        either("prev_c|next_c|cell state|c0", "step|steps|time|updated|zero|zeros|prev_c|lacks"),
        "through time",
    ),
    planted(
        "held_out_lstm_cell_state_from_h0",
        "lstm",
        _LSTM,
        {"hidden, cell = h0, np.zeros((N, H))": "hidden, cell = h0, h0"},
        either("prev_c|c0|cell state", "h0|zeros|zero"),
        "wrong step",
    ),
    planted(
        "held_out_lstm_dcell_lost",
        "lstm",
        _LSTM,
        {"dh[:, t, :] + dhidden, dcell, cache[t]": "dh[:, t, :] + dhidden, np.zeros((N, H)), cache[t]"},
        either("dc_t|dprev_c|dnext_c|dc", _LOST + "|" + "step|steps|time|zero|zeros|carried"),
        "through time",
    ),
    planted(
        "held_out_lstm_last_dh_twice",
        "lstm",
        _LSTM,
        {"dhidden, dcell = np.zeros((N, H)), np": "dhidden, dcell = dh[:, -1, :], np"},
        either("dh_t|dh|last step", "twice|last|dh[:, -1]|initial|starts|start|zeros"),
        "doubled",
    ),
    planted(
        "held_out_lstm_dx_at_the_step_before",
        "lstm",
        _LSTM,
        {"dx[:, t, :] = dx_t": "dx[:, t - 1, :] = dx_t"},
        either("dx", "step|time|t - 1|shifted|t + 1|steps"),
        "wrong step",
    ),
    planted(
        "held_out_gru_step_update_gate_reversed",
        "gru_step",
        _GRU_STEP,
        {"next_h = (1 - z) * g + z * prev_h": "next_h = z * g + (1 - z) * prev_h"},
        either("z", "1 - z|" + ORDER),
        "wrong forward",
    ),
    planted(
        "held_out_gru_step_reset_after_the_product",
        "gru_step",
        _GRU_STEP,
        {"np.dot(r * prev_h, Wh[:, 2*H:])": "r * np.dot(prev_h, Wh[:, 2*H:])"},
        either("r", "product|after|before|prev_h|Wh_g"),
        "wrong forward",
    ),
    planted(
        "held_out_gru_step_sign_of_dz",
        "gru_step",
        _GRU_STEP,
        {"dnext_h * (prev_h - g)": "dnext_h * (g - prev_h)"},
        either("da_z", SIGN),
        "wrong sign",
    ),
    planted(
        "held_out_gru_step_dwh_of_the_candidate_without_r",
        "gru_step",
        _GRU_STEP,
        {"(r * prev_h).T.dot(dag)": "prev_h.T.dot(dag)"},
        either("dWh", "r|r * prev_h"),
        "missing factor",
    ),
    planted(
        "held_out_gru_step_candidate_does_not_reach_prev_h",
        "gru_step",
        _GRU_STEP,
        {"    dprev_h += drh * r\n    dprev_h += daz": "    dprev_h += daz"},
        either("dprev_h", "dq * r|dq|r"),
        "missing term",
    ),
    planted(
        "held_out_gru_step_dr_from_r",
        "gru_step",
        _GRU_STEP,
        {"dr = drh * prev_h": "dr = drh * r"},
        either("da_r", "prev_h|r"),
        "wrong variable",
    ),
    planted(
        "held_out_gru_db_of_the_first_step",
        "gru",
        _GRU,
        {"        db += db_t\n": "    db += db_t\n"},
        either("db", ACCUMULATED),
        "overwritten",
    ),
    planted(
        "held_out_simplified_gru_step_no_path_around_the_gates",
        "simplified_gru_step",
        _SIMPLIFIED_GRU_STEP,
        {"dprev_h = dnext_h * z + da.dot(Wh.T)": "dprev_h = da.dot(Wh.T)"},
        either("dprev_h", "dnext_h * z|dnext_h|z"),
        "missing term",
    ),
    planted(
        "held_out_simplified_gru_step_derivative_of_sigmoid_forgotten",
        "simplified_gru_step",
        _SIMPLIFIED_GRU_STEP,
        {"dnext_h * (prev_h - g) * z * (1 - z)": "dnext_h * (prev_h - g)"},
        either("da_z", "z|1 - z|z * (1 - z)"),
        "missing factor",
    ),
]  # fmt: skip
