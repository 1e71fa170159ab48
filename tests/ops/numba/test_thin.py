"""Products with few rows, terms or columns."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba import thin
from rnnlab.ops.numba.thin import multiply_by_columns, multiply_thin, narrowest, part_of

from .compare import every_dtype

SIZES = [(3, 5, 4), (1, 9, 100), (700, 6, 1), (5, 1, 7), (40, 300, 3), (2, 0, 3)]


@every_dtype
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("w_by_columns", [False, True])
def test_thin(w_by_columns, sizes, dtype, normal):
    n, K, G = sizes
    w = normal(K, G)
    check(multiply_thin, normal(n, K), np.asfortranarray(w) if w_by_columns else w, dtype, normal)


@every_dtype
@pytest.mark.parametrize("n", [1, 5, 300])
def test_every_number_of_parts_gives_the_same_bits(n, dtype, normal):
    x, w, start = normal(n, 9), normal(9, 5), normal(n, 5)
    for add, factors in (
        (thin._add_dots, (x, w.T.copy())),
        (thin._add_rows, (x, w)),
        (thin._add_columns, (x.T.copy(), w)),
    ):
        found = []
        for parts in (1, 2, 3, 7, 64):
            found.append(start.copy())
            add.run(parts, *factors, found[-1])
            np.testing.assert_array_equal(found[-1], found[0])
        np.testing.assert_allclose(found[0], start + x @ w, rtol=1e-4, atol=1e-4)


@every_dtype
@pytest.mark.parametrize("n", [1, 6, thin._BLOCK, 2 * thin._BLOCK + 3])
@pytest.mark.parametrize("K", [0, 3, 4, 9])
def test_by_columns(K, n, dtype, normal):
    check(multiply_by_columns, np.asfortranarray(normal(n, K)), normal(K, 5), dtype, normal)


def check(multiply, x, w, dtype, normal):
    """Every initial value; contiguous and other results."""
    n, G = len(x), w.shape[1]
    start, row = normal(n, G), normal(1, G)
    for wide in (False, True):
        for first in (None, row, start):
            out = np.full((n, G + 2), 7, dtype)[:, 1:-1] if wide else np.empty((n, G), dtype)
            out[...] = start
            multiply(x, w, out if first is start else first, out)
            expected = x.astype(float) @ w.astype(float) + (0 if first is None else first)
            tolerance = 1e-4 if dtype == np.float32 else 1e-12
            np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
            assert not wide or (out.base[:, [0, -1]] == 7).all()


def test_the_narrowest_weight():
    assert narrowest(np.dtype(np.float32)) == max(1, thin.VECTOR // 8)
    assert narrowest(np.dtype(np.float64)) == max(1, thin.VECTOR // 16)


@pytest.mark.parametrize("shape", [(7, 3), (2, 9), (1, 1), (0, 4)])
def test_parts_cover_a_matrix_once(shape):
    counts, out = np.zeros(shape), np.empty(shape)
    for part in range(3):
        top, bottom, left, right = part_of.py_func(out, part, 3)
        counts[top:bottom, left:right] += 1
    assert (counts == 1).all()
