"""Mistakes in axes: a reshape in the place of a transpose, a softmax over another axis."""

from __future__ import annotations

from . import gru, lstm_styles, rnn_styles, simplified_gru
from .mistake import Mistake, either, planted

_RESHAPED = "reshaped|reshape"

_SOFTMAX_IN_STEPS = """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    shifted = x - x.max(axis=2, keepdims=True)
    p = np.exp(shifted)
    p /= p.sum(axis=2, keepdims=True)
    n, t = np.arange(N)[:, None], np.arange(T)
    loss = -np.sum(np.log(p[n, t, y])[mask]) / N
    dx = p.copy()
    dx[n, t, y] -= 1
    dx[~mask] = 0
    return loss, dx / N
"""

_SOFTMAX_BY_LOGS = """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    axis = 2
    log_z = np.log(np.exp(x).sum(axis, keepdims=True))
    log_p = x - log_z
    truth = np.eye(x.shape[2])[y]
    weight = mask[..., None] / len(x)
    return -np.sum(weight * truth * log_p), weight * (np.exp(log_p) - truth)
"""

_CLASSES = either("softmax", "axis 2|classes")

MISTAKES: list[Mistake] = [
    planted(
        "rnn_step_dWx_reshaped",
        "rnn_step",
        rnn_styles.STEP,
        {"x.T.dot(da)": "x.reshape(-1, len(x)).dot(da)"},
        either("dWx", _RESHAPED),
        "transposed",
    ),
    planted(
        "rnn_step_dprev_h_reshaped",
        "rnn_step",
        rnn_styles.STEP,
        {"da.dot(Wx.T)": "da @ np.reshape(Wx, Wx.shape[::-1])"},
        either("dx", _RESHAPED),
        "transposed",
    ),
    planted(
        "lstm_step_dprev_h_reshaped",
        "lstm_step",
        lstm_styles.DICT + lstm_styles.DICT_BACKWARD,
        {"da.dot(Wh.T)": "da.dot(Wh.reshape(4 * Wh.shape[0], -1))"},
        either("dprev_h", _RESHAPED),
        "transposed",
    ),
    planted(
        "lstm_dWh_reshaped_in_the_loop",
        "lstm",
        lstm_styles.ARRAYS + lstm_styles.ARRAYS_BACKWARD,
        {"hs[t].T.dot(da)": "hs[t].reshape(H, N) @ da"},
        either("dWh", _RESHAPED),
        "transposed",
    ),
    planted(
        "gru_step_dx_reshaped",
        "gru_step",
        gru.DICT + gru.DICT_BACKWARD,
        {"dpre.dot(Wx.T)": "dpre.dot(Wx.reshape(dpre.shape[1], -1))"},
        either("dx", _RESHAPED),
        "transposed",
    ),
    planted(
        "simplified_gru_step_dWh_reshaped",
        "simplified_gru_step",
        simplified_gru.STEP_FORWARD + simplified_gru.STEP_BACKWARD,
        {"prev_h.T.dot(ds)": "prev_h.reshape(prev_h.shape[1], len(x)).dot(ds)"},
        either("dWh", _RESHAPED),
        "transposed",
    ),
    planted(
        "temporal_softmax_over_time_in_steps",
        "temporal_softmax_loss",
        _SOFTMAX_IN_STEPS,
        {"p.sum(axis=2": "p.sum(axis=1"},
        _CLASSES,
        "wrong sum",
    ),
    planted(
        "temporal_softmax_over_time_by_logs",
        "temporal_softmax_loss",
        _SOFTMAX_BY_LOGS,
        {"axis = 2\n": "axis = 1\n"},
        _CLASSES,
        "wrong sum",
    ),
    planted(
        "temporal_softmax_over_all_scores",
        "temporal_softmax_loss",
        _SOFTMAX_BY_LOGS,
        {"axis = 2\n": "axis = None\n"},
        _CLASSES,
        "wrong sum",
    ),
]
