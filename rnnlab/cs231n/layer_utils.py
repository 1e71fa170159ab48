"""The course's ``layer_utils``: layers that are used together."""

from __future__ import annotations

from typing import Any

from rnnlab.layers import affine_backward, affine_forward, relu_backward, relu_forward
from rnnlab.types import Array

__all__ = ["affine_relu_backward", "affine_relu_forward"]


def affine_relu_forward(x: Array, w: Array, b: Array) -> tuple[Array, Any]:
    """An affine map, then relu: x (N, d_1, ..., d_k), w (D, M), b (M,) to out (N, M) and a cache."""
    a, affine_cache = affine_forward(x, w, b)
    out, relu_cache = relu_forward(a)
    return out, (affine_cache, relu_cache)


def affine_relu_backward(dout: Array, cache: Any) -> tuple[Array, Array, Array]:
    """Backward of :func:`affine_relu_forward`: dout (N, M) to dx, dw, db."""
    affine_cache, relu_cache = cache
    return affine_backward(relu_backward(dout, relu_cache), affine_cache)
