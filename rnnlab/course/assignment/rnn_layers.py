"""Layers of a recurrent network: fill in the functions that raise NotImplementedError.

A forward returns its output and a cache; the backward gets the gradient of the output and that cache. A cache
is a tuple of your choice. The docstrings list what the backward needs from it.

Sizes: N sequences, T steps, D numbers in an input, H units of the hidden state, V words.
"""

import numpy as np

from .layers import affine_backward, affine_forward

__all__ = [
    "lstm_backward",
    "lstm_forward",
    "lstm_step_backward",
    "lstm_step_forward",
    "rnn_backward",
    "rnn_forward",
    "rnn_step_backward",
    "rnn_step_forward",
    "sigmoid",
    "temporal_affine_backward",
    "temporal_affine_forward",
    "temporal_softmax_loss",
    "word_embedding_backward",
    "word_embedding_forward",
]


# ---------------------------------------------------------------- vanilla RNN


def rnn_step_forward(x, prev_h, Wx, Wh, b):
    """One step of a vanilla RNN: next_h = tanh(x Wx + prev_h Wh + b).

    Parameters
    ----------
    x : (N, D)
        The input of this step.
    prev_h : (N, H)
        The hidden state before the step.
    Wx : (D, H)
    Wh : (H, H)
    b : (H,)

    Returns
    -------
    next_h : (N, H)
        The hidden state after the step.
    cache : tuple
        The inputs x and prev_h, the weights Wx and Wh, and next_h. The derivative
        of tanh is 1 - next_h^2.
    """
    raise NotImplementedError("rnn_step_forward: compute next_h, and keep what the backward needs")


def rnn_step_backward(dnext_h, cache):
    """Backward of :func:`rnn_step_forward`.

    Parameters
    ----------
    dnext_h : (N, H)
        The gradient of the loss with respect to next_h.
    cache : tuple
        That of the forward.

    Returns
    -------
    dx (N, D), dprev_h (N, H), dWx (D, H), dWh (H, H), db (H,)
    """
    raise NotImplementedError("rnn_step_backward: go back through tanh, then through the two products")


def rnn_forward(x, h0, Wx, Wh, b):
    """A vanilla RNN over all steps of a batch of sequences.

    Parameters
    ----------
    x : (N, T, D)
    h0 : (N, H)
        The hidden state before the first step.
    Wx, Wh, b
        As in :func:`rnn_step_forward`; they are the same in all steps.

    Returns
    -------
    h : (N, T, H)
        The hidden state after each step.
    cache : list
        The caches of the T steps.
    """
    raise NotImplementedError("rnn_forward: call rnn_step_forward for each step")


def rnn_backward(dh, cache):
    """Backward of :func:`rnn_forward`, through time.

    Parameters
    ----------
    dh : (N, T, H)
        The gradient that each hidden state gets from the loss directly. What it gets from the step after it
        is not in dh.
    cache : list
        That of the forward.

    Returns
    -------
    dx (N, T, D), dh0 (N, H), dWx (D, H), dWh (H, H), db (H,)
    """
    raise NotImplementedError(
        "rnn_backward: go from the last step to the first, and sum the gradients of the weights"
    )


# ---------------------------------------------------------------- word embedding


def word_embedding_forward(x, W):
    """Look up the vector of each word.

    Parameters
    ----------
    x : (N, T) integers in [0, V)
        The words.
    W : (V, D)
        The vector of word v is W[v].

    Returns
    -------
    out : (N, T, D)
    cache : tuple
        The words x, and the shape of W.
    """
    raise NotImplementedError("word_embedding_forward: index W with x")


def word_embedding_backward(dout, cache):
    """Backward of :func:`word_embedding_forward`. Words have no gradient.

    Parameters
    ----------
    dout : (N, T, D)
    cache : tuple

    Returns
    -------
    dW : (V, D)
        A word that occurs several times gets the sum; numpy.add.at computes it.
    """
    raise NotImplementedError("word_embedding_backward: add each row of dout to the row of its word")


# ---------------------------------------------------------------- LSTM


def sigmoid(x):
    """The logistic function 1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    """One step of an LSTM.

    The pre-activations a = x Wx + prev_h Wh + b are four blocks of H columns: a_i, a_f, a_o, a_g.

        i = sigmoid(a_i)    f = sigmoid(a_f)    o = sigmoid(a_o)    g = tanh(a_g)
        next_c = f * prev_c + i * g             next_h = o * tanh(next_c)

    Parameters
    ----------
    x : (N, D)
    prev_h, prev_c : (N, H)
        The hidden state and the cell state before the step.
    Wx : (D, 4H)
    Wh : (H, 4H)
    b : (4H,)

    Returns
    -------
    next_h, next_c : (N, H)
        The hidden state and the cell state after the step.
    cache : tuple
        The inputs x, prev_h and prev_c, the weights Wx and Wh, the gates i, f, o and g, and next_c.
    """
    raise NotImplementedError("lstm_step_forward: compute the four gates, then next_c and next_h")


def lstm_step_backward(dnext_h, dnext_c, cache):
    """Backward of :func:`lstm_step_forward`.

    Parameters
    ----------
    dnext_h : (N, H)
    dnext_c : (N, H)
        The gradient of the loss with respect to next_c, without the part that comes through next_h.
    cache : tuple

    Returns
    -------
    dx (N, D), dprev_h (N, H), dprev_c (N, H), dWx (D, 4H), dWh (H, 4H), db (4H,)
    """
    raise NotImplementedError("lstm_step_backward: go back to next_c first, then to the four gates")


def lstm_forward(x, h0, Wx, Wh, b):
    """An LSTM over all steps of a batch of sequences. The cell state starts at zero.

    Parameters
    ----------
    x : (N, T, D)
    h0 : (N, H)
    Wx : (D, 4H)
    Wh : (H, 4H)
    b : (4H,)

    Returns
    -------
    h : (N, T, H)
        The hidden state after each step. The cell states are not returned.
    cache : list
        The caches of the T steps.
    """
    raise NotImplementedError("lstm_forward: call lstm_step_forward for each step, with both states")


def lstm_backward(dh, cache):
    """Backward of :func:`lstm_forward`, through time.

    Parameters
    ----------
    dh : (N, T, H)
        The gradient that each hidden state gets from the loss directly.
    cache : list

    Returns
    -------
    dx (N, T, D), dh0 (N, H), dWx (D, 4H), dWh (H, 4H), db (4H,)
    """
    raise NotImplementedError("lstm_backward: as rnn_backward, with the gradients of both states")


# ---------------------------------------------------------------- scores and their loss: these are complete


def temporal_affine_forward(x, w, b):
    """An affine map of each step of each sequence.

    Parameters
    ----------
    x : (N, T, D)
    w : (D, M)
    b : (M,)

    Returns
    -------
    out : (N, T, M)
    cache : tuple
        The inputs x and the weights w.
    """
    N, T, D = x.shape
    out, cache = affine_forward(x.reshape(N * T, D), w, b)
    return out.reshape(N, T, -1), (x.shape, cache)


def temporal_affine_backward(dout, cache):
    """Backward of :func:`temporal_affine_forward`.

    Parameters
    ----------
    dout : (N, T, M)
    cache : tuple

    Returns
    -------
    dx (N, T, D), dw (D, M), db (M,)
    """
    shape, rows = cache
    dx, dw, db = affine_backward(dout.reshape(-1, dout.shape[2]), rows)
    return dx.reshape(shape), dw, db


def temporal_softmax_loss(x, y, mask, verbose=False):
    """The cross-entropy of the words at all steps where the mask is true, and its gradient.

    The loss is the sum over these steps, divided by the number of sequences.

    Parameters
    ----------
    x : (N, T, V)
        Scores of all words at each step.
    y : (N, T) integers in [0, V)
        The correct words.
    mask : (N, T) booleans
        True at real words, False where y is padding.
    verbose : bool
        Print the shape of the gradient.

    Returns
    -------
    loss : float
    dx : (N, T, V)
    """
    N, T, V = x.shape
    scores, words, real = x.reshape(N * T, V), y.reshape(N * T), mask.reshape(N * T)
    log_p = scores - scores.max(axis=1, keepdims=True)
    log_p = log_p - np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    rows = np.arange(N * T)
    dx = np.exp(log_p)
    dx[rows, words] -= 1
    dx = (dx * real[:, None] / N).reshape(N, T, V)
    if verbose:
        print(f"dx: {dx.shape}")
    return -(log_p[rows, words] * real).sum() / N, dx
