"""LRCN's factored decoder: two LSTM layers (Donahue et al. 2015; Chen, Dong and Li 2016, eqs 5-7, figure 3).

    h1_t, c1_t = LSTM_1(w_t, h1_{t-1}, c1_{t-1})                 reads the words alone
    h2_t, c2_t = LSTM_2([h1_t, v], h2_{t-1}, c2_{t-1})           reads layer 1 and the image vector

Both layers start from zeros. The gradient of v is the sum over all steps.
"""

import numpy as np

from rnnlab.plain.lstm import lstm_backward, lstm_forward


def factored_lstm_forward(words, v, first, second, *, lengths=None):
    """words (N, T, D), v (N, P), the weights (Wx, Wh, b) of both layers -> h2 (N, T, H)."""
    N, T, _ = words.shape
    h1, first_cache = lstm_forward(words, np.zeros((N, len(first[1]))), *first, lengths=lengths)
    x2 = np.concatenate([h1, np.repeat(v[:, None], T, axis=1)], axis=2)
    h2, second_cache = lstm_forward(x2, np.zeros((N, len(second[1]))), *second, lengths=lengths)
    return h2, (first_cache, second_cache, h1.shape[2])


def factored_lstm_backward(dh2, cache):
    """dh2 (N, T, H) -> dwords, dv, (dWx, dWh, db) of layer 1, the same of layer 2."""
    first_cache, second_cache, H = cache
    dx2, _, *dsecond = lstm_backward(dh2, second_cache)
    dwords, _, *dfirst = lstm_backward(dx2[:, :, :H], first_cache)
    return dwords, dx2[:, :, H:].sum(axis=1), tuple(dfirst), tuple(dsecond)
