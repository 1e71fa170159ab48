"""What only the LSTM has, the cell state, and the expected values of the course's assignment."""

import re

import numpy as np
import pytest

from rnnlab.layers import lstm_backward, lstm_forward, lstm_step_forward

from ..reference import CELLS, assert_same

LSTM = CELLS[1]


def test_step_of_the_course():
    N, D, H = 4, 6, 5
    next_h, next_c, _ = lstm_step_forward(
        np.linspace(-0.3, 1.5, num=N * D).reshape(N, D),
        np.linspace(-0.4, 0.6, num=N * H).reshape(N, H),
        np.linspace(-0.3, 0.7, num=N * H).reshape(N, H),
        np.linspace(-2.5, 1.5, num=4 * D * H).reshape(D, 4 * H),
        np.linspace(-0.6, 2.9, num=4 * H * H).reshape(H, 4 * H),
        np.linspace(0.5, 0.9, num=4 * H),
    )
    expected_h = [
        [0.0165847, 0.01696218, 0.01655814, 0.01553876, 0.01406699],
        [0.24065888, 0.28427873, 0.32864975, 0.3732101, 0.41741899],
        [0.20770108, 0.27550721, 0.35119713, 0.43137313, 0.51193919],
        [0.16696798, 0.25014776, 0.35113955, 0.46255914, 0.57402168],
    ]
    expected_c = [
        [0.02582877, 0.02692254, 0.02680088, 0.0256642, 0.02372262],
        [0.36907851, 0.4306525, 0.49380227, 0.55837699, 0.62422696],
        [0.29771495, 0.37848565, 0.46994136, 0.57115168, 0.68058741],
        [0.22573283, 0.31721055, 0.43100444, 0.56617513, 0.71982552],
    ]
    np.testing.assert_allclose(next_h, expected_h, atol=1e-8)
    np.testing.assert_allclose(next_c, expected_c, atol=1e-8)


def test_sequence_of_the_course():
    N, D, H, T = 2, 6, 5, 4
    h, _ = lstm_forward(
        np.linspace(-0.2, 0.5, num=N * T * D).reshape(N, T, D),
        np.linspace(-0.3, 0.9, num=N * H).reshape(N, H),
        np.linspace(-0.1, 0.9, num=4 * D * H).reshape(D, 4 * H),
        np.linspace(-0.4, 0.7, num=4 * H * H).reshape(H, 4 * H),
        np.linspace(0.3, 0.5, num=4 * H),
    )
    expected = [
        [
            [0.10504642, 0.10522426, 0.10540215, 0.10558009, 0.10575809],
            [0.18395915, 0.18913038, 0.19432382, 0.19953735, 0.20476888],
            [0.34981305, 0.36088469, 0.37188293, 0.38279899, 0.39362474],
            [0.54749071, 0.5627889, 0.57766486, 0.59211578, 0.60614103],
        ],
        [
            [0.52886909, 0.53975977, 0.55021991, 0.56025857, 0.56988555],
            [0.71124032, 0.72440089, 0.7369036, 0.74877688, 0.76004879],
            [0.83180499, 0.84312229, 0.85362763, 0.86338152, 0.87244016],
            [0.88993707, 0.89870573, 0.90672769, 0.91407466, 0.92081035],
        ],
    ]
    np.testing.assert_allclose(h, expected, atol=1e-8)


def test_without_c0_the_cell_starts_at_zero_and_has_no_gradient(rng):
    inputs = LSTM.inputs(rng)
    with_zeros = inputs | {"c0": np.zeros_like(inputs["c0"])}
    del inputs["c0"]
    h, cache = lstm_forward(**inputs)
    h_with_zeros, cache_with_zeros = lstm_forward(**with_zeros)
    assert_same(h, h_with_zeros)
    dh = rng.standard_normal(h.shape)
    grads = lstm_backward(dh, cache)
    assert len(grads) == 5
    assert_same(grads, lstm_backward(dh, cache_with_zeros)[:5])


def test_c0_of_a_wrong_shape_or_dtype_is_named(rng):
    inputs = LSTM.inputs(rng)
    message = "lstm_forward: c0 has shape (2, 5), expected (N, H) = (3, 5)"
    with pytest.raises(ValueError, match=re.escape(message)):
        lstm_forward(**inputs | {"c0": inputs["c0"][1:]})
    with pytest.raises(TypeError, match="lstm_forward: c0 has dtype float32, expected float64 as x"):
        lstm_forward(**inputs | {"c0": inputs["c0"].astype(np.float32)})
