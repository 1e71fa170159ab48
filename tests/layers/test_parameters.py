"""The parameters of a layer, and the arrays that their gradients are added to."""

import re

import numpy as np
import pytest

from rnnlab.layers import lstm_backward, lstm_forward, recurrent_backward
from rnnlab.layers.parameters import gradient_arrays, gradients_of, select_params


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


def test_the_arrays_that_gradients_are_added_to():
    W = np.zeros((2, 3))
    (fresh,) = gradient_arrays("f", {"dW": W}, np.zeros(1), None)
    assert fresh.shape == (2, 3)
    assert not fresh.any()
    into = (np.zeros((2, 3)),)
    assert gradient_arrays("f", {"dW": W}, np.zeros(1), into) is into
    for wrong, error, message in (
        (np.zeros((2, 3)), ValueError, "f: into is ndarray, expected a tuple of dW"),
        ((np.zeros((2, 3)),) * 2, ValueError, "f: into is 2 arrays, expected a tuple of dW"),
        ((1.0,), TypeError, "f: into has a float for dW, expected an array"),
        (
            (np.zeros((3, 2)),),
            ValueError,
            "f: into has dW of shape (3, 2) and dtype float64, expected (2, 3)",
        ),
        ((W,), ValueError, "f: into has dW in the memory of the parameter of dW, expected its own"),
        ((W[::-1],), ValueError, "f: into has dW in the memory of the parameter of dW, expected its own"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            gradient_arrays("f", {"dW": W}, np.zeros(1), wrong)


def test_gradients_are_not_added_to_arrays_that_the_backward_reads(rng):
    """Where they overlap, later steps would read the gradient of earlier ones."""
    N, T, D, H = 4, 3, 5, 6
    x, h0 = rng.standard_normal((N, T, D)), rng.standard_normal((N, H))
    shapes = (D, 4 * H), (H, 4 * H), (4 * H,)
    weights = [rng.standard_normal(shape) for shape in shapes]
    h, cache = lstm_forward(x, h0, *weights)
    dh = rng.standard_normal(h.shape)
    for name, read in (("x", x), ("dh", dh)):
        dWx, dWh, _ = map(np.zeros, shapes)
        with pytest.raises(ValueError, match=f"lstm_backward: into has db in the memory of {name}, expected"):
            lstm_backward(dh, cache, into=(dWx, dWh, read.reshape(-1)[: 4 * H]))
        into = {"Wx": dWx, "Wh": dWh, "b": read.reshape(-1)[: 4 * H]}
        with pytest.raises(ValueError, match=f"recurrent_backward: into has b in the memory of {name}"):
            recurrent_backward(dh, cache, into=into)


def test_gradients_are_not_added_to_other_parameters_or_twice_to_one_array(rng):
    N, T, H = 2, 3, 4
    shapes = (H, 4 * H), (H, 4 * H), (4 * H,)
    x, h0, (Wx, Wh, b) = np.ones((N, T, H)), np.ones((N, H)), map(np.ones, shapes)
    h, cache = lstm_forward(x, h0, Wx, Wh, b)
    dWx, dWh, db = map(np.zeros, shapes)
    for into, message in (
        ((Wh, dWh, db), "into has dWx in the memory of the parameter of dWh"),
        ((dWx, dWx, db), "into has dWx in the memory of dWh|into has dWh in the memory of dWx"),
        ((dWx, dWh, dWh[0]), "into has db in the memory of dWh|into has dWh in the memory of db"),
    ):
        with pytest.raises(ValueError, match=message):
            lstm_backward(h, cache, into=into)
    flat = np.zeros(dWx.size + dWh.size + db.size)  # neighbours share no element
    parts = np.split(flat, [dWx.size, dWx.size + dWh.size])
    lstm_backward(h, cache, into=tuple(map(np.reshape, parts, shapes)))
    assert flat.any()
    columns = np.zeros((H, 8 * H))  # whose halves lie between each other
    lstm_backward(h, cache, into=(columns[:, : 4 * H], columns[:, 4 * H :], db))


def test_tied_parameters_may_have_one_gradient(rng):
    N, T, H = 2, 3, 4
    W, b = rng.standard_normal((H, 4 * H)), rng.standard_normal(4 * H)
    h, cache = lstm_forward(rng.standard_normal((N, T, H)), np.zeros((N, H)), W, W, b)
    _, _, dWx, dWh, _ = lstm_backward(h, cache)
    dW = np.zeros_like(W)
    lstm_backward(h, cache, into=(dW, dW, np.zeros_like(b)))
    np.testing.assert_allclose(dW, dWx + dWh)
