"""The cells' primitives on NumPy against their formulas, written plainly, and numeric gradients."""

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import eval_numerical_gradient_array
from rnnlab.ops.numpy import cells as ops


def logistic(a):
    return 1 / (1 + np.exp(-a))


def normal(rng, *shapes):
    return [rng.standard_normal(shape) for shape in shapes]


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def test_rnn(rng):
    a, dh = normal(rng, (3, 4), (3, 4))
    gates, h, da = a.copy(), np.full((3, 4), np.nan), np.full((3, 4), np.nan)
    ops.rnn_forward(gates, h)
    assert_close(gates, np.tanh(a))
    assert_close(h, np.tanh(a))
    ops.rnn_backward(dh, gates, da)
    assert_close(da, dh * (1 - np.tanh(a) ** 2))


def test_lstm(rng):
    a, prev_c, dh, dc = normal(rng, (3, 16), (3, 4), (3, 4), (3, 4))
    gates = a.copy()
    c, tanh_c, h, da = (np.full(shape, np.nan) for shape in ((3, 4), (3, 4), (3, 4), (3, 16)))
    ops.lstm_forward(gates, prev_c, c, tanh_c, h)
    a_i, a_f, a_o, a_g = np.split(a, 4, axis=1)
    i, f, o, g = logistic(a_i), logistic(a_f), logistic(a_o), np.tanh(a_g)
    assert_close(gates, np.concatenate([i, f, o, g], axis=1))
    assert_close(c, f * prev_c + i * g)
    assert_close(tanh_c, np.tanh(c))
    assert_close(h, o * np.tanh(c))

    whole_dc = dc + dh * o * (1 - np.tanh(c) ** 2)
    expected = [whole_dc * g * i * (1 - i), whole_dc * prev_c * f * (1 - f)]
    expected += [dh * np.tanh(c) * o * (1 - o), whole_dc * i * (1 - g**2)]
    ops.lstm_backward(dh, dc, gates, prev_c, tanh_c, da)
    assert_close(da, np.concatenate(expected, axis=1))
    assert_close(dc, whole_dc * f)


def test_gru(rng):
    a, prev_h, dh, dreset_h = normal(rng, (3, 12), (3, 4), (3, 4), (3, 4))
    gates = a.copy()
    reset_h, h, da = (np.full(shape, np.nan) for shape in ((3, 4), (3, 4), (3, 12)))
    ops.gru_gates_forward(gates, prev_h, reset_h)
    z, r, g = logistic(a[:, :4]), logistic(a[:, 4:8]), np.tanh(a[:, 8:])
    assert_close(gates, np.concatenate([z, r, a[:, 8:]], axis=1))
    assert_close(reset_h, r * prev_h)
    ops.gru_candidate_forward(gates, prev_h, h)
    assert_close(gates, np.concatenate([z, r, g], axis=1))
    assert_close(h, (1 - z) * g + z * prev_h)

    dprev_h = dh.copy()
    ops.gru_candidate_backward(dprev_h, gates, prev_h, da)
    assert_close(da[:, :4], dh * (prev_h - g) * z * (1 - z))
    assert_close(da[:, 8:], dh * (1 - z) * (1 - g**2))
    assert_close(dprev_h, dh * z)
    ops.gru_gates_backward(dreset_h.copy(), dprev_h, gates, prev_h, da)
    assert_close(da[:, 4:8], dreset_h * prev_h * r * (1 - r))
    assert_close(dprev_h, dh * z + dreset_h * r)


def test_simplified_gru(rng):
    a, prev_h, dh = normal(rng, (3, 8), (3, 4), (3, 4))
    gates = a.copy()
    h, da = np.full((3, 4), np.nan), np.full((3, 8), np.nan)
    ops.simplified_gru_forward(gates, prev_h, h)
    z, g = logistic(a[:, :4]), np.tanh(a[:, 4:])
    assert_close(gates, np.concatenate([z, g], axis=1))
    assert_close(h, (1 - z) * g + z * prev_h)
    dprev_h = dh.copy()
    ops.simplified_gru_backward(dprev_h, gates, prev_h, da)
    assert_close(da, np.concatenate([dh * (prev_h - g) * z * (1 - z), dh * (1 - z) * (1 - g**2)], axis=1))
    assert_close(dprev_h, dh * z)


# ---------------------------------------------------------------- with a mask on the candidate

N, H = 3, 4
KEEP = np.array([[0, 1, 0, 0], [1, 0, 1, 1], [0, 0, 0, 1]]) / 0.6


def lstm_dropped(a, keep, prev_c):
    """h, c and what the backward needs besides the arguments."""
    gates, c, tanh_c, h = a.copy(), *(np.full((N, H), np.nan) for _ in range(3))
    ops.lstm_dropped_forward(gates, keep, prev_c, c, tanh_c, h)
    return h, c, gates, tanh_c


def test_lstm_dropped(rng):
    a, prev_c, dh, dc = normal(rng, (N, 4 * H), (N, H), (N, H), (N, H))
    h, c, gates, tanh_c = lstm_dropped(a, KEEP, prev_c)
    i, f, o = np.split(logistic(a[:, : 3 * H]), 3, axis=1)
    g = np.tanh(a[:, 3 * H :])
    assert_close(gates, np.concatenate([i, f, o, g], axis=1))
    assert_close(c, f * prev_c + i * (KEEP * g))
    assert_close(h, o * np.tanh(c))

    da, dprev_c = np.full((N, 4 * H), np.nan), dc.copy()
    ops.lstm_dropped_backward(dh, dprev_c, gates, KEEP, prev_c, tanh_c, da)
    for x, dx in ((a, da), (prev_c, dprev_c)):
        numeric = eval_numerical_gradient_array(lambda _: lstm_dropped(a, KEEP, prev_c)[0], x, dh)
        numeric += eval_numerical_gradient_array(lambda _: lstm_dropped(a, KEEP, prev_c)[1], x, dc)
        np.testing.assert_allclose(dx, numeric, atol=1e-9)


@pytest.mark.parametrize(("cell", "gates_of"), [("gru_candidate", 3), ("simplified_gru", 2)])
def test_gru_dropped(cell, gates_of, rng):
    """Of the GRU, whose r is no matter of these primitives, z comes in active."""
    a, prev_h, dh = normal(rng, (N, gates_of * H), (N, H), (N, H))

    def activated():
        gates = a.copy()
        if cell == "gru_candidate":
            gates[:, : 2 * H] = logistic(gates[:, : 2 * H])
        return gates

    def forward():
        gates, h = activated(), np.full((N, H), np.nan)
        getattr(ops, f"{cell}_dropped_forward")(gates, KEEP, prev_h, h)
        return h, gates

    h, gates = forward()
    z, g = logistic(a[:, :H]), np.tanh(a[:, -H:])
    assert_close(gates[:, :H], z)
    assert_close(gates[:, -H:], g)
    assert_close(h, (1 - z) * (KEEP * g) + z * prev_h)

    da, dprev_h = np.zeros_like(a), dh.copy()
    getattr(ops, f"{cell}_dropped_backward")(dprev_h, gates, KEEP, prev_h, da)
    for x, dx in ((a, da), (prev_h, dprev_h)):
        numeric = eval_numerical_gradient_array(lambda _: forward()[0], x, dh)
        np.testing.assert_allclose(dx, numeric, atol=1e-9)
