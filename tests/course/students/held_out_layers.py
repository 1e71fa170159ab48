"""Held-out mistakes in the other layers, written without knowledge of the edits that a diagnosis tries."""

from __future__ import annotations

from .mistake import AVERAGED, TRANSPOSED, either, planted

_EMBEDDING = """
import numpy as np


def word_embedding_forward(x, W):
    out = W[x, :]
    cache = (x, W)
    return out, cache


def word_embedding_backward(dout, cache):
    x, W = cache
    dW = np.zeros_like(W)
    N, T, D = dout.shape
    for n in range(N):
        for t in range(T):
            dW[x[n, t]] += dout[n, t]
    return dW
"""

_AFFINE = """
import numpy as np


def affine_forward(x, w, b):
    rows = x.reshape(x.shape[0], -1)
    out = rows.dot(w) + b
    return out, (x, w, b)


def affine_backward(dout, cache):
    x, w, b = cache
    rows = x.reshape(x.shape[0], -1)
    dx = dout.dot(w.T).reshape(x.shape)
    dw = rows.T.dot(dout)
    db = np.sum(dout, axis=0)
    return dx, dw, db
"""

_TEMPORAL_AFFINE = """
import numpy as np


def temporal_affine_forward(x, w, b):
    N, T, D = x.shape
    M = b.shape[0]
    out = x.reshape(N * T, D).dot(w).reshape(N, T, M) + b
    return out, (x, w, b)


def temporal_affine_backward(dout, cache):
    x, w, b = cache
    N, T, D = x.shape
    M = b.shape[0]
    dx = dout.reshape(N * T, M).dot(w.T).reshape(N, T, D)
    dw = dout.reshape(N * T, M).T.dot(x.reshape(N * T, D)).T
    db = dout.sum(axis=(0, 1))
    return dx, dw, db
"""

_SOFTMAX = """
import numpy as np


def softmax_loss(x, y):
    shifted = x - np.max(x, axis=1, keepdims=True)
    exps = np.exp(shifted)
    probs = exps / np.sum(exps, axis=1, keepdims=True)
    N = x.shape[0]
    loss = -np.mean(np.log(probs[np.arange(N), y]))
    dx = probs.copy()
    dx[np.arange(N), y] -= 1
    dx /= N
    return loss, dx
"""

_TEMPORAL_SOFTMAX = """
import numpy as np


def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    x_flat = x.reshape(N * T, V)
    y_flat = y.reshape(N * T)
    mask_flat = mask.reshape(N * T)
    probs = np.exp(x_flat - np.max(x_flat, axis=1, keepdims=True))
    probs /= np.sum(probs, axis=1, keepdims=True)
    loss = -np.sum(mask_flat * np.log(probs[np.arange(N * T), y_flat])) / N
    dx_flat = probs.copy()
    dx_flat[np.arange(N * T), y_flat] -= 1
    dx_flat /= N
    dx_flat *= mask_flat[:, None]
    return loss, dx_flat.reshape(N, T, V)
"""

_KEYS = """
import numpy as np


def attention_keys_forward(memory, params):
    return memory.dot(params["Wm"]) + params["b"], (memory, params)


def attention_keys_backward(dkeys, cache):
    memory, params = cache
    dmemory = dkeys.dot(params["Wm"].T)
    dWm = np.einsum("nlc,nla->ca", memory, dkeys)
    db = dkeys.sum(axis=(0, 1))
    return dmemory, {"Wm": dWm, "b": db}

"""

_ATTENTION_STEP = """
import numpy as np


def attention_step_forward(query, keys, memory, params):
    u = np.tanh(query.dot(params["Wq"])[:, None, :] + keys)
    e = u.dot(params["v"])
    e = np.exp(e - e.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    context = np.sum(weights[:, :, None] * memory, axis=1)
    return context, weights, (query, keys, memory, params, u, weights)


def attention_step_backward(dcontext, cache):
    query, keys, memory, params, u, weights = cache
    dweights = np.sum(dcontext[:, None, :] * memory, axis=2)
    dmemory = weights[:, :, None] * dcontext[:, None, :]
    de = weights * (dweights - np.sum(weights * dweights, axis=1, keepdims=True))
    du = de[:, :, None] * params["v"]
    dkeys = du * (1 - u ** 2)
    dprojected = np.sum(dkeys, axis=1)
    dquery = dprojected.dot(params["Wq"].T)
    dWq = query.T.dot(dprojected)
    dv = np.sum(de[:, :, None] * u, axis=(0, 1))
    return dquery, dkeys, dmemory, {"Wq": dWq, "v": dv}

"""

_ATTEND = (
    _KEYS
    + _ATTENTION_STEP
    + """
def attend_forward(query, memory, params):
    keys, keys_cache = attention_keys_forward(memory, params)
    context, weights, step_cache = attention_step_forward(query, keys, memory, params)
    return context, weights, (keys_cache, step_cache)


def attend_backward(dcontext, cache):
    keys_cache, step_cache = cache
    dquery, dkeys, dmemory, dparams = attention_step_backward(dcontext, step_cache)
    dmemory_keys, dparams_keys = attention_keys_backward(dkeys, keys_cache)
    dmemory = dmemory + dmemory_keys
    dparams.update(dparams_keys)
    return dquery, dmemory, dparams

"""
)

_SELECTOR = """
import numpy as np


def selector_forward(context, h, w, b):
    beta = 1 / (1 + np.exp(-(h.dot(w) + b)))[:, None]
    return beta * context, (context, h, w, beta)


def selector_backward(dscaled, cache):
    context, h, w, beta = cache
    dcontext = dscaled * beta
    dbeta = np.sum(dscaled * context, axis=1, keepdims=True)
    da = dbeta * beta * (1 - beta)
    dh = da * w
    dw = np.sum(h * da, axis=0)
    db = da.sum(axis=0)
    return dcontext, dh, dw, db
"""

_DOUBLY_STOCHASTIC = """
import numpy as np


def doubly_stochastic_loss(weights, lengths=None):
    N, T, L = weights.shape
    real = np.ones((N, T)) if lengths is None else np.arange(T) < np.asarray(lengths)[:, None]
    weights = weights * real[:, :, None]
    missing = 1 - weights.sum(axis=1)
    loss = np.sum(missing ** 2) / N
    dmissing = 2 * missing / N
    dweights = -np.repeat(dmissing[:, None, :], T, axis=1)
    return loss, dweights * real[:, :, None]
"""

_TARGET_ATTENTION = (
    _ATTEND
    + """
def target_attention_forward(h, h0, params):
    N, T, H = h.shape
    contexts, weights, caches = np.zeros((N, T, H)), np.zeros((N, T, T)), []
    for t in range(1, T):
        c, w, cache = attend_forward(h[:, t - 1], h[:, :t], params)
        contexts[:, t] = c
        weights[:, t, :t] = w
        caches.append(cache)
    return contexts, weights, (h0, params, caches)


def target_attention_backward(dcontexts, cache):
    h0, params, caches = cache
    dh = np.zeros_like(dcontexts)
    dparams = {name: np.zeros_like(param) for name, param in params.items()}
    for t in range(1, dcontexts.shape[1]):
        dquery, dmemory, dstep = attend_backward(dcontexts[:, t], caches[t - 1])
        dh[:, :t] += dmemory
        dh[:, t - 1] += dquery
        for name in dstep:
            dparams[name] += dstep[name]
    return dh, np.zeros_like(h0), dparams
"""
)

_ARNET = """
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def arnet_forward(h, h0, params):
    N, T, H = h.shape
    R = params["Wh"].shape[0]
    state, cell = np.zeros((N, R)), np.zeros((N, R))
    loss, steps = 0.0, []
    for t in range(T):
        a = h[:, t].dot(params["Wx"]) + state.dot(params["Wh"]) + params["b"]
        i, f, o, g = sigmoid(a[:, :R]), sigmoid(a[:, R:2*R]), sigmoid(a[:, 2*R:3*R]), np.tanh(a[:, 3*R:])
        prev_state, prev_cell = state, cell
        cell = f * prev_cell + i * g
        state = o * np.tanh(cell)
        target = h0 if t == 0 else h[:, t - 1]
        error = state.dot(params["W"]) + params["b_out"] - target
        loss += np.sum(error ** 2) / N
        steps.append((prev_state, prev_cell, i, f, o, g, cell, state, error))
    return loss, (h, params, steps)


def arnet_backward(dloss, cache):
    h, params, steps = cache
    N, T, H = h.shape
    R = params["Wh"].shape[0]
    dh, dh0 = np.zeros_like(h), np.zeros((N, H))
    dparams = {name: np.zeros_like(param) for name, param in params.items()}
    dstate, dcell = np.zeros((N, R)), np.zeros((N, R))
    for t in reversed(range(T)):
        prev_state, prev_cell, i, f, o, g, cell, state, error = steps[t]
        derror = 2 * error * dloss / N
        dparams["W"] += state.T.dot(derror)
        dparams["b_out"] += derror.sum(axis=0)
        dtarget = -derror
        if t == 0:
            dh0 += dtarget
        else:
            dh[:, t - 1] += dtarget
        dstate = dstate + derror.dot(params["W"].T)
        dcell = dcell + dstate * o * (1 - np.tanh(cell) ** 2)
        da = np.hstack((
            dcell * g * i * (1 - i),
            dcell * prev_cell * f * (1 - f),
            dstate * np.tanh(cell) * o * (1 - o),
            dcell * i * (1 - g ** 2),
        ))
        dcell = dcell * f
        dstate = da.dot(params["Wh"].T)
        dh[:, t] += da.dot(params["Wx"].T)
        dparams["Wx"] += h[:, t].T.dot(da)
        dparams["Wh"] += prev_state.T.dot(da)
        dparams["b"] += da.sum(axis=0)
    return dh, dh0, dparams
"""

_DISCRIMINATIVE = """
import numpy as np


def discriminative_forward(thoughts, words, params):
    scores = thoughts.dot(params["W"])
    best = scores.argmax(axis=1)
    s = scores.max(axis=1)
    N, K = s.shape
    loss, ds = 0.0, np.zeros((N, K))
    for n in range(N):
        inside = np.zeros(K, dtype=bool)
        inside[words[n][words[n] >= 0]] = True
        for j in np.flatnonzero(inside):
            for i in np.flatnonzero(~inside):
                margin = 1 - s[n, j] + s[n, i]
                if margin > 0:
                    loss += margin / N
                    ds[n, j] -= 1 / N
                    ds[n, i] += 1 / N
    return loss, (thoughts, params, best, ds)


def discriminative_backward(dloss, cache):
    thoughts, params, best, ds = cache
    dthoughts, dW = np.zeros_like(thoughts), np.zeros_like(params["W"])
    for n in range(len(ds)):
        for k in range(ds.shape[1]):
            slot = best[n, k]
            dthoughts[n, slot] += dloss * ds[n, k] * params["W"][:, k]
            dW[:, k] += dloss * ds[n, k] * thoughts[n, slot]
    return dthoughts, {"W": dW}
"""

HELD_OUT = [
    planted(
        "held_out_embedding_fancy_index_adds_once",
        "word_embedding",
        _EMBEDDING,
        {"    for n in range(N):\n        for t in range(T):\n            dW[x[n, t]] += dout[n, t]\n":
         "    dW[x] += dout\n"},
        either("repeated|more than once|again|occurs|several|twice|+=|np.add.at|same token|accumulated|last"),
        "overwritten",
    ),
    planted(
        "held_out_embedding_gradient_divided_by_n",
        "word_embedding",
        _EMBEDDING,
        {"+= dout[n, t]": "+= dout[n, t] / N"},
        either("dW", AVERAGED),
        "wrong scale",
    ),
    planted(
        "held_out_affine_dx_not_reshaped",
        "affine",
        _AFFINE,
        {"dout.dot(w.T).reshape(x.shape)": "dout.dot(w.T)"},
        either("dx", "shape|reshape|reshaped"),
        "wrong shape",
    ),
    planted(
        "held_out_affine_db_is_a_mean",
        "affine",
        _AFFINE,
        {"db = np.sum(dout, axis=0)": "db = dout.mean(axis=0)"},
        either("db", AVERAGED),
        "wrong scale",
    ),
    planted(
        "held_out_temporal_affine_db_over_the_batch_alone",
        "temporal_affine",
        _TEMPORAL_AFFINE,
        {"dout.sum(axis=(0, 1))": "dout.sum(axis=0)"},
        either("db", "time|step|steps"),
        "wrong shape",
    ),
    planted(
        "held_out_temporal_affine_dw_not_transposed_back",
        "temporal_affine",
        _TEMPORAL_AFFINE,
        {".T.dot(x.reshape(N * T, D)).T": ".T.dot(x.reshape(N * T, D))"},
        either("dw", TRANSPOSED),
        "transposed",
    ),
    planted(
        "held_out_softmax_gradient_not_divided",
        "softmax_loss",
        _SOFTMAX,
        {"    dx /= N\n    return": "    return"},
        either("dx", "N|divided|mean|average|averaged|M|samples"),
        "wrong scale",
    ),
    planted(
        "held_out_softmax_normalised_over_all_scores",
        "softmax_loss",
        _SOFTMAX,
        {"np.sum(exps, axis=1, keepdims=True)": "np.sum(exps)"},
        either("sum|summed|axis|normalised|normalized|rows|classes"),
        "wrong sum",
    ),
    planted(
        "held_out_softmax_without_minus_one",
        "softmax_loss",
        _SOFTMAX,
        {"    dx[np.arange(N), y] -= 1\n    dx /= N": "    dx /= N"},
        either("dx", "q|y|onehot|one-hot|- 1|true class|label|labels|right class"),
        "missing term",
    ),
    planted(
        "held_out_temporal_softmax_gradient_without_mask",
        "temporal_softmax_loss",
        _TEMPORAL_SOFTMAX,
        {"    dx_flat *= mask_flat[:, None]\n    return": "    return"},
        either("dx", "mask|padding|real"),
        "missing factor",
    ),
    planted(
        "held_out_temporal_softmax_loss_without_mask",
        "temporal_softmax_loss",
        _TEMPORAL_SOFTMAX,
        {"np.sum(mask_flat * np.log(": "np.sum(np.log("},
        either("loss", "mask|padding|real"),
        "missing factor",
    ),
    planted(
        "held_out_temporal_softmax_mean_over_tokens",
        "temporal_softmax_loss",
        _TEMPORAL_SOFTMAX,
        {"y_flat])) / N\n": "y_flat])) / (N * T)\n", "dx_flat /= N\n": "dx_flat /= N * T\n"},
        either("divided|mean|average|averaged|N", "T|steps|tokens|tokens_per_sequence"),
        "wrong scale",
    ),
    planted(
        "held_out_temporal_softmax_mean_over_real_tokens",
        "temporal_softmax_loss",
        _TEMPORAL_SOFTMAX,
        {"y_flat])) / N\n": "y_flat])) / mask.sum()\n", "dx_flat /= N\n": "dx_flat /= mask.sum()\n"},
        either("mask|tokens|real|steps", "mean|average|averaged|divided|tokens_per_sequence"),
        "wrong scale",
    ),
    planted(
        "held_out_attention_step_softmax_over_the_batch",
        "attention_step",
        _ATTENTION_STEP,
        {"e / e.sum(axis=1, keepdims=True)": "e / e.sum(axis=0, keepdims=True)"},
        either("weights|exp_e|e", "axis|sum|summed|batch|slots"),
        "wrong sum",
    ),
    planted(
        "held_out_attention_step_diagonal_of_the_softmax",
        "attention_step",
        _ATTENTION_STEP,
        {"weights * (dweights - np.sum(weights * dweights, axis=1, keepdims=True))":
         "weights * (1 - weights) * dweights"},
        either("de"),
        "wrong derivative",
    ),
    planted(
        "held_out_attention_step_tanh_forgotten",
        "attention_step",
        _ATTENTION_STEP,
        {"dkeys = du * (1 - u ** 2)": "dkeys = du"},
        either("dkeys", "1 - u**2|u|tanh"),
        "missing factor",
    ),
    planted(
        "held_out_attend_memory_without_keys",
        "attend",
        _ATTEND,
        {"    dmemory = dmemory + dmemory_keys\n    dparams.update": "    dparams.update"},
        either("dmemory", "dmemory_of_keys|keys"),
        "missing term",
    ),
    planted(
        "held_out_selector_half_of_the_sigmoid",
        "selector",
        _SELECTOR,
        {"da = dbeta * beta * (1 - beta)": "da = dbeta * (1 - beta)"},
        either("da", "beta"),
        "missing factor",
    ),
    planted(
        "held_out_doubly_stochastic_sum_over_slots",
        "doubly_stochastic_loss",
        _DOUBLY_STOCHASTIC,
        {"weights.sum(axis=1)": "weights.sum(axis=2)",
         "dmissing[:, None, :], T, axis=1": "dmissing[:, :, None], L, axis=2"},
        either("missing|weights|loss|sum", "axis|time|steps|slots|T|L|regions"),
        "wrong sum",
    ),
    planted(
        "held_out_target_attention_query_without_gradient",
        "target_attention",
        _TARGET_ATTENTION,
        {"        dh[:, t - 1] += dquery\n        for": "        for"},
        either("dquery|query"),
        "missing term",
    ),
    planted(
        "held_out_arnet_target_is_a_constant",
        "arnet",
        _ARNET,
        {"        dtarget = -derror\n": "        dtarget = 0 * derror\n"},
        either("target|de|dh|dh0", "target|targets|lacks|-de|de|constant|missing"),
        "missing term",
    ),
    planted(
        "held_out_discriminative_mean_over_thoughts",
        "discriminative",
        _DISCRIMINATIVE,
        {"s = scores.max(axis=1)": "s = scores.mean(axis=1)"},
        either("max|mean|s", "mean|average|averaged|max"),
        "wrong forward",
    ),
]  # fmt: skip
