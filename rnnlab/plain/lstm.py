"""LSTM without peepholes (Chen, Dong and Li 2016, eq. 7; ARNet, eqs 1-2; cs231n, assignment 3).

    i_t = sigmoid(x_t Wx_i + h_{t-1} Wh_i + b_i)        input gate
    f_t = sigmoid(x_t Wx_f + h_{t-1} Wh_f + b_f)        forget gate
    o_t = sigmoid(x_t Wx_o + h_{t-1} Wh_o + b_o)        output gate
    g_t = tanh(x_t Wx_g + h_{t-1} Wh_g + b_g)           candidate
    c_t = f_t * c_{t-1} + i_t * g_t                     cell state
    h_t = o_t * tanh(c_t)                               hidden state

Backward, with dh_t the sum of the gradients that reach h_t, and dc_t initially without the share through h_t:

    dc_t += dh_t * o_t * (1 - tanh(c_t)^2)                            h_t reads c_t
    da_i = dc_t * g_t * i_t (1 - i_t)                                 gradients before the nonlinearities
    da_f = dc_t * c_{t-1} * f_t (1 - f_t)
    da_o = dh_t * tanh(c_t) * o_t (1 - o_t)
    da_g = dc_t * i_t * (1 - g_t^2)
    dc_{t-1} = dc_t * f_t           dh_{t-1} = da_t Wh^T              dx_t = da_t Wx^T

Weights are stacked in the order i, f, o, g: Wx (D, 4H), Wh (H, 4H), b (4H,).
"""

import numpy as np

from rnnlab.plain.activation import sigmoid
from rnnlab.plain.padding import real_steps


def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    """One step: x (N, D), prev_h and prev_c (N, H) -> next_h, next_c (N, H)."""
    a_i, a_f, a_o, a_g = np.split(x @ Wx + prev_h @ Wh + b, 4, axis=1)
    i, f, o, g = sigmoid(a_i), sigmoid(a_f), sigmoid(a_o), np.tanh(a_g)
    next_c = f * prev_c + i * g
    next_h = o * np.tanh(next_c)
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)


def lstm_step_backward(dnext_h, dnext_c, cache):
    """dnext_h, dnext_c (N, H) -> dx, dprev_h, dprev_c, dWx, dWh, db."""
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    tanh_c = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - tanh_c**2)
    da_i = dc * g * i * (1 - i)
    da_f = dc * prev_c * f * (1 - f)
    da_o = dnext_h * tanh_c * o * (1 - o)
    da_g = dc * i * (1 - g**2)
    da = np.concatenate([da_i, da_f, da_o, da_g], axis=1)
    return da @ Wx.T, da @ Wh.T, dc * f, x.T @ da, prev_h.T @ da, da.sum(axis=0)


def lstm_forward(x, h0, Wx, Wh, b, *, c0=None, lengths=None):
    """All steps: x (N, T, D), h0 (N, H), c0 (N, H) or zeros -> h (N, T, H)."""
    (N, T, _), H = x.shape, h0.shape[1]
    m, h, caches = real_steps(lengths, N, T), np.zeros((N, T, H)), []
    prev_h, prev_c = h0, np.zeros(h0.shape) if c0 is None else c0
    for t in range(T):
        next_h, next_c, cache = lstm_step_forward(x[:, t], prev_h, prev_c, Wx, Wh, b)
        prev_h = m[t] * next_h + (1 - m[t]) * prev_h
        prev_c = m[t] * next_c + (1 - m[t]) * prev_c
        h[:, t] = prev_h
        caches.append(cache)
    return h, (x, h0, c0, Wx, Wh, m, caches)


def lstm_backward(dh, cache):
    """dh (N, T, H) -> dx, dh0, dWx, dWh, db, and dc0 if c0 was given."""
    x, h0, c0, Wx, Wh, m, caches = cache
    dx, dh_t, dc_t = np.zeros(x.shape), np.zeros(h0.shape), np.zeros(h0.shape)
    dWx, dWh, db = np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(Wx.shape[1])
    for t in reversed(range(len(caches))):
        dh_t = dh_t + dh[:, t]
        dx[:, t], dprev_h, dprev_c, dWx_t, dWh_t, db_t = lstm_step_backward(
            m[t] * dh_t, m[t] * dc_t, caches[t]
        )
        dh_t, dc_t = dprev_h + (1 - m[t]) * dh_t, dprev_c + (1 - m[t]) * dc_t
        dWx, dWh, db = dWx + dWx_t, dWh + dWh_t, db + db_t
    return (dx, dh_t, dWx, dWh, db) if c0 is None else (dx, dh_t, dWx, dWh, db, dc_t)
