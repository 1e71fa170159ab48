"""The checks of the tests themselves: they find a gradient that is wrong in one number."""

import numpy as np
import pytest

from .reference import assert_gradients


def forward(x, W):
    return np.tanh(x @ W), (x, W)


def backward(dout, cache):
    x, W = cache
    da = dout * (1 - np.tanh(x @ W) ** 2)
    return da @ W.T, x.T @ da


def wrong_by(factor, place):
    def wrong(dout, cache):
        dx, dW = backward(dout, cache)
        dW[place] *= factor
        return dx, dW

    return wrong


every_way = pytest.mark.parametrize("directions", [None, 1])


def inputs(rng):
    return {"x": rng.standard_normal((4, 5)), "W": rng.standard_normal((5, 6))}


@every_way
def test_a_right_gradient(directions, rng):
    assert_gradients(forward, backward, inputs(rng), rng, directions=directions)


@every_way
@pytest.mark.parametrize("factor", [-1, 0, 1.001, np.nan])
def test_one_wrong_number(factor, directions, rng):
    with pytest.raises(AssertionError, match="W"):
        assert_gradients(forward, wrong_by(factor, (2, 3)), inputs(rng), rng, directions=directions)


@every_way
def test_a_gradient_of_nothing(directions, rng):
    empty = {"x": np.zeros((0, 5)), "W": np.zeros((5, 6))}
    assert_gradients(forward, backward, empty, rng, directions=directions)


@every_way
def test_a_gradient_that_should_be_zero(directions, rng):
    def unused(dout, cache):
        return backward(dout, cache)[0], np.ones((5, 6))

    with pytest.raises(AssertionError, match="W"):
        assert_gradients(lambda x, W: forward(x, 0 * W), unused, inputs(rng), rng, directions=directions)
