"""A cell from outside the package: an LSTM whose gates see the cell state (Gers and Schmidhuber 2000)."""

import numpy as np

from rnnlab.layers import Cell


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class PeepholeLSTM(Cell):
    """i and f see c_{t-1}, o sees c_t, each through a weight for each unit: P (3, H) in the order i, f, o."""

    num_gates = 4
    num_states = 2
    forget_gate = 1
    drops_candidate = True

    def recurrent_shapes(self, hidden_dim):
        return {**super().recurrent_shapes(hidden_dim), "W_peephole": (3, hidden_dim)}

    def step_forward(self, a, state, params, *, candidate_mask=None):
        (h, c), P = state, params["W_peephole"]
        a_i, a_f, a_o, a_g = np.split(a + h @ params["Wh"], 4, axis=1)
        i, f, g = sigmoid(a_i + c * P[0]), sigmoid(a_f + c * P[1]), np.tanh(a_g)
        added = g if candidate_mask is None else g * candidate_mask
        next_c = f * c + i * added
        o = sigmoid(a_o + next_c * P[2])
        return (o * np.tanh(next_c), next_c), (h, c, next_c, i, f, o, g, candidate_mask)

    def step_backward(self, dstate, params, cache):
        (dh, dc), P = dstate, params["W_peephole"]
        h, c, next_c, i, f, o, g, mask = cache
        tanh_c, mask = np.tanh(next_c), 1 if mask is None else mask
        da_o = dh * tanh_c * o * (1 - o)
        dc = dc + dh * o * (1 - tanh_c**2) + da_o * P[2]
        da_i, da_f = dc * g * mask * i * (1 - i), dc * c * f * (1 - f)
        da = np.concatenate([da_i, da_f, da_o, dc * i * mask * (1 - g**2)], axis=1)
        dP = np.stack([(da_i * c).sum(axis=0), (da_f * c).sum(axis=0), (da_o * next_c).sum(axis=0)])
        dprev_c = dc * f + da_i * P[0] + da_f * P[1]
        return da, (da @ params["Wh"].T, dprev_c), {"Wh": h.T @ da, "W_peephole": dP}


class Projected(PeepholeLSTM):
    """A cell with a parameter of any name."""

    def __init__(self, name):
        self.own = name

    def recurrent_shapes(self, hidden_dim):
        return {**super().recurrent_shapes(hidden_dim), self.own: (hidden_dim, hidden_dim)}
