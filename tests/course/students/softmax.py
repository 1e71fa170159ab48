"""Mistakes in the softmax losses."""

from __future__ import annotations

from .mistake import AVERAGED, SIGN, WRITTEN, Mistake, either

LABEL = "q|y|label|labels|target|targets|onehot|one-hot"
CLASSES = "axis|V|classes|batch|rows|softmax|scores"

MISTAKES = [
    Mistake(
        "softmax_loss_dx_not_averaged",
        "softmax_loss",
        """
import numpy as np

def softmax_loss(x, y):
    N = x.shape[0]
    shifted = x - np.max(x, axis=1, keepdims=True)
    probs = np.exp(shifted) / np.sum(np.exp(shifted), axis=1, keepdims=True)
    loss = -np.sum(np.log(probs[np.arange(N), y])) / N
    dx = probs.copy()
    dx[np.arange(N), y] -= 1
    return loss, dx
""",
        either("dx", AVERAGED + "|M"),
        "wrong scale",
        {"    return loss, dx\n": "    return loss, dx / N\n"},
    ),
    Mistake(
        "softmax_loss_dx_lacks_label",
        "softmax_loss",
        """
import numpy as np

def softmax_loss(x, y):
    e = np.exp(x)
    p = e / e.sum(axis=1)[:, None]
    loss = -np.log(p[range(len(y)), y]).mean()
    dx = p / len(y)
    return loss, dx
""",
        either("dx", LABEL),
        "missing term",
        {"dx = p / len(y)": "dx = (p - np.eye(x.shape[1])[y]) / len(y)"},
    ),
    Mistake(
        "softmax_loss_is_sum",
        "softmax_loss",
        """
import numpy as np

def softmax_loss(x, y):
    N, V = x.shape
    loss, dx = 0.0, np.zeros((N, V))
    for n in range(N):
        scores = x[n] - x[n].max()
        p = np.exp(scores) / np.exp(scores).sum()
        loss -= np.log(p[y[n]])
        dx[n] = p / N
        dx[n, y[n]] -= 1 / N
    return loss, dx
""",
        either("loss", AVERAGED + "|M|sum|summed"),
        "wrong scale",
        {"return loss, dx\n": "return loss / N, dx\n"},
    ),
    Mistake(
        "softmax_loss_over_batch_axis",
        "softmax_loss",
        """
import numpy as np

def softmax_loss(x, y):
    M = len(x)
    ex = np.exp(x - x.max())
    p = ex / ex.sum(axis=0, keepdims=True)
    loss = -np.log(p[np.arange(M), y]).sum() / M
    target = np.zeros_like(p)
    target[np.arange(M), y] = 1
    return loss, (p - target) / M
""",
        either("p|log_p|softmax|exp|sum|loss|summed", CLASSES),
        "wrong sum",
        {"ex.sum(axis=0, keepdims=True)": "ex.sum(axis=1, keepdims=True)"},
    ),
    Mistake(
        "softmax_loss_dx_has_wrong_sign",
        "softmax_loss",
        """
import numpy as np

def softmax_loss(x, y):
    lse = np.log(np.exp(x).sum(axis=1))
    picked = x[np.arange(len(y)), y]
    loss = np.mean(lse - picked)
    onehot = np.eye(x.shape[1])[y]
    dx = (onehot - np.exp(x - lse[:, None])) / len(y)
    return loss, dx
""",
        either("dx", SIGN),
        "wrong sign",
        {"(onehot - np.exp(x - lse[:, None]))": "(np.exp(x - lse[:, None]) - onehot)"},
    ),
    Mistake(
        "softmax_loss_has_wrong_sign",
        "softmax_loss",
        """
import numpy as np

def softmax_loss(x, y):
    rows = np.arange(x.shape[0])
    p = np.exp(x - x.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = np.log(p[rows, y]).mean()
    p[rows, y] -= 1
    return loss, p / x.shape[0]
""",
        either("loss", SIGN),
        "wrong sign",
        {"loss = np.log": "loss = -np.log"},
    ),
    Mistake(
        "softmax_loss_dx_subtracts_in_all_label_columns",
        "softmax_loss",
        """
import numpy as np

def softmax_loss(x, y):
    n = len(y)
    shifted = x - x.max(axis=1).reshape(-1, 1)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1)).reshape(-1, 1)
    loss = -log_probs[np.arange(n), y].sum() / n
    dx = np.exp(log_probs)
    dx[:, y] -= 1
    return loss, dx / n
""",
        either("dx", LABEL),
        "wrong variable",
        {"dx[:, y] -= 1": "dx[np.arange(n), y] -= 1"},
    ),
    Mistake(
        "softmax_loss_x_written_into",
        "softmax_loss",
        """
import numpy as np

def softmax_loss(x, y):
    N = x.shape[0]
    x -= np.max(x, axis=1, keepdims=True)
    probs = np.exp(x)
    probs /= np.sum(probs, axis=1, keepdims=True)
    loss = -np.sum(np.log(probs[np.arange(N), y])) / N
    probs[np.arange(N), y] -= 1
    return loss, probs / N
""",
        either("x", WRITTEN),
        "writes into an input",
        {"x -= np.max(x, axis=1, keepdims=True)": "x = x - np.max(x, axis=1, keepdims=True)"},
    ),
    Mistake(
        "temporal_softmax_loss_lacks_mask",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    x_flat, y_flat, mask_flat = x.reshape(N * T, V), y.reshape(N * T), mask.reshape(N * T)
    probs = np.exp(x_flat - np.max(x_flat, axis=1, keepdims=True))
    probs /= np.sum(probs, axis=1, keepdims=True)
    loss = -np.sum(np.log(probs[np.arange(N * T), y_flat])) / N
    dx_flat = probs.copy()
    dx_flat[np.arange(N * T), y_flat] -= 1
    dx_flat /= N
    dx_flat *= mask_flat[:, None]
    return loss, dx_flat.reshape(N, T, V)
""",
        either("loss", "mask|padding|real"),
        "missing factor",
        {"-np.sum(np.log(": "-np.sum(mask_flat * np.log("},
    ),
    Mistake(
        "temporal_softmax_dx_lacks_mask",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    loss, dx = 0, np.zeros_like(x)
    for t in range(T):
        e = np.exp(x[:, t])
        p = e / e.sum(axis=1, keepdims=True)
        picked = p[np.arange(N), y[:, t]]
        loss += (-np.log(picked) * mask[:, t]).sum() / N
        p[np.arange(N), y[:, t]] -= 1
        dx[:, t] = p / N
    return loss, dx
""",
        either("dx", "mask|padding|real"),
        "missing factor",
        {"dx[:, t] = p / N": "dx[:, t] = p / N * mask[:, t, None]"},
    ),
    Mistake(
        "temporal_softmax_ignores_mask",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    p = np.exp(x - x.max(axis=2, keepdims=True))
    p = p / p.sum(axis=2, keepdims=True)
    q = np.eye(V)[y]
    weight = np.ones((N, T)) / N
    loss = -(weight * np.log((p * q).sum(axis=2))).sum()
    return loss, weight[:, :, None] * (p - q)
""",
        either("mask|padding|real", "loss|dx|ignored|all|used|missing|lacks"),
        "missing factor",
        {"np.ones((N, T)) / N": "mask / N"},
    ),
    Mistake(
        "temporal_softmax_divided_by_all_steps",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    scale = 1.0 / (N * T)
    scores = x.reshape(-1, V)
    scores = scores - scores.max(axis=1)[:, np.newaxis]
    logp = scores - np.log(np.exp(scores).sum(axis=1))[:, np.newaxis]
    keep = mask.ravel().astype(float)
    loss = -scale * np.dot(keep, logp[np.arange(N * T), y.ravel()])
    d = np.exp(logp)
    d[np.arange(N * T), y.ravel()] -= 1
    return loss, (scale * d * keep[:, np.newaxis]).reshape(N, T, V)
""",
        either("loss|dx", "N|T|N * T|divided|steps"),
        "wrong scale",
        {"1.0 / (N * T)": "1.0 / N"},
    ),
    Mistake(
        "temporal_softmax_divided_by_real_tokens",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    count = mask.sum()
    rows = np.nonzero(mask)
    s = x[rows]
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    k = np.arange(len(s))
    loss = -np.log(p[k, y[rows]]).sum() / count
    p[k, y[rows]] -= 1
    dx = np.zeros((N, T, V))
    dx[rows] = p / count
    return loss, dx
""",
        either("loss|dx", "N|tokens|mask|divided|real|mean|averaged|sequences"),
        "wrong scale",
        {"count = mask.sum()": "count = N"},
    ),
    Mistake(
        "temporal_softmax_dx_lacks_label",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    dx = np.exp(x)
    dx /= dx.sum(axis=-1, keepdims=True)
    n, t = np.indices((N, T))
    loss = -(mask * np.log(dx[n, t, y])).sum() / N
    dx = dx * mask[..., None] / N
    return loss, dx
""",
        either("dx", LABEL),
        "missing term",
        {"    dx = dx * mask": "    dx[n, t, y] -= 1\n    dx = dx * mask"},
    ),
    Mistake(
        "temporal_softmax_dx_not_averaged",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    flat = x.reshape(N * T, V)
    logz = np.log(np.sum(np.exp(flat), axis=1))
    idx = np.arange(N * T)
    m = mask.reshape(N * T)
    loss = np.sum(m * (logz - flat[idx, y.reshape(-1)])) / N
    grad = np.exp(flat - logz[:, None])
    grad[idx, y.reshape(-1)] -= 1
    grad[~m] = 0
    return loss, grad.reshape(x.shape)
""",
        either("dx", AVERAGED),
        "wrong scale",
        {"grad.reshape(x.shape)\n": "grad.reshape(x.shape) / N\n"},
    ),
    Mistake(
        "temporal_softmax_over_time_axis",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    e = np.exp(x - np.max(x))
    p = e / np.sum(e, axis=1, keepdims=True)
    hot = (np.arange(V) == y[:, :, None])
    loss = -np.sum(np.log(p) * hot * mask[:, :, None]) / N
    dx = (p - hot) * mask[:, :, None] / N
    return loss, dx
""",
        either("p|log_p|softmax|exp|sum|loss|summed", CLASSES + "|time|steps"),
        "wrong sum",
        {"np.sum(e, axis=1, keepdims=True)": "np.sum(e, axis=2, keepdims=True)"},
    ),
    Mistake(
        "temporal_softmax_mask_multiplies_scores",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    keep = mask[:, :, None] * np.ones(V)
    s = x * keep
    s = s - s.max(axis=2, keepdims=True)
    logp = s - np.log(np.exp(s).sum(axis=2, keepdims=True))
    hot = np.zeros(x.shape)
    np.put_along_axis(hot, y[:, :, None], 1.0, axis=2)
    loss = -(logp * hot).sum() / N
    return loss, (np.exp(logp) - hot) * keep / N
""",
        either("loss", "mask|padding|real"),
        "wrong forward",
        {"-(logp * hot).sum()": "-(logp * hot * keep).sum()"},
    ),
    Mistake(
        "temporal_softmax_loss_of_last_step_only",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    loss, dx = 0.0, np.zeros((N, T, V))
    for t in range(T):
        p = np.exp(x[:, t] - x[:, t].max(axis=1, keepdims=True))
        p = p / p.sum(axis=1, keepdims=True)
        loss = 0.0
        for n in range(N):
            if mask[n, t]:
                loss -= np.log(p[n, y[n, t]]) / N
                dx[n, t] = p[n] / N
                dx[n, t, y[n, t]] -= 1 / N
    return loss, dx
""",
        either("loss", "steps|step|time|last|summed|sum|overwritten|T|added|accumulated"),
        "overwritten",
        {"        loss = 0.0\n        for": "        for"},
    ),
]
