"""Right parts of a vanilla RNN in several styles: of one step, and of a sequence."""

from __future__ import annotations

# One step. A dict with an array for each name; input and state side by side, one weight.
DICT = """
import numpy as np

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    a = x.dot(Wx) + prev_h.dot(Wh) + b
    cache = {"x": x, "h": prev_h, "Wx": Wx, "Wh": Wh, "a": a}
    return np.tanh(a), cache
"""

STACKED = """
import numpy as np

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    # one product instead of two
    inp = np.hstack([x, prev_h])
    W = np.vstack([Wx, Wh])
    next_h = np.tanh(inp @ W + b)
    return next_h, (inp, W, next_h, x.shape[1])
"""

# A sequence by step functions.
STEP = """
import numpy as np

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    next_h = np.tanh(x.dot(Wx) + prev_h.dot(Wh) + b)
    return next_h, (x, prev_h, Wx, Wh, next_h)

def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    da = dnext_h * (1 - next_h ** 2)
    return da.dot(Wx.T), da.dot(Wh.T), x.T.dot(da), prev_h.T.dot(da), np.sum(da, axis=0)
"""

# A list of the caches of the steps.
LIST = (
    STEP
    + """
def rnn_forward(x, h0, Wx, Wh, b):
    h, cache, state = [], [], h0
    for t in range(x.shape[1]):
        state, c = rnn_step_forward(x[:, t, :], state, Wx, Wh, b)
        h.append(state)
        cache.append(c)
    return np.stack(h, axis=1), cache
"""
)

# No step functions; the states are one array with h0 in front.
ARRAY = """
import numpy as np

def rnn_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    hs = np.zeros((N, T + 1, h0.shape[1]))
    hs[:, 0] = h0
    for t in range(T):
        hs[:, t + 1] = np.tanh(x[:, t] @ Wx + hs[:, t] @ Wh + b)
    return hs[:, 1:].copy(), {"x": x, "hs": hs, "Wx": Wx, "Wh": Wh}
"""
