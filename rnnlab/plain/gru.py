"""Gated recurrent unit (Chen, Dong and Li 2016, eq. 8; its s is our h, its h our g).

    z_t = sigmoid(x_t Wx_z + h_{t-1} Wh_z + b_z)                update gate
    r_t = sigmoid(x_t Wx_r + h_{t-1} Wh_r + b_r)                reset gate
    g_t = tanh(x_t Wx_g + (r_t * h_{t-1}) Wh_g + b_g)           candidate
    h_t = (1 - z_t) * g_t + z_t * h_{t-1}

Backward, with dh_t the sum of the gradients that reach h_t:

    da_z = dh_t * (h_{t-1} - g_t) * z_t (1 - z_t)               da_g = dh_t * (1 - z_t) * (1 - g_t^2)
    dq_t = da_g Wh_g^T, of q_t = r_t * h_{t-1}                  da_r = dq_t * h_{t-1} * r_t (1 - r_t)
    dh_{t-1} = dh_t * z_t + dq_t * r_t + da_z Wh_z^T + da_r Wh_r^T

Weights are stacked in the order z, r, g: Wx (D, 3H), Wh (H, 3H), b (3H,).
"""

import numpy as np

from rnnlab.plain.activation import sigmoid
from rnnlab.plain.padding import real_steps


def gru_step_forward(x, prev_h, Wx, Wh, b):
    """One step: x (N, D), prev_h (N, H) -> next_h (N, H)."""
    (x_z, x_r, x_g), (Wh_z, Wh_r, Wh_g) = np.split(x @ Wx + b, 3, axis=1), np.split(Wh, 3, axis=1)
    z = sigmoid(x_z + prev_h @ Wh_z)
    r = sigmoid(x_r + prev_h @ Wh_r)
    g = np.tanh(x_g + (r * prev_h) @ Wh_g)
    return (1 - z) * g + z * prev_h, (x, prev_h, Wx, Wh, z, r, g)


def gru_step_backward(dnext_h, cache):
    """dnext_h (N, H) -> dx, dprev_h, dWx, dWh, db."""
    x, prev_h, Wx, Wh, z, r, g = cache
    Wh_z, Wh_r, Wh_g = np.split(Wh, 3, axis=1)
    da_z = dnext_h * (prev_h - g) * z * (1 - z)
    da_g = dnext_h * (1 - z) * (1 - g**2)
    dq = da_g @ Wh_g.T
    da_r = dq * prev_h * r * (1 - r)
    dprev_h = dnext_h * z + dq * r + da_z @ Wh_z.T + da_r @ Wh_r.T
    da = np.concatenate([da_z, da_r, da_g], axis=1)
    dWh = np.concatenate([prev_h.T @ da_z, prev_h.T @ da_r, (r * prev_h).T @ da_g], axis=1)
    return da @ Wx.T, dprev_h, x.T @ da, dWh, da.sum(axis=0)


def gru_forward(x, h0, Wx, Wh, b, *, lengths=None):
    """All steps: x (N, T, D), h0 (N, H) -> h (N, T, H)."""
    (N, T, _), H = x.shape, h0.shape[1]
    m, h, caches, prev_h = real_steps(lengths, N, T), np.zeros((N, T, H)), [], h0
    for t in range(T):
        next_h, cache = gru_step_forward(x[:, t], prev_h, Wx, Wh, b)
        prev_h = m[t] * next_h + (1 - m[t]) * prev_h
        h[:, t] = prev_h
        caches.append(cache)
    return h, (x, h0, Wx, Wh, m, caches)


def gru_backward(dh, cache):
    """dh (N, T, H) -> dx, dh0, dWx, dWh, db."""
    x, h0, Wx, Wh, m, caches = cache
    dx, dh_t = np.zeros(x.shape), np.zeros(h0.shape)
    dWx, dWh, db = np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(Wx.shape[1])
    for t in reversed(range(len(caches))):
        dh_t = dh_t + dh[:, t]
        dx[:, t], dprev_h, dWx_t, dWh_t, db_t = gru_step_backward(m[t] * dh_t, caches[t])
        dh_t = dprev_h + (1 - m[t]) * dh_t
        dWx, dWh, db = dWx + dWx_t, dWh + dWh_t, db + db_t
    return dx, dh_t, dWx, dWh, db
