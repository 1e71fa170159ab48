"""A script: primitives on kernels against NumPy's, with as many threads as RNNLAB_NUM_THREADS says."""

from __future__ import annotations

import numpy as np

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import products

SIZES = [
    (600, 700, 900),
    (601, 5, 33),
    (3, 700, 40),
    (40, 700, 3),
    (1, 1000, 1000),
    (257, 1100, 97),
    (4, 600, 9),
]


def check_products(dtype: type) -> None:
    """x w, x w + b and out + x w: single, prepacked and of transposed arrays."""
    rng = np.random.default_rng(0)
    tolerance = 1e-3 if dtype == np.float32 else 1e-10
    for n, K, G in SIZES:
        x, b = rng.standard_normal((n, K)).astype(dtype), rng.standard_normal(G).astype(dtype)
        wide = rng.standard_normal((K, G)).astype(dtype)
        for x_, w in ((x, wide), (x.T.copy().T, wide), (x, wide.T.copy().T)):
            product, out = numpy_ops.matmul(x, wide), np.empty((n, G), dtype)
            for weight in (w, products.prepacked(w)):
                products.matmul_into(x_, weight, out)
                np.testing.assert_allclose(out, product, rtol=0, atol=tolerance, err_msg=f"{n, K, G}")
                products.matmul_add(x_, weight, out)
                np.testing.assert_allclose(out, 2 * product, rtol=0, atol=tolerance, err_msg=f"{n, K, G}")
                products.affine_into(x_, weight, b, out)
                np.testing.assert_allclose(out, product + b, rtol=0, atol=tolerance, err_msg=f"{n, K, G}")


if __name__ == "__main__":
    products._MKL = None
    check_products(np.float32)
