"""The selector: its equation, numeric gradients and errors."""

import re

import numpy as np
import pytest

from rnnlab.layers.attention.selector import selector_backward, selector_forward
from rnnlab.plain.activation import sigmoid

from ..reference import assert_gradients


def test_selector(rng):
    a = {
        name: rng.standard_normal(shape)
        for name, shape in {"context": (3, 4), "h": (3, 5), "w": (5,), "b": (1,)}.items()
    }
    scaled, _ = selector_forward(**a)
    beta = sigmoid(a["h"] @ a["w"] + a["b"])
    np.testing.assert_allclose(scaled, beta[:, None] * a["context"], rtol=1e-12)
    assert_gradients(selector_forward, selector_backward, a, rng)
    with pytest.raises(ValueError, match=re.escape("selector_forward: b has shape (5,), expected (1,)")):
        selector_forward(a["context"], a["h"], a["w"], a["w"])
    for wrong in (a["b"].astype(np.float32), [0.0]):
        with pytest.raises(TypeError, match="selector_forward: b"):
            selector_forward(a["context"], a["h"], a["w"], wrong)
