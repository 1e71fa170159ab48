"""Mistakes in the word embedding."""

from __future__ import annotations

from .mistake import Mistake, either

REPEATED = (
    "add.at|repeated|repeat|several times|twice|same token|same word|more than once|added|summed|sum|"
    "accumulated|overwritten"
)

MISTAKES = [
    Mistake(
        "word_embedding_dW_by_fancy_index",
        "word_embedding",
        """
import numpy as np

def word_embedding_forward(x, W):
    return W[x, :], (x, W)

def word_embedding_backward(dout, cache):
    x, W = cache
    dW = np.zeros_like(W)
    dW[x] += dout
    return dW
""",
        either("dW", REPEATED),
        "wrong sum",
        {"dW[x] += dout": "np.add.at(dW, x, dout)"},
    ),
    Mistake(
        "word_embedding_dW_assigned",
        "word_embedding",
        """
import numpy as np

def word_embedding_forward(x, W):
    N, T = x.shape
    out = np.zeros((N, T, W.shape[1]))
    for n in range(N):
        for t in range(T):
            out[n, t] = W[x[n, t]]
    return out, (x, W.shape)

def word_embedding_backward(dout, cache):
    x, (V, D) = cache
    dW = np.zeros((V, D))
    for n in range(x.shape[0]):
        for t in range(x.shape[1]):
            dW[x[n, t]] = dout[n, t]
    return dW
""",
        either("dW", REPEATED),
        "overwritten",
        {"dW[x[n, t]] = dout": "dW[x[n, t]] += dout"},
    ),
    Mistake(
        "word_embedding_dW_by_fancy_index_in_each_step",
        "word_embedding",
        """
import numpy as np

def word_embedding_forward(x, W):
    return np.take(W, x, axis=0), (x, len(W))

def word_embedding_backward(dout, cache):
    x, V = cache
    dW = np.zeros((V, dout.shape[2]))
    for t in range(x.shape[1]):
        dW[x[:, t]] += dout[:, t]
    return dW
""",
        either("dW", REPEATED),
        "wrong sum",
        {"dW[x[:, t]] += dout[:, t]": "np.add.at(dW, x[:, t], dout[:, t])"},
    ),
    Mistake(
        "word_embedding_dW_averaged_over_repeats",
        "word_embedding",
        """
import numpy as np

def word_embedding_backward(dout, cache):
    x, shape = cache
    dW = np.zeros(shape)
    for token in np.unique(x):
        dW[token] = dout[x == token].mean(axis=0)
    return dW
""",
        either("dW", "mean|average|averaged|divided|count|number|" + REPEATED),
        "wrong scale",
        {".mean(axis=0)": ".sum(axis=0)"},
    ),
    Mistake(
        "word_embedding_dW_skips_token_0",
        "word_embedding",
        """
import numpy as np

def word_embedding_forward(x, W):
    return W[x], {"tokens": x, "V": W.shape[0]}

def word_embedding_backward(dout, cache):
    tokens = cache["tokens"].ravel()
    grads = dout.reshape(tokens.size, -1)
    dW = np.zeros((cache["V"], grads.shape[1]))
    for token, grad in zip(tokens, grads):
        if token:
            dW[token] += grad
    return dW
""",
        either("dW", "0|token|row"),
        "missing term",
        {"        if token:\n    ": ""},
    ),
    Mistake(
        "word_embedding_dW_has_rows_of_seen_tokens",
        "word_embedding",
        """
import numpy as np

def word_embedding_backward(dout, cache):
    x, shape = cache
    V = x.max() + 1
    one_hot = np.eye(V)[x.reshape(-1)]
    return one_hot.T @ dout.reshape(x.size, shape[1])
""",
        either("dW", "shape"),
        "wrong shape",
        {"V = x.max() + 1": "V = shape[0]"},
    ),
    Mistake(
        "word_embedding_forward_counts_from_1",
        "word_embedding",
        """
import numpy as np

def word_embedding_forward(x, W):
    out = W[x - 1]
    return out, (x, W.shape)
""",
        either("W|out", "row|rows|x - 1|token|tokens|index|off by one|shifted"),
        "wrong forward",
        {"W[x - 1]": "W[x]"},
    ),
]
