"""The GRU at the limits of its gates, which shows their order z, r, g."""

import numpy as np

from rnnlab.layers import gru_step_forward

N, D, H = 3, 4, 5
CLOSED, OPEN = -100.0, 100.0


def step(rng, z, r):
    """A step whose gates are set by the biases."""
    x, prev_h = rng.standard_normal((N, D)), rng.standard_normal((N, H))
    Wx, Wh = rng.standard_normal((D, 3 * H)), rng.standard_normal((H, 3 * H))
    b = np.concatenate([np.full(H, z), np.full(H, r), np.zeros(H)])
    next_h, _ = gru_step_forward(x, prev_h, Wx, Wh, b)
    return next_h, x @ Wx[:, 2 * H :], prev_h @ Wh[:, 2 * H :], prev_h


def test_an_open_update_gate_carries_the_state_through(rng):
    next_h, _, _, prev_h = step(rng, OPEN, 0.0)
    np.testing.assert_allclose(next_h, prev_h, rtol=1e-12)


def test_a_closed_reset_gate_leaves_the_input_alone(rng):
    next_h, from_x, _, _ = step(rng, CLOSED, CLOSED)
    np.testing.assert_allclose(next_h, np.tanh(from_x), rtol=1e-12)


def test_open_reset_and_closed_update_gates_make_a_vanilla_rnn(rng):
    next_h, from_x, from_h, _ = step(rng, CLOSED, OPEN)
    np.testing.assert_allclose(next_h, np.tanh(from_x + from_h), rtol=1e-12)


def test_the_reset_gate_acts_before_the_product(rng):
    """With r = (1, 0, 0, 0, 0) only the first unit of h_{t-1} reaches the candidate."""
    x, prev_h = np.zeros((N, D)), rng.standard_normal((N, H))
    Wx, Wh, b = np.zeros((D, 3 * H)), np.zeros((H, 3 * H)), np.zeros(3 * H)
    Wh[:, 2 * H :] = rng.standard_normal((H, H))
    b[:H], b[H : 2 * H] = CLOSED, CLOSED
    b[H] = OPEN
    next_h, _ = gru_step_forward(x, prev_h, Wx, Wh, b)
    np.testing.assert_allclose(next_h, np.tanh(prev_h[:, :1] * Wh[:1, 2 * H :]), rtol=1e-12)
