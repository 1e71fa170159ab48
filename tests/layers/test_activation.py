import re

import numpy as np
import pytest

from rnnlab.layers import relu_backward, relu_forward, tanh_backward, tanh_forward

from .reference import assert_gradients, assert_same, every_dtype, spoil

LAYERS = {"relu": (relu_forward, relu_backward), "tanh": (tanh_forward, tanh_backward)}
every_activation = pytest.mark.parametrize("name", LAYERS)


def test_relu():
    out, _ = relu_forward(np.array([-2.0, -0.0, 0.0, 0.5, 3.0]))
    np.testing.assert_array_equal(out, [0, 0, 0, 0.5, 3])


@every_dtype
def test_infinities(dtype):
    x = np.array([-np.inf, np.inf, np.nan], dtype)
    for name, expected in (("relu", [0, np.inf, np.nan]), ("tanh", [-1, 1, np.nan])):
        out, cache = LAYERS[name][0](x)
        np.testing.assert_array_equal(out, np.array(expected, dtype))
        dx = LAYERS[name][1](np.ones(3, dtype), cache)
        np.testing.assert_array_equal(dx[:2], [0, 1] if name == "relu" else [0, 0])


def test_relu_has_no_gradient_at_zero():
    _, cache = relu_forward(np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(relu_backward(np.full(3, 5.0), cache), [0, 0, 5])
    np.testing.assert_array_equal(relu_backward(np.array([np.inf, np.nan, np.inf]), cache), [0, 0, np.inf])


def test_tanh(rng):
    x = rng.standard_normal((2, 3))
    np.testing.assert_allclose(tanh_forward(x)[0], (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1), rtol=1e-12)


@every_activation
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
def test_gradients(name, shape, rng):
    assert_gradients(*LAYERS[name], {"x": rng.standard_normal(shape)}, rng)


@every_activation
@every_dtype
def test_dtype(name, dtype, rng):
    forward, backward = LAYERS[name]
    out, cache = forward(rng.standard_normal((2, 3)).astype(dtype))
    assert out.dtype == backward(out, cache).dtype == dtype


@pytest.mark.parametrize("name", list(LAYERS))
def test_outputs_may_be_overwritten(name, rng):
    forward, backward = LAYERS[name]
    out, cache = forward(rng.standard_normal((2, 3)))
    before = backward(np.ones((2, 3)), cache)
    spoil(out)
    assert_same(backward(np.ones((2, 3)), cache), before)


@every_activation
def test_what_does_not_fit(name, rng):
    forward, backward = LAYERS[name]
    with pytest.raises(TypeError, match=f"{name}_forward: x is a list, expected a NumPy or CuPy array"):
        forward([1.0])
    _, cache = forward(rng.standard_normal((2, 3)))
    message = f"{name}_backward: dout has shape (3, 2), expected (2, 3)"
    with pytest.raises(ValueError, match=re.escape(message)):
        backward(np.ones((3, 2)), cache)
    with pytest.raises(TypeError, match=f"{name}_backward: dout is a list, expected an array"):
        backward([[1.0, 2.0]], cache)
    with pytest.raises(TypeError, match=f"{name}_backward: dout has dtype float32, expected float64"):
        backward(np.ones((2, 3), np.float32), cache)
