"""Right implementations of the other recurrent cells in unusual styles."""

from __future__ import annotations

from .mistake import Right

RIGHT = [
    Right(
        "rnn_step_bias_as_weight_of_a_one",
        "rnn_step",
        """
import numpy as np

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    inp = np.hstack([x, prev_h, np.ones((len(x), 1))])
    W = np.vstack([Wx, Wh, b])
    h = np.tanh(inp @ W)
    return h, {"inp": inp, "W": W, "h": h, "cuts": [Wx.shape[0], Wx.shape[0] + Wh.shape[0]]}

def rnn_step_backward(dnext_h, cache):
    delta = dnext_h / (1 / (1 - cache["h"] ** 2))
    dx, dprev_h, _ = np.split(delta @ cache["W"].T, cache["cuts"], axis=1)
    dWx, dWh, db = np.split(cache["inp"].T @ delta, cache["cuts"], axis=0)
    return dx, dprev_h, dWx, dWh, db[0]
""",
    ),
    Right(
        "rnn_step_by_samples_and_units",
        "rnn_step",
        """
import numpy as np

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    N, H = prev_h.shape
    next_h = np.empty((N, H))
    for n in range(N):
        for k in range(H):
            next_h[n, k] = np.tanh(np.dot(x[n], Wx[:, k]) + np.dot(prev_h[n], Wh[:, k]) + b[k])
    return next_h, [x, prev_h, Wx, Wh, b]

def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, b = cache
    out = {name: np.zeros(a.shape) for name, a in zip("x h Wx Wh b".split(), cache)}
    for n in range(len(x)):
        # nothing was saved: compute the state once more
        h = np.tanh(Wx.T @ x[n] + Wh.T @ prev_h[n] + b)
        for k, slope in enumerate(1 - h * h):
            d = slope * dnext_h[n, k]
            out["x"][n] += d * Wx[:, k]
            out["h"][n] += d * Wh[:, k]
            out["Wx"][:, k] += d * x[n]
            out["Wh"][:, k] += d * prev_h[n]
            out["b"][k] += d
    return tuple(out.values())
""",
    ),
    Right(
        "rnn_step_by_complex_steps",
        "rnn_step",
        """
import numpy as np

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    return np.tanh(x @ Wx + prev_h @ Wh + b), (x, prev_h, Wx, Wh, b)

def rnn_step_backward(dnext_h, cache):
    # f(a + ie) has the imaginary part e f'(a): exact to rounding
    grads = []
    for k, array in enumerate(cache):
        grad = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            args = [a.astype(complex) for a in cache]
            args[k][place] += 1e-30j
            next_h, _ = rnn_step_forward(*args)
            grad[place] = (dnext_h * next_h.imag).sum() * 1e30
        grads.append(grad)
    return tuple(grads)
""",
    ),
    Right(
        "rnn_with_closures_as_cache",
        "rnn",
        """
import numpy as np

def rnn_forward(x, h0, Wx, Wh, b):
    undo, states = [], [h0]

    def step(x_t, h):
        new = np.tanh(x_t @ Wx + h @ Wh + b)

        def back(dnew):
            d = (1 - new ** 2) * dnew
            return d @ Wx.T, d @ Wh.T, x_t.T @ d, h.T @ d, d.sum(axis=0)

        undo.append(back)
        return new

    for t in range(x.shape[1]):
        states.append(step(x[:, t], states[-1]))
    return np.stack(states[1:], axis=1), undo

def rnn_backward(dh, cache):
    dx, total = [], None
    carry = 0
    for t, back in reversed(list(enumerate(cache))):
        dx_t, carry, *grads = back(dh[:, t] + carry)
        dx.append(dx_t)
        total = grads if total is None else [a + g for a, g in zip(total, grads)]
    return np.stack(dx[::-1], axis=1), carry, *total
""",
    ),
    Right(
        "rnn_by_recursion",
        "rnn",
        """
import numpy as np

def rnn_forward(x, h0, Wx, Wh, b):
    if x.shape[1] == 0:
        return np.zeros((len(x), 0, len(Wh))), None
    h = np.tanh(x[:, 0] @ Wx + h0 @ Wh + b)
    rest, later = rnn_forward(x[:, 1:], h, Wx, Wh, b)
    return np.concatenate([h[:, None], rest], axis=1), (x[:, 0], h0, h, Wx, Wh, later)

def rnn_backward(dh, cache):
    x, prev, h, Wx, Wh, later = cache
    if later is None:
        dx, dnext = np.zeros((len(x), 0, len(Wx))), 0
        dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(len(Wh))
    else:
        dx, dnext, dWx, dWh, db = rnn_backward(dh[:, 1:], later)
    da = (dh[:, 0] + dnext) * (1 - h ** 2)
    dx = np.concatenate([(da @ Wx.T)[:, None], dx], axis=1)
    return dx, da @ Wh.T, dWx + x.T @ da, dWh + prev.T @ da, db + da.sum(axis=0)
""",
    ),
    Right(
        "rnn_in_place_on_copies",
        "rnn",
        """
import numpy as np

def rnn_forward(x, h0, Wx, Wh, b):
    h = np.array(np.dot(x, Wx) + b)
    for t in range(h.shape[1]):
        h[:, t] += np.dot(h[:, t - 1] if t else h0, Wh)
        np.tanh(h[:, t], out=h[:, t])
    return h, (x.copy(), h0.copy(), Wx.copy(), Wh.copy(), h.copy())

def rnn_backward(dh, cache):
    x, h0, Wx, Wh, h = cache
    da = np.array(dh, dtype=np.float64, order="F")
    dh0 = np.zeros(h0.shape)
    for t in range(h.shape[1])[::-1]:
        da[:, t] -= da[:, t] * h[:, t] ** 2
        if t > 0:
            da[:, t - 1] += da[:, t] @ Wh.T
        else:
            dh0 += da[:, t] @ Wh.T
    before = np.concatenate([h0[:, None], h[:, :-1]], axis=1)
    dWx, dWh = np.einsum("ntd,nth->dh", x, da), np.einsum("ntk,nth->kh", before, da)
    return np.einsum("nth,dh->ntd", da, Wx), dh0, dWx, dWh, np.einsum("nth->h", da)
""",
    ),
    Right(
        "gru_step_by_samples",
        "gru_step",
        """
import numpy as np

def gru_step_forward(x, prev_h, Wx, Wh, b):
    H = prev_h.shape[1]
    rows = []
    for n in range(len(x)):
        a = x[n] @ Wx + b
        zr = 1 / (1 + np.exp(-(a[:2*H] + prev_h[n] @ Wh[:, :2*H])))
        z, r = zr[:H], zr[H:]
        g = np.tanh(a[2*H:] + (r * prev_h[n]) @ Wh[:, 2*H:])
        rows.append({"z": z, "r": r, "g": g, "next": g - z * (g - prev_h[n])})
    return np.array([row["next"] for row in rows]), (x, prev_h, Wx, Wh, rows)

def gru_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, rows = cache
    H = prev_h.shape[1]
    Uz, Ur, Ug = Wh[:, :H], Wh[:, H:2*H], Wh[:, 2*H:]
    dx, dprev, da = np.zeros(x.shape), np.zeros(prev_h.shape), np.zeros((len(x), 3 * H))
    dWh = np.zeros(Wh.shape)
    for n, row in enumerate(rows):
        h, z, r, g, d = prev_h[n], row["z"], row["r"], row["g"], dnext_h[n]
        dg = d * (1 - z) * (1 - g) * (1 + g)
        dz = -d * (g - h) * z * (1 - z)
        dr = (Ug @ dg) * h * r * (1 - r)
        da[n] = np.r_[dz, dr, dg]
        dprev[n] = d * z + Uz @ dz + Ur @ dr + (Ug @ dg) * r
        dWh += np.c_[np.outer(h, dz), np.outer(h, dr), np.outer(h * r, dg)]
        dx[n] = Wx @ da[n]
    return dx, dprev, np.einsum("nd,nk->dk", x, da), dWh, da.sum(0)
""",
    ),
    Right(
        "simplified_gru_with_time_first",
        "simplified_gru",
        """
import numpy as np

def simplified_gru_forward(x, h0, Wx, Wh, b):
    xs = np.ascontiguousarray(x.transpose(1, 0, 2))
    H = len(Wh)
    pre = xs @ Wx + b
    z, g, h = (np.zeros((len(xs) + 1, *h0.shape)) for _ in range(3))
    h[0] = h0
    for t, p in enumerate(pre, start=1):
        p = p + h[t - 1] @ Wh
        z[t], g[t] = 1 / (1 + np.exp(-p[:, :H])), np.tanh(p[:, H:])
        h[t] = g[t] + z[t] * (h[t - 1] - g[t])
    return h[1:].transpose(1, 0, 2), {"xs": xs, "z": z, "g": g, "h": h, "Wx": Wx, "Wh": Wh}

def simplified_gru_backward(dh, cache):
    xs, z, g, h, Wx, Wh = cache.values()
    T, N, D = xs.shape
    dpre = np.zeros((T, N, 2 * h.shape[2]))
    grad = np.zeros(h[0].shape)
    for t in range(T, 0, -1):
        grad = grad + dh[:, t - 1]
        dpre[t - 1] = np.hstack([(h[t - 1] - g[t]) * z[t], 1 - g[t] ** 2]) * np.tile(grad * (1 - z[t]), 2)
        grad = grad * z[t] + dpre[t - 1] @ Wh.T
    dx = (dpre @ Wx.T).transpose(1, 0, 2)
    dWx = np.tensordot(xs, dpre, ((0, 1), (0, 1)))
    dWh = np.tensordot(h[:-1], dpre, ((0, 1), (0, 1)))
    return dx, grad, dWx, dWh, dpre.sum((0, 1))
""",
    ),
]
