"""Word embedding (cs231n, assignment 3): each token selects a row of W.

    out[n, t] = W[x[n, t]]            dW[v] = sum of dout[n, t] over all (n, t) with x[n, t] = v

It is the product of a one-hot vector with W; tokens have no gradient.
"""

import numpy as np


def word_embedding_forward(x, W):
    """Tokens x (N, T), W (V, D) -> word vectors (N, T, D)."""
    return W[x], (x, W.shape)


def word_embedding_backward(dout, cache):
    """dout (N, T, D) -> dW (V, D)."""
    x, shape = cache
    dW = np.zeros(shape)
    for place in np.ndindex(x.shape):
        dW[x[place]] += dout[place]
    return dW
