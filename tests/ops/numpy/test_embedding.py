"""The gradient of word vectors on NumPy against a loop."""

import numpy as np
import pytest

from rnnlab.ops import numpy as ops

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@every_dtype
def test_embedding_gradient_adds_to_the_rows_of_the_tokens(dtype, rng):
    tokens = np.array([3, 0, 3, 5, 3])
    dout, start = (
        array.astype(dtype) for array in (rng.standard_normal((5, 4)), rng.standard_normal((6, 4)))
    )
    dW, expected = start.copy(), start.astype(np.float64)
    for token, row in zip(tokens, dout, strict=True):
        expected[token] += row
    ops.embedding_gradient(dout, tokens, dW)
    assert dW.dtype == dtype
    np.testing.assert_allclose(dW, expected, rtol=1e-6)
    np.testing.assert_array_equal(dW[[1, 2, 4]], start[[1, 2, 4]])


def test_embedding_gradient_of_no_token():
    dW = np.ones((6, 4))
    ops.embedding_gradient(np.ones((0, 4)), np.ones(0, int), dW)
    np.testing.assert_array_equal(dW, 1)
