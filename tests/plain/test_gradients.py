"""Every backward of rnnlab.plain is checked against numeric gradients."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import eval_numerical_gradient, relative_distance

from ..layers.reference import assert_gradients
from .cases import CASES, PLAIN, normal

LENGTHS = {"ragged": np.array([2, 0, 3]), "padding": np.array([0, 0]), "one step": np.array([1])}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_gradients(name, lengths, rng):
    case = CASES[name](rng, len(lengths), max(1, int(lengths.max())), lengths)
    assert_gradients(
        lambda **arrays: case.forward(PLAIN, **arrays),
        lambda *douts: case.backward(PLAIN, *douts),
        case.inputs,
        rng,
        1e-4 if name.startswith("review") else 1e-7,  # some of its gradients are as small as 1e-7
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses(smoothing, rng):
    x, y, mask = rng.standard_normal((3, 4, 5)), rng.integers(0, 5, (3, 4)), rng.random((3, 4)) < 0.6
    for scores, loss in (
        (x[:, 0].copy(), lambda x: PLAIN.softmax_loss(x, y[:, 0], label_smoothing=smoothing)),
        (x, lambda x: PLAIN.temporal_softmax_loss(x, y, mask, label_smoothing=smoothing)),
    ):
        numeric = eval_numerical_gradient(lambda x, loss=loss: loss(x)[0], scores, verbose=False)
        assert relative_distance(loss(scores)[1], numeric) < 1e-7


@pytest.mark.parametrize("lengths", [None, np.array([3, 0, 4])], ids=["full", "ragged"])
def test_doubly_stochastic_loss(lengths, rng):
    weights, real = rng.random((3, 4, 5)), rng.random((3, 5)) < 0.7

    def loss(weights):
        return PLAIN.doubly_stochastic_loss(weights, lengths, memory_mask=real)

    numeric = eval_numerical_gradient(lambda weights: loss(weights)[0], weights, verbose=False)
    assert relative_distance(loss(weights)[1], numeric) < 1e-7


def test_regularised_lstm(rng):
    N, T, D, H = 2, 3, 2, 3
    inputs = normal(rng, x=(N, T, D), h0=(N, H), c0=(N, H), Wx=(D, 4 * H), Wh=(H, 4 * H), b=(4 * H,))
    d_h, d_c = (rng.random((2, T, N, H)) < 0.4).astype(float)
    m, k = (rng.random((N, H)) < 0.6) / 0.6, (rng.random((T, N, H)) < 0.6) / 0.6
    for masks in ((d_h, d_c, m, k), (np.full(d_h.shape, 0.3), np.full(d_c.shape, 0.1), m, k)):
        assert_gradients(
            lambda masks=masks, **arrays: PLAIN.regularised_lstm_forward(*arrays.values(), *masks),
            PLAIN.regularised_lstm_backward,
            inputs,
            rng,
        )


def test_attend(rng):
    """Keys and attention in one function, as the cells that attend use them."""
    inputs = normal(rng, query=(2, 3), memory=(2, 3, 2), Wq=(3, 4), Wm=(2, 4), b=(4,), v=(4,))

    def backward(dcontext, dweights, cache):
        dquery, dmemory, dparams = PLAIN.attend_backward(dcontext, cache, dweights=dweights)
        return dquery, dmemory, *(dparams[name] for name in ("Wq", "Wm", "b", "v"))

    mask = np.array([[1, 0, 1], [0, 0, 0]])
    assert_gradients(
        lambda query, memory, **params: PLAIN.attend_forward(query, memory, params, mask=mask),
        backward,
        inputs,
        rng,
    )


@pytest.mark.parametrize("lengths", [None, np.array([3, 0])], ids=["full", "ragged"])
def test_factored_lstm(lengths, rng):
    D, P, H = 2, 3, 2
    weights = {"Wx1": (D, 4 * H), "Wh1": (H, 4 * H), "b1": (4 * H,)}
    weights |= {"Wx2": (H + P, 4 * H), "Wh2": (H, 4 * H), "b2": (4 * H,)}

    def forward(words, v, *weights, **by_name):
        weights = weights or tuple(by_name.values())
        return PLAIN.factored_lstm_forward(words, v, weights[:3], weights[3:], lengths=lengths)

    def backward(dh2, cache):
        dwords, dv, first, second = PLAIN.factored_lstm_backward(dh2, cache)
        return dwords, dv, *first, *second

    assert_gradients(forward, backward, normal(rng, words=(2, 3, D), v=(2, P), **weights), rng)


def test_sigmoid_of_large_negative_numbers():
    x = np.array([-40.0, -300.0])
    np.testing.assert_allclose(PLAIN.sigmoid(x), np.exp(x), rtol=1e-12)


def test_sigmoid_does_not_overflow():
    x = np.array([-1e4, -1.0, 0.0, 1.0, 1e4])
    np.testing.assert_allclose(PLAIN.sigmoid(x), [0, 1 / (1 + np.e), 0.5, np.e / (1 + np.e), 1], rtol=1e-12)
