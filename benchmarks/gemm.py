"""The best rate of matrix products: one product of two square matrices with as many operations.

A case may be compared with this product. The ratio is the share of the case's time that its products alone
would take at the best rate of this machine: the GEMM roofline.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SIDES = ("sgemm rnnlab", "sgemm numpy", "sgemm torch")


def prepare(side: str, flops: int) -> Callable[[], object]:
    """A product of about this many floating-point operations, 2 n^3, by one of the libraries."""
    n = round((flops / 2) ** (1 / 3))
    a, b = np.random.default_rng(0).standard_normal((2, n, n)).astype(np.float32)
    if side == "sgemm torch":
        import torch

        x, y = torch.from_numpy(a), torch.from_numpy(b)
        return lambda: x @ y
    if side == "sgemm rnnlab":
        from rnnlab.ops import ops_for

        return lambda: ops_for(a, b).matmul(a, b)
    return lambda: a @ b
