"""Softmax cross-entropy, for rows and for sequences (ARNet, eq. 8; cs231n, assignment 3).

    p = softmax(x)                  p_v = exp(x_v) / sum_k exp(x_k)
    loss = -sum_v q_v log p_v       dx = p - q

q is the target distribution, (1 - epsilon) onehot(y) + epsilon / V. Epsilon is 0, or the label smoothing of
Szegedy et al. (2016, section 7). The loss of a batch of sequences is summed over real steps and averaged over
sequences.
"""

import numpy as np


def softmax_loss(x, y, *, label_smoothing=0.0):
    """Scores x (M, V), classes y (M,) -> the mean loss, dx (M, V)."""
    M, V = x.shape
    shifted = x - x.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    q = (1 - label_smoothing) * (np.arange(V) == y[:, None]) + label_smoothing / V
    return -(q * log_p).sum() / max(M, 1), (np.exp(log_p) - q) / max(M, 1)


def temporal_softmax_loss(x, y, mask, *, label_smoothing=0.0):
    """Scores x (N, T, V), tokens y (N, T), mask (N, T), true for real tokens -> loss, dx (N, T, V)."""
    real, dx = np.asarray(mask, dtype=bool), np.zeros(x.shape)
    mean_loss, dx[real] = softmax_loss(x[real], y[real], label_smoothing=label_smoothing)
    return mean_loss * real.sum() / len(x), dx * real.sum() / len(x)
