"""Right implementations of the LSTM in unusual styles."""

from __future__ import annotations

from .mistake import Right

RIGHT = [
    Right(
        "lstm_step_with_gates_by_name",
        "lstm_step",
        """
import numpy as np

GATES = ("input", "forget", "output", "candidate")

def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    wx, wh, bias = (dict(zip(GATES, np.split(a, 4, axis=-1))) for a in (Wx, Wh, b))
    act = {}
    for name in GATES:
        a = x @ wx[name] + prev_h @ wh[name] + bias[name]
        act[name] = np.tanh(a) if name == "candidate" else 0.5 + 0.5 * np.tanh(0.5 * a)
    next_c = act["forget"] * prev_c + act["input"] * act["candidate"]
    next_h = act["output"] * np.tanh(next_c)
    return next_h, next_c, {"x": x, "h": prev_h, "c": prev_c, "wx": wx, "wh": wh, "act": act, "new": next_c}

def lstm_step_backward(dnext_h, dnext_c, cache):
    act, wx, wh = cache["act"], cache["wx"], cache["wh"]
    squashed = np.tanh(cache["new"])
    dcell = dnext_c + dnext_h * act["output"] * (1 - squashed ** 2)
    outer = {
        "input": dcell * act["candidate"],
        "forget": dcell * cache["c"],
        "output": dnext_h * squashed,
        "candidate": dcell * act["input"],
    }
    d = {name: outer[name] * (act[name] - act[name] ** 2) for name in GATES[:3]}
    d["candidate"] = outer["candidate"] * (1 - act["candidate"] ** 2)
    dx = sum(d[name] @ wx[name].T for name in GATES)
    dprev_h = sum(d[name] @ wh[name].T for name in GATES)
    dWx = np.hstack([cache["x"].T @ d[name] for name in GATES])
    dWh = np.hstack([cache["h"].T @ d[name] for name in GATES])
    return dx, dprev_h, dcell * act["forget"], dWx, dWh, np.hstack([d[name].sum(axis=0) for name in GATES])
""",
    ),
    Right(
        "lstm_step_with_negative_gradients",
        "lstm_step",
        """
import numpy as np

def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    a = x @ Wx + prev_h @ Wh + b
    ai, af, ao, ag = np.hsplit(a, 4)
    next_c = prev_c / (1 + np.exp(-af)) + np.tanh(ag) / (1 + np.exp(-ai))
    next_h = np.tanh(next_c) / (1 + np.exp(-ao))
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, a, next_c)

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, a, next_c = cache
    ai, af, ao, ag = np.hsplit(a, 4)
    bump = lambda z: 1 / (2 + 2 * np.cosh(z))  # the derivative of the sigmoid
    # descent direction: minus the gradient, all the way down
    down_h, down_c = -dnext_h, -dnext_c
    down_c = down_c + down_h / (1 + np.exp(-ao)) / np.cosh(next_c) ** 2
    down = np.empty(a.shape)
    H = next_c.shape[1]
    down[:, :H] = down_c * np.tanh(ag) * bump(ai)
    down[:, H:2*H] = down_c * prev_c * bump(af)
    down[:, 2*H:3*H] = down_h * np.tanh(next_c) * bump(ao)
    down[:, 3*H:] = down_c / (1 + np.exp(-ai)) / np.cosh(ag) ** 2
    dprev_c = -down_c / (1 + np.exp(-af))
    return -(down @ Wx.T), -(down @ Wh.T), dprev_c, -(x.T @ down), -(prev_h.T @ down), -down.sum(axis=0)
""",
    ),
    Right(
        "lstm_step_with_a_gate_axis",
        "lstm_step",
        """
import numpy as np

def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    N, H = prev_c.shape
    a = np.einsum("nd,dkh->knh", x, Wx.reshape(-1, 4, H))
    a += np.einsum("nj,jkh->knh", prev_h, Wh.reshape(H, 4, H))
    a += b.reshape(4, 1, H)
    y = np.concatenate([1 / (1 + np.exp(-a[:3])), np.tanh(a[3:])])
    c = y[1] * prev_c + y[0] * y[3]
    return y[2] * np.tanh(c), c, (x, prev_h, prev_c, Wx, Wh, y, c)

def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, y, c = cache
    N, H = c.shape
    th = np.tanh(c)
    dc = dnext_c + dnext_h * y[2] * (1 - th ** 2)
    d = np.stack([dc * y[3], dc * prev_c, dnext_h * th, dc * y[0]])
    d[:3] *= y[:3] * (1 - y[:3])
    d[3] *= 1 - y[3] ** 2
    dx = np.einsum("knh,dkh->nd", d, Wx.reshape(-1, 4, H))
    dprev_h = np.einsum("knh,jkh->nj", d, Wh.reshape(H, 4, H))
    dWx = np.einsum("nd,knh->dkh", x, d).reshape(Wx.shape)
    dWh = np.einsum("nj,knh->jkh", prev_h, d).reshape(Wh.shape)
    return dx, dprev_h, dc * y[1], dWx, dWh, d.sum(axis=1).ravel()
""",
    ),
    Right(
        "lstm_as_a_class",
        "lstm",
        """
import numpy as np

class Cell:
    def __init__(self, x, h, c, Wx, Wh, b):
        self.x, self.h, self.c, self.Wx, self.Wh = x, h, c, Wx, Wh
        i, f, o, g = np.split(x.dot(Wx) + h.dot(Wh) + b, 4, axis=1)
        self.i, self.f, self.o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
        self.g = np.tanh(g)
        self.new_c = self.f * c + self.i * self.g
        self.new_h = self.o * np.tanh(self.new_c)

    def backward(self, dh, dc, grads):
        t = np.tanh(self.new_c)
        dc = dc + dh * self.o * (1 - t * t)
        d = np.hstack([
            dc * self.g * self.i * (1 - self.i), dc * self.c * self.f * (1 - self.f),
            dh * t * self.o * (1 - self.o), dc * self.i * (1 - self.g ** 2),
        ])
        grads["Wx"] += self.x.T @ d
        grads["Wh"] += self.h.T @ d
        grads["b"] += d.sum(axis=0)
        return d @ self.Wx.T, d @ self.Wh.T, dc * self.f

def lstm_forward(x, h0, Wx, Wh, b):
    cells = [Cell(x[:, 0], h0, 0 * h0, Wx, Wh, b)]
    for t in range(1, x.shape[1]):
        cells.append(Cell(x[:, t], cells[-1].new_h, cells[-1].new_c, Wx, Wh, b))
    return np.stack([cell.new_h for cell in cells], axis=1), cells

def lstm_backward(dh, cache):
    Wx, Wh = cache[0].Wx, cache[0].Wh
    grads = {"Wx": np.zeros_like(Wx), "Wh": np.zeros_like(Wh), "b": np.zeros(Wx.shape[1])}
    dx, dh_carry, dc_carry = [], 0, 0
    for cell, dh_t in zip(cache[::-1], dh.swapaxes(0, 1)[::-1]):
        dx_t, dh_carry, dc_carry = cell.backward(dh_t + dh_carry, dc_carry, grads)
        dx = [dx_t, *dx]
    return np.stack(dx, axis=1), dh_carry, *grads.values()
""",
    ),
    Right(
        "lstm_backward_computes_forward_again",
        "lstm",
        """
import numpy as np

def sigmoid(z):
    return np.exp(-np.logaddexp(0, -z))

def unroll(x, h, Wx, Wh, b):
    c, history = np.zeros(h.shape), []
    for x_t in np.moveaxis(x, 1, 0):
        a = np.dot(np.c_[x_t, h], np.r_[Wx, Wh]) + b
        H = c.shape[1]
        i, f, o, g = sigmoid(a[:, :H]), sigmoid(a[:, H:-2*H]), sigmoid(a[:, -2*H:-H]), np.tanh(a[:, -H:])
        history.append((x_t, h, c, i, f, o, g))
        c = f * c + i * g
        h = o * np.tanh(c)
        yield h, history

def lstm_forward(x, h0, Wx, Wh, b):
    return np.stack([h for h, _ in unroll(x, h0, Wx, Wh, b)], axis=1), (x, h0, Wx, Wh, b)

def lstm_backward(dh, cache):
    x, h0, Wx, Wh, b = cache
    for _, history in unroll(*cache):
        pass
    D = x.shape[2]
    dW, db, dx = 0, 0, np.zeros_like(x)
    dcell, dhid = 0, 0
    for t in range(len(history) - 1, -1, -1):
        x_t, h, c, i, f, o, g = history[t]
        dhid = dhid + dh[:, t]
        tc = np.tanh(f * c + i * g)
        dcell = dcell + dhid * (o - o * tc ** 2)
        da = np.c_[dcell * g * (i - i * i), dcell * c * (f - f * f),
                   dhid * tc * (o - o * o), dcell * (i - i * g * g)]
        dW, db = dW + np.c_[x_t, h].T @ da, db + da.sum(axis=0)
        both = da @ np.r_[Wx, Wh].T
        dx[:, t], dhid, dcell = both[:, :D], both[:, D:], dcell * f
    return dx, dhid, dW[:D], dW[D:], db
""",
    ),
]
