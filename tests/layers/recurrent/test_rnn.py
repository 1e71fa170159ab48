"""The expected values of the course's vanilla RNN assignment, and what the cache holds."""

import numpy as np
import pytest

from rnnlab.layers import recurrent_forward, rnn_forward, rnn_step_forward
from rnnlab.layers.recurrent.rnn import RNN


def test_step_of_the_course():
    N, D, H = 3, 10, 4
    next_h, _ = rnn_step_forward(
        np.linspace(-0.4, 0.7, num=N * D).reshape(N, D),
        np.linspace(-0.2, 0.5, num=N * H).reshape(N, H),
        np.linspace(-0.1, 0.9, num=D * H).reshape(D, H),
        np.linspace(-0.3, 0.7, num=H * H).reshape(H, H),
        np.linspace(-0.2, 0.4, num=H),
    )
    expected = [
        [-0.58172089, -0.50182032, -0.41232771, -0.31410098],
        [0.66854692, 0.79562378, 0.87755553, 0.92795967],
        [0.97934501, 0.99144213, 0.99646691, 0.99854353],
    ]
    np.testing.assert_allclose(next_h, expected, atol=1e-8)


def test_sequence_of_the_course():
    N, T, D, H = 2, 3, 4, 5
    h, _ = rnn_forward(
        np.linspace(-0.1, 0.3, num=N * T * D).reshape(N, T, D),
        np.linspace(-0.3, 0.1, num=N * H).reshape(N, H),
        np.linspace(-0.2, 0.4, num=D * H).reshape(D, H),
        np.linspace(-0.4, 0.1, num=H * H).reshape(H, H),
        np.linspace(-0.7, 0.1, num=H),
    )
    expected = [
        [
            [-0.42070749, -0.27279261, -0.11074945, 0.05740409, 0.22236251],
            [-0.39525808, -0.22554661, -0.0409454, 0.14649412, 0.32397316],
            [-0.42305111, -0.24223728, -0.04287027, 0.15997045, 0.35014525],
        ],
        [
            [-0.55857474, -0.39065825, -0.19198182, 0.02378408, 0.23735671],
            [-0.27150199, -0.07088804, 0.13562939, 0.33099728, 0.50158768],
            [-0.51014825, -0.30524429, -0.06755202, 0.17806392, 0.40333043],
        ],
    ]
    np.testing.assert_allclose(h, expected, atol=1e-8)


@pytest.mark.parametrize("regularisation", [{}, {"zoneout_h": 0.4}], ids=["", "zoneout"])
def test_the_cache_holds_activations_and_nothing_else(regularisation, rng):
    """Packed rows of one step follow each other; zoneout acts on h alone."""
    N, T, D, H = 3, 4, 5, 6
    x, h0 = rng.standard_normal((N, T, D)), rng.standard_normal((N, H))
    params = {name: rng.standard_normal(shape) for name, shape in RNN().shapes(D, H).items()}
    h, _, cache = recurrent_forward(
        x, (h0,), params, cell="rnn", regularisation=regularisation, rng=np.random.default_rng(0)
    )
    prev_h = np.concatenate([h0[:, None], h[:, :-1]], axis=1)
    activations = np.tanh(x @ params["Wx"] + prev_h @ params["Wh"] + params["b"])
    np.testing.assert_allclose(cache.gates.reshape(T, N, H).swapaxes(0, 1), activations, rtol=1e-12)
    assert cache.saved.shape == (N * T, 0)
