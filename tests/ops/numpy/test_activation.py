"""Activations on NumPy against their formulas."""

import numpy as np
import pytest

from rnnlab.ops import numpy as ops

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@every_dtype
def test_sigmoid(dtype, rng):
    x = rng.standard_normal((4, 5)).astype(dtype)
    saved = x.copy()
    out = ops.sigmoid(x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, 1 / (1 + np.exp(-x)), rtol=1e-6)
    np.testing.assert_array_equal(x, saved)
    np.testing.assert_array_equal(ops.sigmoid(x, out=x), out)
    np.testing.assert_array_equal(x, out)


@every_dtype
def test_sigmoid_of_large_numbers_does_not_overflow(dtype):
    np.testing.assert_array_equal(ops.sigmoid(np.array([-1e30, 0, 1e30], dtype)), [0, 0.5, 1])


def test_tanh_in_place(rng):
    x = rng.standard_normal((2, 3))
    expected = np.tanh(x)
    np.testing.assert_array_equal(ops.tanh(x), expected)
    assert ops.tanh(x, out=x) is x
    np.testing.assert_array_equal(x, expected)
