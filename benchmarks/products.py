"""Matrix products (n, K) (K, G) alone, of few rows and of many, compared with NumPy and PyTorch.

rnnlab multiplies with a prepacked weight, as in the steps of a sequence, or without; PyTorch's
weight is stored by rows or by columns. The faster one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = Any


class Sizes(NamedTuple):
    """The sizes of a product."""

    n: int
    K: int
    G: int


CASES = {
    f"n={n} K={K} G={G}": Sizes(n, K, G)
    for n, K, G in ((10, 512, 2048), (25, 512, 2048), (16, 256, 1024), (128, 512, 2048), (2048, 512, 2048))
}
SIDES = ("rnnlab packed", "rnnlab", "numpy", "torch", "torch transposed")
TARGETS: dict[str, dict[str, float | None]] = {case: {"numpy": None, "torch": None} for case in CASES}


def prepare(side: str, sizes: Sizes) -> Callable[[], Array]:
    """Return the product."""
    n, K, G = sizes
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((n, K), np.float32), rng.standard_normal((K, G), np.float32)
    if side == "numpy":
        return lambda: x @ w
    if side.startswith("torch"):
        import torch

        a, b = torch.from_numpy(x), torch.from_numpy(w)
        if side.endswith("transposed"):
            b = b.T.contiguous().T
        return lambda: a @ b

    from rnnlab.ops import ops_for

    ops, out = ops_for(x, w), np.empty((n, G), np.float32)
    weight = ops.prepacked(w) if side.endswith("packed") else w

    def work() -> Array:
        ops.matmul_into(x, weight, out)
        return out

    return work
