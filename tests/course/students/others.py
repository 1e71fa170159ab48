"""Mistakes in the selector, the doubly stochastic loss, ARNet and discriminative supervision."""

from __future__ import annotations

from .lstm_styles import ARRAYS, ARRAYS_BACKWARD
from .mistake import AVERAGED, BATCH, HALF, SIGN, TWICE, Mistake, either, planted

SELECTOR = """
import numpy as np

def selector_forward(context, h, w, b):
    score = h.dot(w) + b
    gate = 1 / (1 + np.exp(-score))
    return context * gate[:, None], {"context": context, "h": h, "w": w, "gate": gate}
"""

SELECTOR_BACKWARD = """
def selector_backward(dscaled, cache):
    context, h, w, gate = cache.values()
    dcontext = dscaled * gate[:, None]
    dgate = np.sum(dscaled * context, axis=1)
    dscore = dgate * gate * (1 - gate)
    return dcontext, np.outer(dscore, w), dscore.dot(h), np.array([dscore.sum()])
"""

DOUBLY = """
import numpy as np

def doubly_stochastic_loss(weights, lengths=None):
    N, T, L = weights.shape
    lengths = [T] * N if lengths is None else lengths
    loss, dweights = 0.0, np.zeros(weights.shape)
    for n in range(N):
        real = int(lengths[n])
        rest = 1 - weights[n, :real].sum(axis=0)
        loss += (rest ** 2).sum() / N
        dweights[n, :real] = -2 * rest / N
    return loss, dweights
"""

ARNET = (
    ARRAYS
    + ARRAYS_BACKWARD
    + """
def arnet_forward(h, h0, params):
    N, T, H = h.shape
    R = params["Wh"].shape[0]
    rec, lstm_cache = lstm_forward(h, np.zeros((N, R)), params["Wx"], params["Wh"], params["b"])
    guess = rec.dot(params["W"]) + params["b_out"]
    err = np.zeros((N, T, H))
    err[:, 1:] = guess[:, 1:] - h[:, :-1]
    if h0 is not None:
        err[:, 0] = guess[:, 0] - h0
    loss = np.sum(err ** 2) / N
    return loss, (h0, rec, err, params, lstm_cache)

def arnet_backward(dloss, cache):
    h0, rec, err, params, lstm_cache = cache
    N, T, H = err.shape
    d = dloss * 2 * err / N
    drec = d.dot(params["W"].T)
    dh, _, dWx, dWh, db = lstm_backward(drec, lstm_cache)
    dh[:, :-1] -= d[:, 1:]
    dW = rec.reshape(N * T, -1).T.dot(d.reshape(N * T, H))
    grads = {"Wx": dWx, "Wh": dWh, "b": db, "W": dW, "b_out": d.sum(axis=(0, 1))}
    dh0 = None if h0 is None else -d[:, 0]
    return dh, dh0, grads
"""
)

DISCRIMINATIVE = """
import numpy as np

def discriminative_forward(thoughts, words, params):
    W = params["W"]
    N, L, H = thoughts.shape
    scores = thoughts.dot(W)
    best = scores.argmax(axis=1)
    s = scores.max(axis=1)
    loss, ds = 0.0, np.zeros(s.shape)
    for n in range(N):
        inside = np.zeros(s.shape[1], bool)
        inside[[w for w in words[n] if w >= 0]] = True
        margin = 1 - (s[n][inside][:, None] - s[n][~inside][None, :])
        active = margin > 0
        loss += margin[active].sum()
        ds[n, inside] = -active.sum(axis=1)
        ds[n, ~inside] = active.sum(axis=0)
    return loss / N, (thoughts, W, best, ds / N)

def discriminative_backward(dloss, cache):
    thoughts, W, best, ds = cache
    N, V = ds.shape
    ds = dloss * ds
    dthoughts, dW = np.zeros(thoughts.shape), np.zeros(W.shape)
    for n in range(N):
        for v in range(V):
            slot = best[n, v]
            dthoughts[n, slot] += ds[n, v] * W[:, v]
            dW[:, v] += ds[n, v] * thoughts[n, slot]
    return dthoughts, {"W": dW}
"""

SOURCES = {
    "selector": SELECTOR + SELECTOR_BACKWARD,
    "doubly_stochastic_loss": DOUBLY,
    "arnet": ARNET,
    "discriminative": DISCRIMINATIVE,
}


def mistake(
    exercise: str, name: str, wrong: str, right: str, expected: tuple[tuple[str, ...], ...], kind: str
) -> Mistake:
    """A mistake in one line of the source of the exercise."""
    return planted(f"{exercise}_{name}", exercise, SOURCES[exercise], {right: wrong}, expected, kind)


MISTAKES = [
    mistake(
        "selector",
        "da_lacks_sigmoid_derivative",
        "dscore = dgate\n",
        "dscore = dgate * gate * (1 - gate)\n",
        either("da", "beta|sigmoid|1 - beta"),
        "missing factor",
    ),
    mistake(
        "selector",
        "dcontext_lacks_beta",
        "dcontext = dscaled * 1\n",
        "dcontext = dscaled * gate[:, None]\n",
        either("dcontext", "beta"),
        "missing factor",
    ),
    mistake(
        "selector",
        "da_lacks_context",
        "dgate = np.sum(dscaled, axis=1)",
        "dgate = np.sum(dscaled * context, axis=1)",
        either("da", "context"),
        "missing factor",
    ),
    mistake(
        "selector",
        "db_not_summed_over_batch",
        "dscore.dot(h), dscore\n",
        "dscore.dot(h), np.array([dscore.sum()])\n",
        either("db", BATCH + "|shape"),
        "wrong sum",
    ),
    Mistake(
        "selector_forward_tanh_for_sigmoid",
        "selector",
        """
import numpy as np

def selector_forward(context, h, w, b):
    score = np.sum(h * w, axis=1, keepdims=True) + b
    beta = np.tanh(score)
    return beta * context, (context, h, w, beta)
""",
        either("beta", "sigmoid|tanh"),
        "wrong forward",
        {"np.tanh(score)": "1 / (1 + np.exp(-score))"},
    ),
    mistake(
        "doubly_stochastic_loss",
        "dweights_has_wrong_sign",
        "= 2 * rest / N",
        "= -2 * rest / N",
        either("dweights", SIGN),
        "wrong sign",
    ),
    mistake(
        "doubly_stochastic_loss",
        "dweights_lacks_factor_2",
        "= -rest / N",
        "= -2 * rest / N",
        either("dweights", HALF + "|2"),
        "missing factor",
    ),
    mistake(
        "doubly_stochastic_loss",
        "ignores_lengths",
        "real = T\n",
        "real = int(lengths[n])\n",
        either("lengths|padding|real|m|mask", "loss|dweights|missing|ignored|steps|weights|used|all"),
        "missing factor",
    ),
    Mistake(
        "doubly_stochastic_loss_summed_over_slots",
        "doubly_stochastic_loss",
        """
import numpy as np

def doubly_stochastic_loss(weights, lengths=None):
    N, T, L = weights.shape
    real = np.ones((N, T, 1)) if lengths is None else (np.arange(T) < np.reshape(lengths, (N, 1)))[:, :, None]
    w = weights * real
    gap = 1 - w.sum(axis=2, keepdims=True)
    loss = np.sum(gap ** 2) / N
    return loss, -2 / N * gap * real * np.ones(L)
""",
        either("missing|weights|sum|loss|summed", "axis|slots|steps|time|T|L"),
        "wrong sum",
        {"w.sum(axis=2, keepdims=True)": "w.sum(axis=1, keepdims=True)"},
    ),
    mistake(
        "doubly_stochastic_loss",
        "is_not_averaged",
        "loss += (rest ** 2).sum()\n",
        "loss += (rest ** 2).sum() / N\n",
        either("loss", AVERAGED),
        "wrong scale",
    ),
    mistake(
        "arnet",
        "target_is_constant",
        "    dW = rec",
        "    dh[:, :-1] -= d[:, 1:]\n    dW = rec",
        either("dh", "de|targets|target|constant"),
        "missing term",
    ),
    mistake(
        "arnet",
        "de_lacks_factor_2",
        "d = dloss * err / N",
        "d = dloss * 2 * err / N",
        either("de", HALF + "|2"),
        "missing factor",
    ),
    mistake(
        "arnet",
        "loss_averaged_over_steps",
        "loss = np.sum(err ** 2) / N / T",
        "loss = np.sum(err ** 2) / N",
        either("loss", "T|steps|mean|average|averaged|divided"),
        "wrong scale",
    ),
    mistake(
        "arnet",
        "target_is_state_of_same_step",
        "err[:, 1:] = guess[:, 1:] - h[:, 1:]",
        "err[:, 1:] = guess[:, 1:] - h[:, :-1]",
        either("targets|target|errors|loss", "h|step|previous|time|same"),
        "wrong step",
    ),
    mistake(
        "arnet",
        "forward_lacks_b_out",
        'guess = rec.dot(params["W"])\n',
        'guess = rec.dot(params["W"]) + params["b_out"]\n',
        either("b_out", "errors|loss|added|missing|lacks|left out|forward|read"),
        "wrong forward",
    ),
    mistake(
        "arnet",
        "dh0_has_wrong_sign",
        "else d[:, 0]",
        "else -d[:, 0]",
        either("dh0", SIGN),
        "wrong sign",
    ),
    mistake(
        "arnet",
        "dloss_ignored",
        "d = 2 * err / N",
        "d = dloss * 2 * err / N",
        either("dloss", "de|ignored|lacks|used|factor|missing"),
        "missing factor",
    ),
    mistake(
        "discriminative",
        "scores_are_means",
        "s = scores.mean(axis=1)",
        "s = scores.max(axis=1)",
        either("s|scores|loss", "max|maximum|mean|average"),
        "wrong forward",
    ),
    mistake(
        "discriminative",
        "loss_not_averaged",
        "return loss, (",
        "return loss / N, (",
        either("loss", AVERAGED),
        "wrong scale",
    ),
    mistake(
        "discriminative",
        "ds_of_absent_words_missing",
        "    return loss / N, (",
        "        ds[n, ~inside] = active.sum(axis=0)\n    return loss / N, (",
        either("ds|ds_i|dthoughts", "absent|i|s_i|ds_i|present|not in|other|+1|+ 1"),
        "missing term",
    ),
    mistake(
        "discriminative",
        "dloss_ignored",
        "ds = 1.0 * ds",
        "ds = dloss * ds",
        either("dloss", "ignored|lacks|used|factor|missing|dproducts|dthoughts"),
        "missing factor",
    ),
    mistake(
        "discriminative",
        "dW_reads_mean_of_thoughts",
        "ds[n, v] * thoughts[n].mean(axis=0)",
        "ds[n, v] * thoughts[n, slot]",
        either("W|dW", "slot|slots|max|maximum|mean|argmax|thoughts|average"),
        "wrong variable",
    ),
    mistake(
        "discriminative",
        "ds_doubled",
        "ds[n, inside] = -2 * active.sum(axis=1)",
        "ds[n, inside] = -active.sum(axis=1)",
        either("ds|s_j|ds_j|dthoughts", TWICE),
        "doubled",
    ),
]
