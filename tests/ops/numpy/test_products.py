"""Matrix products on NumPy against NumPy's operators."""

import numpy as np
import pytest

from rnnlab.ops import numpy as ops


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def normal(rng, *shapes):
    return [rng.standard_normal(shape) for shape in shapes]


def test_affine(rng):
    x, w, b, out = normal(rng, (3, 4), (4, 5), (5,), (3, 5))
    assert_close(ops.affine(x, w, b), x @ w + b)
    ops.affine_into(x, ops.prepacked(w), b, out)
    assert_close(out, x @ w + b)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3, 128, 129])
def test_products_with_a_packed_weight(transposed, n, rng):
    """Into a part of the columns, as in the recurrent layers."""
    x, w, out = normal(rng, (n, 4), (5, 4) if transposed else (4, 5), (n, 8))
    w = w.T if transposed else w
    start = out.copy()
    ops.matmul_add(x, ops.prepacked(w), out[:, 2:7])
    assert_close(out[:, 2:7], start[:, 2:7] + x @ w)
    np.testing.assert_array_equal(out[:, [0, 1, 7]], start[:, [0, 1, 7]])
    ops.matmul_into(x, ops.prepacked(w), out[:, 2:7])
    assert_close(out[:, 2:7], x @ w)


def test_column_sums_are_added(rng):
    x, out = normal(rng, (5, 3), (3,))
    expected = out + x.sum(axis=0)
    ops.add_column_sums(x, out)
    assert_close(out, expected)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_gradients_of_an_affine_map_are_added(n, rng):
    x, dout, dW, db = normal(rng, (n, 4), (n, 3), (4, 3), (3,))
    expected = dW + x.T @ dout, db + dout.sum(axis=0)
    ops.add_affine_gradients(x, dout, dW, db)
    assert_close(dW, expected[0])
    assert_close(db, expected[1])
