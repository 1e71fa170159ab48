"""Attention of a decoder to its own past states (Xia et al. 2017, eqs 6-7).

    beta_tj = exp(a(h_{j-1}, h_t)) / sum_{k<j} exp(a(h_{j-1}, h_k))           t = 1 .. j - 1
    c_j     = sum_{t<j} beta_tj h_t

At step j the query is h_{j-1} and the memory is h_1 .. h_{j-1}. At step 1 the memory is empty and c_1 = 0.
Here all states are given; in :mod:`rnnlab.plain.attentive`, c_j enters the cell that computes h_j.
"""

import numpy as np

from rnnlab.plain.attention import attend_backward, attend_forward
from rnnlab.plain.padding import real_steps


def target_attention_forward(h, h0, params, *, score="additive", lengths=None):
    """h (N, T, H), h0 (N, H) -> contexts (N, T, H), weights (N, T, T)."""
    N, T, _ = h.shape
    m, contexts, weights, caches = real_steps(lengths, N, T), np.zeros(h.shape), np.zeros((N, T, T)), []
    for t in range(T):
        query, mask = h[:, t - 1] if t else h0, m[t] * np.ones((N, t))
        contexts[:, t], weights[:, t, :t], cache = attend_forward(
            query, h[:, :t], params, score=score, mask=mask
        )
        caches.append(cache)
    return contexts, weights, (h0, params, caches)


def target_attention_backward(dcontexts, cache, *, dweights=None):
    """dcontexts (N, T, H) -> dh (N, T, H), dh0 (N, H), dparams."""
    h0, params, caches = cache
    dh, dh0 = np.zeros(dcontexts.shape), np.zeros(h0.shape)
    dparams = {name: np.zeros(array.shape) for name, array in params.items()}
    for t, step in enumerate(caches):
        dalpha = None if dweights is None else dweights[:, t, :t]
        dquery, dmemory, dstep = attend_backward(dcontexts[:, t], step, dweights=dalpha)
        dh[:, :t] += dmemory
        (dh[:, t - 1] if t else dh0)[...] += dquery
        for name, gradient in dstep.items():
            dparams[name] += gradient
    return dh, dh0, dparams
