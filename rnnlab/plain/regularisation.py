"""An LSTM with zoneout and recurrent dropout; all masks are given.

    zoneout (Krueger et al. 2017, section 3.2): a unit keeps its previous value where d = 1
        c_t = d^c_t * c_{t-1} + (1 - d^c_t) * c~_t             c~_t = f_t * c_{t-1} + i_t * (k_t * g_t)
        h_t = d^h_t * h_{t-1} + (1 - d^h_t) * h~_t             h~_t = o_t * tanh(c~_t)
    recurrent dropout of the state (Gal and Ghahramani 2016): all products read m * h_{t-1}, with one mask m
        for all steps
    recurrent dropout of the candidate (Semeniuta et al. 2016): k_t * g_t is added to the cell state, with
        another mask k_t at each step

d is 1 with probability p; m and k are 0 with probability p, else 1 / (1 - p). In inference d = p, the
expectation, and m = k = 1. Padding can be expressed by zoneout masks, too: d = 1 for a whole row.
"""

import numpy as np

from rnnlab.plain.activation import sigmoid


def regularised_lstm_forward(x, h0, c0, Wx, Wh, b, d_h, d_c, m, k):
    """x (N, T, D), h0 and c0 (N, H), d_h, d_c and k (T, N, H), m (N, H) -> h (N, T, H)."""
    N, T, _ = x.shape
    h, prev_h, prev_c, caches = np.zeros((N, T, h0.shape[1])), h0, c0, []
    for t in range(T):
        a_i, a_f, a_o, a_g = np.split(x[:, t] @ Wx + (m * prev_h) @ Wh + b, 4, axis=1)
        i, f, o, g = sigmoid(a_i), sigmoid(a_f), sigmoid(a_o), np.tanh(a_g)
        made_c = f * prev_c + i * (k[t] * g)
        caches.append((x[:, t], prev_h, prev_c, i, f, o, g, np.tanh(made_c)))
        prev_h = d_h[t] * prev_h + (1 - d_h[t]) * o * np.tanh(made_c)
        prev_c = d_c[t] * prev_c + (1 - d_c[t]) * made_c
        h[:, t] = prev_h
    return h, (x, Wx, Wh, d_h, d_c, m, k, caches)


def regularised_lstm_backward(dh, cache):
    """dh (N, T, H) -> dx, dh0, dc0, dWx, dWh, db."""
    x, Wx, Wh, d_h, d_c, m, k, caches = cache
    dx, dh_t, dc_t = np.zeros(x.shape), np.zeros(m.shape), np.zeros(m.shape)
    dWx, dWh, db = np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(Wx.shape[1])
    for t in reversed(range(len(caches))):
        x_t, prev_h, prev_c, i, f, o, g, tanh_c = caches[t]
        dh_t = dh_t + dh[:, t]
        dmade_h = (1 - d_h[t]) * dh_t
        dmade_c = (1 - d_c[t]) * dc_t + dmade_h * o * (1 - tanh_c**2)
        da_i = dmade_c * k[t] * g * i * (1 - i)
        da_f = dmade_c * prev_c * f * (1 - f)
        da_o = dmade_h * tanh_c * o * (1 - o)
        da_g = dmade_c * i * k[t] * (1 - g**2)
        da = np.concatenate([da_i, da_f, da_o, da_g], axis=1)
        dx[:, t] = da @ Wx.T
        dh_t = d_h[t] * dh_t + m * (da @ Wh.T)
        dc_t = d_c[t] * dc_t + dmade_c * f
        dWx += x_t.T @ da
        dWh += (m * prev_h).T @ da
        db += da.sum(axis=0)
    return dx, dh_t, dc_t, dWx, dWh, db
