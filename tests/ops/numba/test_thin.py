"""Products with few rows, terms or columns."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba import thin
from rnnlab.ops.numba.kernel import always_parallel
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
@pytest.mark.parametrize("n", [1, 6, thin._BLOCK, 2 * thin._BLOCK + 3])
@pytest.mark.parametrize("K", [0, 3, 4, 9])
def test_by_columns(K, n, dtype, normal):
    check(multiply_by_columns, np.asfortranarray(normal(n, K)), normal(K, 5), dtype, normal)


def check(multiply, x, w, dtype, normal):
    """Every initial value, contiguous and other results, and the same bits in several parts."""
    n, G = len(x), w.shape[1]
    start, row = normal(n, G), normal(1, G)
    for wide in (False, True):
        for first in (None, row, start):
            found = []
            for parallel in (False, True):
                out = np.full((n, G + 2), 7, dtype)[:, 1:-1] if wide else np.empty((n, G), dtype)
                out[...] = start
                if parallel:
                    with always_parallel():
                        multiply(x, w, out if first is start else first, out)
                else:
                    multiply(x, w, out if first is start else first, out)
                found.append(out)
            expected = x.astype(float) @ w.astype(float) + (0 if first is None else first)
            tolerance = 1e-4 if dtype == np.float32 else 1e-12
            np.testing.assert_allclose(found[0], expected, rtol=tolerance, atol=tolerance)
            np.testing.assert_array_equal(*found)
            assert not wide or (found[0].base[:, [0, -1]] == 7).all()


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
