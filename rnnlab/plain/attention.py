"""Attention: a query reads a memory (ARNet, eq. 4; Xia et al. 2017, eqs 4-5; Bahdanau et al. 2015).

    e_i     = a(h, s_i)                                    score of slot i for the query h
    alpha_i = exp(e_i) / sum_k exp(e_k)                    weights, over real slots only
    z       = sum_i alpha_i s_i                            context

    additive    a(h, s) = v . tanh(h Wq + s Wm + b)        Bahdanau et al. 2015
    dot         a(h, s) = h . s                            Luong et al. 2015, section 3.1
    bilinear    a(h, s) = h W s                            Luong et al. 2015, "general"

The part of a score that depends on the memory alone is the slot's *key*: s Wm + b, s, or W s. It is the same
for all queries. Backward, with dz and dalpha the gradients that reach the context and the weights:

    dalpha_i += dz . s_i          ds_i += alpha_i dz       de_i = alpha_i (dalpha_i - sum_k alpha_k dalpha_k)
    additive       dkey_i = de_i v * (1 - u_i^2)         d(h Wq) = sum_i dkey_i         dv = sum_i de_i u_i
                   with u_i = tanh(h Wq + key_i)
    dot, bilinear  dkey_i = de_i h                         dh = sum_i de_i key_i

Shapes: query (N, H), memory (N, L, C), Wq (H, A), Wm (C, A), b (A,), v (A,), W (H, C). ``params`` is a dict
of the parameters. ``mask`` (N, L) is 1 for real slots. The context of a query without real slots is 0.
"""

import numpy as np

from rnnlab.plain.activation import sigmoid


def attention_keys_forward(memory, params, *, score="additive"):
    """memory (N, L, C) -> keys (N, L, A), or (N, L, H)."""
    if score == "additive":
        keys = memory @ params["Wm"] + params["b"]
    else:
        keys = memory if score == "dot" else memory @ params["W"].T
    return keys, (memory, params, score)


def attention_keys_backward(dkeys, cache):
    """dkeys -> dmemory, dparams."""
    memory, params, score = cache
    if score == "additive":
        dWm = np.einsum("nlc,nla->ca", memory, dkeys)
        return dkeys @ params["Wm"].T, {"Wm": dWm, "b": dkeys.sum(axis=(0, 1))}
    if score == "bilinear":
        return dkeys @ params["W"], {"W": np.einsum("nlh,nlc->hc", dkeys, memory)}
    return dkeys, {}


def attention_step_forward(query, keys, memory, params, *, score="additive", mask=None):
    """query (N, H) -> context (N, C), weights (N, L)."""
    mask = np.ones(memory.shape[:2], bool) if mask is None else np.asarray(mask, bool)
    u = np.tanh((query @ params["Wq"])[:, None] + keys) if score == "additive" else None
    e = np.einsum("nlh,nh->nl", keys, query) if u is None else u @ params["v"]
    largest = e.max(axis=1, keepdims=True, where=mask, initial=-1e300)
    exp_e = np.exp(e - largest, where=mask, out=np.zeros(e.shape))
    weights = exp_e / np.maximum(exp_e.sum(axis=1, keepdims=True), 1)  # the sum is at least 1, or exactly 0
    context = np.einsum("nl,nlc->nc", weights, memory)
    return context, weights, (query, keys, memory, params, u, weights)


def attention_step_backward(dcontext, cache, *, dweights=None):
    """dcontext (N, C) -> dquery, dkeys, dmemory (through the weighted sum alone), dparams."""
    query, keys, memory, params, u, weights = cache
    dalpha = np.einsum("nc,nlc->nl", dcontext, memory) + (0 if dweights is None else dweights)
    dmemory = weights[:, :, None] * dcontext[:, None]
    de = weights * (dalpha - (weights * dalpha).sum(axis=1, keepdims=True))
    if u is None:
        return np.einsum("nl,nlh->nh", de, keys), de[:, :, None] * query[:, None], dmemory, {}
    dkeys = de[:, :, None] * params["v"] * (1 - u**2)
    dprojected = dkeys.sum(axis=1)
    dparams = {"Wq": query.T @ dprojected, "v": np.einsum("nl,nla->a", de, u)}
    return dprojected @ params["Wq"].T, dkeys, dmemory, dparams


def attend_forward(query, memory, params, *, score="additive", mask=None):
    """Keys and attention together: query (N, H), memory (N, L, C) -> context (N, C), weights (N, L)."""
    keys, keys_cache = attention_keys_forward(memory, params, score=score)
    context, weights, cache = attention_step_forward(query, keys, memory, params, score=score, mask=mask)
    return context, weights, (keys_cache, cache)


def attend_backward(dcontext, cache, *, dweights=None):
    """dcontext (N, C) -> dquery, dmemory, dparams."""
    keys_cache, step_cache = cache
    dquery, dkeys, dmemory, dparams = attention_step_backward(dcontext, step_cache, dweights=dweights)
    dmemory_of_keys, dparams_of_keys = attention_keys_backward(dkeys, keys_cache)
    return dquery, dmemory + dmemory_of_keys, dparams | dparams_of_keys


def selector_forward(context, h, w, b):
    """beta * context, beta = sigmoid(h . w + b) (Xu et al. 2015, section 4.2.1): context (N, C), h (N, H)."""
    beta = sigmoid(h @ w[:, None] + b)
    return beta * context, (context, h, w, beta)


def selector_backward(dscaled, cache):
    """dscaled (N, C) -> dcontext, dh, dw, db."""
    context, h, w, beta = cache
    da = (dscaled * context).sum(axis=1, keepdims=True) * beta * (1 - beta)
    return dscaled * beta, da * w, h.T @ da[:, 0], da.sum(axis=0)


def doubly_stochastic_loss(weights, lengths=None, *, memory_mask=None):
    """1/N sum_n sum_i (1 - sum_t alpha_nti)^2, over real steps and slots (Xu et al. 2015, eq. 14).

    weights (N, T, L) -> loss, dweights.
    """
    N, T, L = weights.shape
    m = np.ones((N, T)) if lengths is None else np.arange(T) < np.asarray(lengths)[:, None]
    counts = np.ones((N, L)) if memory_mask is None else memory_mask
    missing = (1 - np.einsum("nt,ntl->nl", m, weights)) * counts * m.any(axis=1)[:, None]
    return (missing**2).sum() / N, -2 / N * missing[:, None] * m[:, :, None]
