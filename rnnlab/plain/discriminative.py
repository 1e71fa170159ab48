"""Discriminative supervision of thought vectors (Jiang, Ma and Lu 2020, eqs 9 and 10).

    s_j  = max_l a_l . w_j                                   score of word j, over thought vectors
    loss = 1/N sum_n sum_{j in W_n} sum_{i not in W_n} max(0, 1 - (s_j - s_i))

W_n are the words of sample n. A term above zero adds -1/N to the gradient of s_j and 1/N to that of s_i. The
gradient of a score goes to the vector with the maximum, or to the first of several. ``params``: W (H, k).
"""

import numpy as np


def discriminative_forward(thoughts, words, params):
    """thoughts (N, L, H), words (N, P): columns of W, -1 for none -> loss."""
    products = thoughts @ params["W"]
    s, loss, ds = products.max(axis=1), 0, np.zeros(products.shape[::2])
    for n in range(len(s)):
        present = set(words[n]) - {-1}
        for j in present:
            for i in set(range(len(s[n]))) - present:
                if s[n, j] - s[n, i] < 1:
                    loss += 1 - (s[n, j] - s[n, i])
                    ds[n, j] -= 1
                    ds[n, i] += 1
    return loss / len(s), (thoughts, params["W"], products.argmax(axis=1), ds / len(s))


def discriminative_backward(dloss, cache):
    """dloss, the weight of this loss -> dthoughts, dparams."""
    thoughts, W, slots, ds = cache
    dproducts = (np.arange(thoughts.shape[1])[:, None] == slots[:, None]) * (dloss * ds[:, None])
    return dproducts @ W.T, {"W": np.einsum("nlh,nlk->hk", thoughts, dproducts)}
