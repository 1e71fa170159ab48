"""Matrix products on CuPy against the reference."""

import numpy as np
import pytest

from ..cases import TOLERANCE
from .compare import assert_same, every_dtype


@every_dtype
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (0, 4, 5), (3, 0, 5), (3, 4, 0)], ids=str)
def test_products(shape, ops, dtype, normal):
    M, K, N = shape
    x, w, out = normal(M, K), normal(K, N), normal(M, N)
    assert_same(ops, "matmul", [x, w])
    assert_same(ops, "affine", [x, w, normal(N)])
    assert_same(ops, "affine_into", [x, w, normal(N), out])
    assert_same(ops, "matmul_into", [x, w, out])
    assert_same(ops, "matmul_add", [x, w, out])
    assert_same(ops, "add_column_sums", [x, normal(K)])
    assert_same(ops, "add_affine_gradients", [x, normal(M, N), normal(K, N), normal(N)])
    if x.size and w.size:
        transposed = ops.asarray(normal(K, M)).T
        added = ops.asarray(out)
        ops.matmul_add(transposed, ops.asarray(w), added)
        expected = out + ops.asnumpy(transposed) @ w
        np.testing.assert_allclose(ops.asnumpy(added), expected, **TOLERANCE[dtype])
