"""The doubly stochastic loss: its equation, numeric gradients, empty batches and errors."""

import numpy as np
import pytest

from rnnlab.layers.attention.losses import doubly_stochastic_loss

from ..reference import assert_gradients


@pytest.mark.parametrize("lengths", [None, np.array([2, 0, 4])], ids=["full", "ragged"])
@pytest.mark.parametrize("mask", [None, np.array([[1, 0], [1, 1], [0, 0]])], ids=["all", "masked"])
def test_it_is_the_equation(lengths, mask, rng):
    weights = rng.random((3, 4, 2))
    loss, _ = doubly_stochastic_loss(weights, lengths, memory_mask=mask)
    expected = 0.0
    for n in range(3):
        steps = 4 if lengths is None else lengths[n]
        for i in range(2):
            if steps and (mask is None or mask[n, i]):
                expected += (1 - weights[n, :steps, i].sum()) ** 2
    assert loss == pytest.approx(expected / 3)
    assert isinstance(loss, float)
    assert_gradients(
        lambda weights: doubly_stochastic_loss(weights, lengths, memory_mask=mask),
        lambda dloss, dweights: dloss * dweights,
        {"weights": weights},
        rng,
    )


def test_padding_is_not_read(rng):
    weights, mask = rng.random((3, 4, 2)), np.array([[1, 0], [1, 1], [0, 0]])
    expected = doubly_stochastic_loss(weights, np.array([2, 0, 4]), memory_mask=mask)
    for n, steps in enumerate((2, 0, 4)):
        weights[n, steps:] = np.nan
        weights[n, :, mask[n] == 0] = np.inf
    for one, other in zip(
        doubly_stochastic_loss(weights, np.array([2, 0, 4]), memory_mask=mask), expected, strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_loss_of_even_weights_is_zero():
    loss, dweights = doubly_stochastic_loss(np.full((2, 4, 4), 0.25, np.float32))
    assert loss == 0
    assert dweights.dtype == np.float32
    assert not dweights.any()


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_loss_of_nothing(shape):
    loss, dweights = doubly_stochastic_loss(np.zeros(shape))
    assert loss == 0
    assert dweights.shape == shape


def test_lengths_or_a_mask():
    weights = np.full((2, 3, 4), 0.25)
    with pytest.raises(ValueError, match=r"^doubly_stochastic_loss: both lengths and mask are given"):
        doubly_stochastic_loss(weights, np.array([1, 2]), mask=np.ones((2, 3)))


def test_masks_and_lengths_that_do_not_fit():
    weights = np.ones((2, 3, 4))
    with pytest.raises(ValueError, match="doubly_stochastic_loss: memory_mask has shape"):
        doubly_stochastic_loss(weights, memory_mask=np.ones((2, 3)))
    with pytest.raises(ValueError, match="lengths holds 4, expected numbers from 0 to T = 3"):
        doubly_stochastic_loss(weights, np.array([1, 4]))
