"""Mistakes in additive attention: its keys, one query, and a decoder's attention to its own past."""

from __future__ import annotations

from .mistake import ACCUMULATED, BATCH, TRANSPOSED, WRITTEN, Mistake, either, planter

KEYS_FORWARD = """
import numpy as np

def attention_keys_forward(memory, params):
    N, L, C = memory.shape
    rows = memory.reshape(N * L, C)
    keys = rows.dot(params["Wm"]) + params["b"]
    return keys.reshape(N, L, -1), (memory, params["Wm"])
"""

STEP_FORWARD = """
import numpy as np

def attention_step_forward(query, keys, memory, params):
    q = query @ params["Wq"]
    act = np.tanh(keys + q[:, np.newaxis, :])
    scores = act.dot(params["v"])
    scores = scores - scores.max(axis=1, keepdims=True)
    alpha = np.exp(scores)
    alpha = alpha / alpha.sum(axis=1, keepdims=True)
    context = (alpha[:, :, np.newaxis] * memory).sum(axis=1)
    return context, alpha, dict(query=query, act=act, alpha=alpha, memory=memory, params=params)
"""

STEP_BACKWARD = """
def attention_step_backward(dcontext, cache):
    alpha, act, memory = cache["alpha"], cache["act"], cache["memory"]
    Wq, v = cache["params"]["Wq"], cache["params"]["v"]
    dmemory = alpha[:, :, None] * dcontext[:, None, :]
    dalpha = (memory * dcontext[:, None, :]).sum(axis=2)
    dscores = alpha * dalpha
    dscores = dscores - alpha * dscores.sum(axis=1, keepdims=True)
    dact = dscores[:, :, None] * v
    dv = (dscores[:, :, None] * act).sum(axis=(0, 1))
    dkeys = dact * (1 - act ** 2)
    dq = dkeys.sum(axis=1)
    dquery = dq.dot(Wq.T)
    return dquery, dkeys, dmemory, {"Wq": cache["query"].T.dot(dq), "v": dv}
"""

# The same attention for each step of a decoder over its own past.
TARGET_FORWARD = """
import numpy as np

def softmax(e):
    e = np.exp(e - e.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def target_attention_forward(h, h0, params):
    N, T, H = h.shape
    Wq, Wm, b, v = params["Wq"], params["Wm"], params["b"], params["v"]
    contexts, weights = np.zeros((N, T, H)), np.zeros((N, T, T))
    saved = []
    for t in range(1, T):
        query, past = h[:, t - 1], h[:, :t]
        u = np.tanh((query @ Wq)[:, None] + past @ Wm + b)
        alpha = softmax(u @ v)
        contexts[:, t] = np.einsum("nl,nlh->nh", alpha, past)
        weights[:, t, :t] = alpha
        saved.append((t, query, past, u, alpha))
    return contexts, weights, (h.shape, h0, params, saved)
"""

TARGET_BACKWARD = """
def target_attention_backward(dcontexts, cache):
    shape, h0, params, saved = cache
    dh = np.zeros(shape)
    grads = {name: np.zeros_like(value) for name, value in params.items()}
    for t, query, past, u, alpha in saved:
        dc = dcontexts[:, t]
        dalpha = np.einsum("nh,nlh->nl", dc, past)
        de = alpha * (dalpha - (alpha * dalpha).sum(axis=1, keepdims=True))
        dpre = de[:, :, None] * params["v"] * (1 - u ** 2)
        dq = dpre.sum(axis=1)
        dh[:, t - 1] += dq @ params["Wq"].T
        dh[:, :t] += alpha[:, :, None] * dc[:, None, :]
        dh[:, :t] += dpre @ params["Wm"].T
        grads["Wq"] += query.T @ dq
        grads["Wm"] += np.tensordot(past, dpre, axes=([0, 1], [0, 1]))
        grads["b"] += dpre.sum(axis=(0, 1))
        grads["v"] += np.einsum("nl,nla->a", de, u)
    return dh, np.zeros_like(h0), grads
"""


step = planter("attention_step", STEP_FORWARD + STEP_BACKWARD)
target = planter("target_attention", TARGET_FORWARD + TARGET_BACKWARD)

MISTAKES = [
    Mistake(
        "attention_keys_forward_lacks_b",
        "attention_keys",
        """
import numpy as np

def attention_keys_forward(memory, params):
    keys = np.einsum("nlc,ca->nla", memory, params["Wm"])
    return keys, (memory, params, "additive")
""",
        either("b|bias", "keys|forward|added|missing|lacks|left out"),
        "wrong forward",
        {'params["Wm"])\n': 'params["Wm"]) + params["b"]\n'},
    ),
    Mistake(
        "attention_keys_dmemory_lacks_transpose",
        "attention_keys",
        KEYS_FORWARD
        + """
def attention_keys_backward(dkeys, cache):
    memory, Wm = cache
    dmemory = dkeys.dot(Wm)
    dWm = np.tensordot(memory, dkeys, axes=([0, 1], [0, 1]))
    return dmemory, {"Wm": dWm, "b": dkeys.sum(axis=(0, 1))}
""",
        either("dmemory", TRANSPOSED + "|Wm.T"),
        "transposed",
        {"dkeys.dot(Wm)": "dkeys.dot(Wm.T)"},
        square=True,
    ),
    Mistake(
        "attention_keys_db_not_summed_over_slots",
        "attention_keys",
        KEYS_FORWARD
        + """
def attention_keys_backward(dkeys, cache):
    memory, Wm = cache
    C, A = Wm.shape
    grads = {"Wm": memory.reshape(-1, C).T @ dkeys.reshape(-1, A), "b": dkeys.sum(axis=0)}
    return dkeys @ Wm.T, grads
""",
        either("b|db", BATCH + "|shape|slots|L"),
        "wrong sum",
        {"dkeys.sum(axis=0)": "dkeys.sum(axis=0).sum(axis=0)"},
    ),
    Mistake(
        "attention_keys_dWm_overwritten",
        "attention_keys",
        KEYS_FORWARD
        + """
def attention_keys_backward(dkeys, cache):
    memory, Wm = cache
    dmemory, dWm, db = np.zeros(memory.shape), np.zeros(Wm.shape), np.zeros(Wm.shape[1])
    for l in range(memory.shape[1]):
        dmemory[:, l] = dkeys[:, l] @ Wm.T
        dWm = memory[:, l].T @ dkeys[:, l]
        db += dkeys[:, l].sum(axis=0)
    return dmemory, {"Wm": dWm, "b": db}
""",
        either("dWm|Wm", ACCUMULATED + "|slots|slot"),
        "overwritten",
        {"dWm = memory[:, l]": "dWm += memory[:, l]"},
    ),
    Mistake(
        "attention_step_softmax_over_batch",
        "attention_step",
        """
import numpy as np

def attention_step_forward(query, keys, memory, params):
    u = np.tanh(keys + (query @ params["Wq"]).reshape(len(query), 1, -1))
    e = np.exp(u @ params["v"])
    weights = e / e.sum(axis=0, keepdims=True)
    context = np.einsum("nl,nlc->nc", weights, memory)
    return context, weights, (query, keys, memory, params, u, weights)
""",
        either("weights|softmax|exp_e|sum", "axis|slots|batch|L"),
        "wrong sum",
        {"e.sum(axis=0, keepdims=True)": "e.sum(axis=1, keepdims=True)"},
    ),
    step(
        "de_has_sigmoid_derivative",
        "dscores = alpha * (1 - alpha) * dalpha\n",
        "dscores = alpha * dalpha\n    dscores = dscores - alpha * dscores.sum(axis=1, keepdims=True)\n",
        either("de", "softmax|dalpha|weights|sum"),
        "wrong derivative",
    ),
    step(
        "de_lacks_sum",
        "dscores = alpha * dalpha\n    dact",
        "dscores = alpha * dalpha\n"
        "    dscores = dscores - alpha * dscores.sum(axis=1, keepdims=True)\n    dact",
        either("de", "softmax|dalpha|weights|sum"),
        "missing term",
    ),
    step(
        "dkeys_lacks_tanh_derivative",
        "dkeys = dact\n",
        "dkeys = dact * (1 - act ** 2)\n",
        either("dkeys", "u|tanh|1 - u**2"),
        "missing factor",
    ),
    step(
        "dkeys_lacks_v",
        "dact = dscores[:, :, None]\n",
        "dact = dscores[:, :, None] * v\n",
        either("dkeys", "v"),
        "missing factor",
    ),
    step(
        "dmemory_lacks_weights",
        "dmemory = np.ones(memory.shape) * dcontext[:, None, :]",
        "dmemory = alpha[:, :, None] * dcontext[:, None, :]",
        either("dmemory", "weights|alpha"),
        "missing factor",
    ),
    step(
        "dquery_of_last_slot_only",
        "dq = dkeys[:, -1]\n",
        "dq = dkeys.sum(axis=1)\n",
        either("dquery|dprojected|Wq|dWq", "slots|slot|sum|summed|dkeys|L"),
        "wrong sum",
    ),
    step(
        "dv_reads_sum_before_tanh",
        "dv = (dscores[:, :, None] * np.arctanh(act))",
        "dv = (dscores[:, :, None] * act)",
        either("v|dv", "u|tanh"),
        "wrong derivative",
    ),
    step(
        "forward_context_is_mean",
        "context = (alpha[:, :, np.newaxis] * memory).mean(axis=1)",
        "context = (alpha[:, :, np.newaxis] * memory).sum(axis=1)",
        either("context", "L|mean|average|averaged|sum|summed|slots|divided"),
        "wrong scale",
    ),
    Mistake(
        "attention_step_forward_ignores_mask",
        "attention_step",
        """
import numpy as np

def attention_step_forward(query, keys, memory, params, *, score="additive", mask=None):
    mask = np.ones(keys.shape[:2]) if mask is None else np.array(mask, float)
    u = np.tanh(np.dot(query, params["Wq"])[:, None, :] + keys)
    weights = np.exp(np.dot(u, params["v"]))
    real = np.ones(mask.shape)
    weights = weights * real / np.maximum(np.sum(weights * real, axis=1, keepdims=True), 1e-300)
    context = np.sum(weights[..., None] * memory, axis=1)
    return context, weights, (query, keys, memory, params, u, weights)
""",
        either("mask|real", "weights|ignored|slots|softmax|context|exp_e"),
        "missing factor",
        {"real = np.ones(mask.shape)": "real = mask"},
    ),
    Mistake(
        "attention_step_dweights_ignored",
        "attention_step",
        STEP_FORWARD
        + """
def attention_step_backward(dcontext, cache, *, dweights=None):
    query, u, a, memory, params = cache.values()
    da = np.matmul(memory, dcontext[:, :, None])[:, :, 0]
    de = a * (da - np.sum(a * da, axis=1, keepdims=True))
    dkeys = np.einsum("nl,a,nla->nla", de, params["v"], 1 - u * u)
    dproj = dkeys.sum(axis=1)
    grads = {"Wq": query.T @ dproj, "v": np.tensordot(de, u, axes=([0, 1], [0, 1]))}
    return dproj @ params["Wq"].T, dkeys, np.einsum("nl,nc->nlc", a, dcontext), grads
""",
        either("dweights", "dalpha|ignored|added|lacks|missing|used|reach|de"),
        "missing term",
        {"[:, :, 0]\n": "[:, :, 0] + (0 if dweights is None else dweights)\n"},
    ),
    Mistake(
        "attention_step_forward_keys_written_into",
        "attention_step",
        """
import numpy as np

def attention_step_forward(query, keys, memory, params):
    pre = keys
    pre += np.dot(query, params["Wq"])[:, None, :]
    u = np.tanh(pre)
    e = np.dot(u, params["v"])
    weights = np.exp(e) / np.exp(e).sum(axis=1).reshape(-1, 1)
    context = np.matmul(weights[:, None, :], memory).reshape(len(query), -1)
    return context, weights, (query, keys, memory, params, u, weights)
""",
        either("keys", WRITTEN),
        "writes into an input",
        {"pre = keys\n": "pre = keys.copy()\n"},
    ),
    target(
        "query_of_same_step",
        "query, past = h[:, t], h[:, :t]",
        "query, past = h[:, t - 1], h[:, :t]",
        either("query", "step|t - 1|previous|h|time"),
        "wrong step",
    ),
    target(
        "dh_lacks_dquery",
        "dq = dpre.sum(axis=1)\n        dh[:, :t] += alpha",
        'dq = dpre.sum(axis=1)\n        dh[:, t - 1] += dq @ params["Wq"].T\n        dh[:, :t] += alpha',
        either("dh", "dquery|query"),
        "missing term",
    ),
    target(
        "dh_overwritten",
        "dh[:, :t] = alpha[:, :, None]",
        "dh[:, :t] += alpha[:, :, None]",
        either("dh", ACCUMULATED + "|dmemory|dquery|overwrites"),
        "overwritten",
    ),
    target(
        "dh_lacks_share_of_keys",
        '        grads["Wq"] += query',
        '        dh[:, :t] += dpre @ params["Wm"].T\n        grads["Wq"] += query',
        either("dh|dmemory", "dkeys|keys|Wm"),
        "missing term",
    ),
    target(
        "dWm_overwritten",
        'grads["Wm"] = np',
        'grads["Wm"] += np',
        either("Wm|dWm|dparams", ACCUMULATED),
        "overwritten",
    ),
]
