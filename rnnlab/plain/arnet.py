"""ARNet: an LSTM reconstructs the previous hidden state from the current one (X. Chen et al. 2018).

    h'_t, c'_t = LSTM(h_t, h'_{t-1}, c'_{t-1})                     eq. 5, from zeros, with R units
    e_t  = h'_t W + b_out - h_{t-1}                                eq. 6, the reconstruction less its target
    loss = 1/N sum_n sum_t |e_t|^2                                 eq. 7, over real steps

h_0 is a target only if it is given: a state computed from an image is a target, zeros are not. Backward: the
gradient 2/N e_t W^T flows through the LSTM to h_t, and -2/N e_t to the target h_{t-1}.

``params``: Wx (H, 4R), Wh (R, 4R), b (4R,), W (R, H), b_out (H,).
"""

import numpy as np

from rnnlab.plain.lstm import lstm_backward, lstm_forward
from rnnlab.plain.padding import real_steps


def arnet_forward(h, h0, params, *, lengths=None):
    """h (N, T, H), h0 (N, H) or None -> loss."""
    N, T, H = h.shape
    Wx, Wh, b, W, b_out = (params[name] for name in ("Wx", "Wh", "b", "W", "b_out"))
    read, lstm_cache = lstm_forward(h, np.zeros((N, len(Wh))), Wx, Wh, b, lengths=lengths)
    targets = np.concatenate([np.zeros((N, 1, H)) if h0 is None else h0[:, None], h[:, :-1]], axis=1)
    errors = (read @ W + b_out - targets) * real_steps(lengths, N, T).swapaxes(0, 1)
    if h0 is None:
        errors[:, 0] = 0
    return (errors**2).sum() / N, (h0, read, errors, W, lstm_cache)


def arnet_backward(dloss, cache, *, detach_target=False):
    """dloss, the weight of this loss -> dh, dh0 (None without h0), dparams.

    With ``detach_target``, the targets are treated as constants.
    """
    h0, read, errors, W, lstm_cache = cache
    de = 2 / len(errors) * dloss * errors
    dh, _, dWx, dWh, db = lstm_backward(de @ W.T, lstm_cache)
    if not detach_target:
        dh[:, :-1] -= de[:, 1:]
    dW = np.einsum("ntr,nth->rh", read, de)
    dparams = {"Wx": dWx, "Wh": dWh, "b": db, "W": dW, "b_out": de.sum(axis=(0, 1))}
    dh0 = np.zeros(de[:, 0].shape) if detach_target else -de[:, 0]
    return dh, None if h0 is None else dh0, dparams
