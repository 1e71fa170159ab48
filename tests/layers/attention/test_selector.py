"""The selector: its equation, numeric gradients and errors."""

import re

import numpy as np
import pytest

from rnnlab.layers.attention.selector import selector_backward, selector_forward
from rnnlab.plain.activation import sigmoid

from ..reference import assert_gradients


def arrays(rng):
    shapes = {"context": (3, 4), "h": (3, 5), "w": (5,), "b": (1,)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def test_selector(rng):
    a = arrays(rng)
    scaled, _ = selector_forward(**a)
    beta = sigmoid(a["h"] @ a["w"] + a["b"])
    np.testing.assert_allclose(scaled, beta[:, None] * a["context"], rtol=1e-12)
    assert_gradients(selector_forward, selector_backward, a, rng)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": np.ones(3)}, "context has shape (3,), expected (N, C)"),
        ({"h": np.ones((2, 5))}, "h has shape (2, 5), expected (N, H) = (3, 5)"),
        ({"w": np.ones((5, 1))}, "w has shape (5, 1), expected (H,) = (5,)"),
        ({"b": np.ones(5)}, "b has shape (5,), expected (1,)"),
        ({"b": np.ones(1, np.float32)}, "b has dtype float32, expected float64"),
        ({"b": [0.0]}, "b is a list, expected an array"),
    ],
)
def test_what_does_not_fit_is_named(change, message, rng):
    with pytest.raises((ValueError, TypeError), match=re.escape(f"selector_forward: {message}")):
        selector_forward(**arrays(rng) | change)


def test_gradients_that_do_not_fit(rng):
    scaled, cache = selector_forward(**arrays(rng))
    with pytest.raises(ValueError, match="selector_backward: dscaled has shape"):
        selector_backward(scaled[:, :1], cache)
