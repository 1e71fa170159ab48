"""Activations on CuPy against the reference."""

import numpy as np

from rnnlab.ops import numpy as numpy_ops


def test_sigmoid_and_tanh(ops):
    given = np.array([-1e30, -40.0, -2.0, 0.0, 3.0])
    for name in ("sigmoid", "tanh"):
        x, expected = ops.asarray(given), getattr(numpy_ops, name)(given)
        np.testing.assert_allclose(ops.asnumpy(getattr(ops, name)(x)), expected, rtol=1e-12)
        np.testing.assert_array_equal(ops.asnumpy(x), given)
        assert getattr(ops, name)(x, out=x) is x
        np.testing.assert_allclose(ops.asnumpy(x), expected, rtol=1e-12)
