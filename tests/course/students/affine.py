"""Mistakes in the affine layers."""

from __future__ import annotations

from .mistake import ACCUMULATED, AVERAGED, BATCH, ORDER, OVER_STEPS, TRANSPOSED, WRITTEN, Mistake, either

MISTAKES = [
    Mistake(
        "affine_dx_not_reshaped",
        "affine",
        """
import numpy as np

def affine_forward(x, w, b):
    flat = x.reshape(x.shape[0], -1)
    return flat.dot(w) + b, (flat, x.shape, w)

def affine_backward(dout, cache):
    flat, shape, w = cache
    dx = dout.dot(w.T)
    return dx, flat.T.dot(dout), np.sum(dout, axis=0)
""",
        either("dx", "shape"),
        "wrong shape",
        {"dx = dout.dot(w.T)": "dx = dout.dot(w.T).reshape(shape)"},
    ),
    Mistake(
        "affine_dx_lacks_transpose",
        "affine",
        """
import numpy as np

def affine_backward(dout, cache):
    x, w = cache
    dx = np.dot(dout, w).reshape(x.shape)
    dw = np.dot(x.reshape(x.shape[0], -1).T, dout)
    return dx, dw, dout.sum(0)
""",
        either("dx", TRANSPOSED + "|w.T"),
        "transposed",
        {"np.dot(dout, w)": "np.dot(dout, w.T)"},
        square=True,
    ),
    Mistake(
        "affine_dw_transposed",
        "affine",
        """
import numpy as np

def affine_backward(dout, cache):
    x, w = cache
    rows = x.reshape((len(x), -1))
    dw = np.einsum("nm,nd->md", dout, rows)
    dx = np.einsum("nm,dm->nd", dout, w)
    return dx.reshape(x.shape), dw, np.einsum("nm->m", dout)
""",
        either("dw", TRANSPOSED + "|shape"),
        "transposed",
        {'"nm,nd->md"': '"nm,nd->dm"'},
    ),
    Mistake(
        "affine_db_is_mean",
        "affine",
        """
import numpy as np

def affine_forward(x, w, b):
    N = x.shape[0]
    out = b + np.matmul(np.reshape(x, (N, -1)), w)
    return out, {"x": x, "w": w}

def affine_backward(dout, cache):
    x, w = cache["x"], cache["w"]
    N = x.shape[0]
    dw = np.matmul(np.reshape(x, (N, -1)).T, dout)
    db = np.mean(dout, axis=0)
    return np.matmul(dout, w.T).reshape(x.shape), dw, db
""",
        either("db", AVERAGED),
        "wrong scale",
        {"np.mean(dout": "np.sum(dout"},
    ),
    Mistake(
        "affine_forward_lacks_b",
        "affine",
        """
import numpy as np

def affine_forward(x, w, b):
    D, M = w.shape
    out = np.zeros((len(x), M))
    for n in range(len(x)):
        out[n] = x[n].ravel() @ w
    return out, (x, w)
""",
        either("b|bias", "out|forward|added|missing|lacks|left out"),
        "wrong forward",
        {"x[n].ravel() @ w": "x[n].ravel() @ w + b"},
    ),
    Mistake(
        "affine_dw_and_db_swapped",
        "affine",
        """
import numpy as np

def affine_backward(dout, cache):
    x, w = cache
    X = x.reshape(len(x), len(w))
    db = np.ones(len(x)) @ dout
    dw = X.T @ dout
    dx = (w @ dout.T).T.reshape(x.shape)
    return dx, db, dw
""",
        either("dw", "db|" + ORDER),
        "order of results",
        {"return dx, db, dw": "return dx, dw, db"},
    ),
    Mistake(
        "temporal_affine_db_not_summed_over_steps",
        "temporal_affine",
        """
import numpy as np

def temporal_affine_forward(x, w, b):
    out = np.tensordot(x, w, axes=1) + b
    return out, (x, w)

def temporal_affine_backward(dout, cache):
    x, w = cache
    dx = np.tensordot(dout, w.T, axes=1)
    dw = np.tensordot(x, dout, axes=([0, 1], [0, 1]))
    db = dout.sum(axis=0)
    return dx, dw, db
""",
        either("db", "shape|time|steps|axis|axes|T"),
        "wrong sum",
        {"dout.sum(axis=0)": "dout.sum(axis=(0, 1))"},
    ),
    Mistake(
        "temporal_affine_db_is_mean",
        "temporal_affine",
        """
import numpy as np

def temporal_affine_forward(x, w, b):
    return x @ w + b, (x, w, b)

def temporal_affine_backward(dout, cache):
    x, w, b = cache
    flat_dout, flat_x = dout.reshape(-1, dout.shape[-1]), x.reshape(-1, x.shape[-1])
    return dout @ w.T, flat_x.T @ flat_dout, flat_dout.mean(axis=0)
""",
        either("db", AVERAGED + "|T|steps|time"),
        "wrong scale",
        {"flat_dout.mean(": "flat_dout.sum("},
    ),
    Mistake(
        "temporal_affine_dx_not_reshaped",
        "temporal_affine",
        """
import numpy as np

def temporal_affine_forward(x, w, b):
    N, T, D = x.shape
    M = b.shape[0]
    out = x.reshape(N * T, D).dot(w).reshape(N, T, M) + b
    return out, (x, w, b, out)

def temporal_affine_backward(dout, cache):
    x, w, b, out = cache
    N, T, D = x.shape
    M = b.shape[0]
    dx = dout.reshape(N * T, M).dot(w.T)
    dw = dout.reshape(N * T, M).T.dot(x.reshape(N * T, D)).T
    db = dout.sum(axis=(0, 1))
    return dx, dw, db
""",
        either("dx", "shape"),
        "wrong shape",
        {"dot(w.T)\n": "dot(w.T).reshape(N, T, D)\n"},
    ),
    Mistake(
        "temporal_affine_dw_overwritten",
        "temporal_affine",
        """
import numpy as np

def temporal_affine_forward(x, w, b):
    out = np.stack([x[:, t].dot(w) + b for t in range(x.shape[1])], axis=1)
    return out, (x, w)

def temporal_affine_backward(dout, cache):
    x, w = cache
    dx, dw, db = np.zeros_like(x), np.zeros_like(w), np.zeros(w.shape[1])
    for t in range(x.shape[1]):
        dx[:, t] = dout[:, t].dot(w.T)
        dw = x[:, t].T.dot(dout[:, t])
        db += dout[:, t].sum(axis=0)
    return dx, dw, db
""",
        either("dw", ACCUMULATED),
        "overwritten",
        {"dw = x[:, t]": "dw += x[:, t]"},
    ),
    Mistake(
        "temporal_affine_dw_averaged_over_steps",
        "temporal_affine",
        """
import numpy as np

def temporal_affine_forward(x, w, b):
    return np.einsum("ntd,dm->ntm", x, w) + b[None, None, :], {"input": x, "weight": w}

def temporal_affine_backward(dout, cache):
    T = dout.shape[1]
    dx = np.einsum("ntm,dm->ntd", dout, cache["weight"])
    dw = np.einsum("ntd,ntm->dm", cache["input"], dout) / T
    db = np.einsum("ntm->m", dout)
    return dx, dw, db
""",
        either("dw", OVER_STEPS),
        "wrong scale",
        {"dout) / T\n": "dout)\n"},
    ),
    Mistake(
        "temporal_affine_dx_steps_mixed_up",
        "temporal_affine",
        """
import numpy as np

def temporal_affine_forward(x, w, b):
    N, T, D = x.shape
    rows = x.reshape(N * T, D)
    return (rows @ w + b).reshape(N, T, -1), (rows, w, (N, T, D))

def temporal_affine_backward(dout, cache):
    rows, w, (N, T, D) = cache
    d = dout.reshape(N * T, -1)
    dx = (d @ w.T).reshape(T, N, D).transpose(1, 0, 2)
    return dx, rows.T @ d, d.sum(axis=0)
""",
        either("dx", "reshape|reshaped|shape|order|axes|axis|transposed|steps|step|mixed up|time|swapped"),
        "wrong step",
        {".reshape(T, N, D).transpose(1, 0, 2)": ".reshape(N, T, D)"},
    ),
    Mistake(
        "temporal_affine_forward_lacks_b",
        "temporal_affine",
        """
import numpy as np

def temporal_affine_forward(x, w, b):
    N, T, D = x.shape
    X = x.reshape(-1, D)
    out = X.dot(w).reshape(N, T, w.shape[1])
    return out, ((N, T, D), (X, w))
""",
        either("b|bias", "out|forward|added|missing|lacks|left out"),
        "wrong forward",
        {"X.dot(w).reshape(N, T, w.shape[1])": "(X.dot(w) + b).reshape(N, T, w.shape[1])"},
    ),
    Mistake(
        "affine_dout_written_into",
        "affine",
        """
import numpy as np

def affine_forward(x, w, b):
    return np.reshape(x, (len(x), -1)) @ w + b, (x, w)

def affine_backward(dout, cache):
    x, w = cache
    dw = np.zeros(w.shape)
    dx = np.matmul(dout, w.T).reshape(x.shape)
    for n in range(len(x)):
        dw += np.outer(x[n], dout[n])
    db = dout[0]
    for row in dout[1:]:
        db += row
    return dx, dw, db
""",
        either("dout", WRITTEN),
        "writes into an input",
        {"db = dout[0]\n": "db = dout[0].copy()\n"},
    ),
    Mistake(
        "temporal_affine_dw_of_batch_mean",
        "temporal_affine",
        """
import numpy as np

def temporal_affine_backward(dout, cache):
    (N, T, D), (rows, w) = cache
    g = dout.reshape(N * T, w.shape[1])
    dw = rows.T.dot(g) / N
    return g.dot(w.T).reshape(N, T, D), dw, g.sum(axis=0)
""",
        either("dw", AVERAGED + "|" + BATCH),
        "wrong scale",
        {"rows.T.dot(g) / N": "rows.T.dot(g)"},
    ),
]
