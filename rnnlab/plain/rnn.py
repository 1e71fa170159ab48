"""Vanilla RNN (cs231n, assignment 3).

    h_t = tanh(x_t Wx + h_{t-1} Wh + b)

Backward through time, from the last step to the first. dh_t is the sum of the gradients that reach h_t, from
the loss and from step t + 1:

    da_t = dh_t * (1 - h_t^2)                  the gradient before the tanh
    dx_t = da_t Wx^T                           dh_{t-1} = da_t Wh^T
    dWx = sum_t x_t^T da_t                     dWh = sum_t h_{t-1}^T da_t               db = sum_t da_t

Shapes: x (N, T, D), h (N, T, H), Wx (D, H), Wh (H, H), b (H,).
"""

import numpy as np

from rnnlab.plain.padding import real_steps


def rnn_step_forward(x, prev_h, Wx, Wh, b):
    """One step: x (N, D), prev_h (N, H) -> next_h (N, H)."""
    next_h = np.tanh(x @ Wx + prev_h @ Wh + b)
    return next_h, (x, prev_h, Wx, Wh, next_h)


def rnn_step_backward(dnext_h, cache):
    """dnext_h (N, H) -> dx, dprev_h, dWx, dWh, db."""
    x, prev_h, Wx, Wh, next_h = cache
    da = dnext_h * (1 - next_h**2)
    return da @ Wx.T, da @ Wh.T, x.T @ da, prev_h.T @ da, da.sum(axis=0)


def rnn_forward(x, h0, Wx, Wh, b, *, lengths=None):
    """All steps: x (N, T, D), h0 (N, H) -> h (N, T, H)."""
    (N, T, _), H = x.shape, h0.shape[1]
    m, h, caches, prev_h = real_steps(lengths, N, T), np.zeros((N, T, H)), [], h0
    for t in range(T):
        next_h, cache = rnn_step_forward(x[:, t], prev_h, Wx, Wh, b)
        prev_h = m[t] * next_h + (1 - m[t]) * prev_h
        h[:, t] = prev_h
        caches.append(cache)
    return h, (x, h0, Wx, Wh, m, caches)


def rnn_backward(dh, cache):
    """dh (N, T, H), what reaches each h_t from the loss -> dx, dh0, dWx, dWh, db."""
    x, h0, Wx, Wh, m, caches = cache
    dx, dh_t = np.zeros(x.shape), np.zeros(h0.shape)
    dWx, dWh, db = np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(Wx.shape[1])
    for t in reversed(range(len(caches))):
        dh_t = dh_t + dh[:, t]
        dx[:, t], dprev_h, dWx_t, dWh_t, db_t = rnn_step_backward(m[t] * dh_t, caches[t])
        dh_t = dprev_h + (1 - m[t]) * dh_t
        dWx, dWh, db = dWx + dWx_t, dWh + dWh_t, db + db_t
    return dx, dh_t, dWx, dWh, db
