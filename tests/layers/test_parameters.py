"""Parameters and gradients by name."""

import re

import numpy as np
import pytest

from rnnlab.layers.parameters import gradients_of, select_params


def test_parameters_in_the_order_of_the_names():
    params = {"b": np.zeros(2), "other": np.zeros(1), "W": np.zeros((2, 2))}
    found = select_params("f", params, {"W": "D H", "b": "H"})
    assert list(found) == ["W", "b"]
    assert all(found[name] is params[name] for name in found)


def test_missing_parameters():
    with pytest.raises(ValueError, match=r"^f: params has no W, v, expected W, b, v; found b$"):
        select_params("f", {"b": np.zeros(2)}, dict.fromkeys(("W", "b", "v")))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_new_gradients_are_zero_and_of_the_dtype_of_like(dtype):
    params = {"W": np.ones((2, 3), dtype), "b": np.ones(3, dtype)}
    found = gradients_of("f", params, np.ones(1, dtype), None)
    assert {name: array.shape for name, array in found.items()} == {"W": (2, 3), "b": (3,)}
    assert all(array.dtype == dtype and not array.any() for array in found.values())


def test_gradients_that_are_given():
    params, like = {"W": np.ones((2, 3)), "b": np.ones(3)}, np.ones(1)
    into = {"b": np.zeros(3), "W": np.zeros((2, 3)), "other": np.zeros(1)}
    found = gradients_of("f", params, like, into)
    assert list(found) == ["W", "b"]
    assert all(found[name] is into[name] for name in found)
    with pytest.raises(ValueError, match="f: into has no b, expected W, b; found W"):
        gradients_of("f", params, like, {"W": into["W"]})
    with pytest.raises(ValueError, match=re.escape("f: into has b of shape (2,)")):
        gradients_of("f", params, like, into | {"b": np.zeros(2)})
