"""Elementwise nonlinearities.

relu(x) = max(0, x)        dx = dy where x > 0
tanh(x)                    dx = dy (1 - tanh(x)^2)
"""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.layers.checks import check_gradient
from rnnlab.ops import ops_for
from rnnlab.types import Array


class ReLUCache(NamedTuple):
    """What the backward of relu needs."""

    x: Array  # any shape


class TanhCache(NamedTuple):
    """What the backward of tanh needs."""

    y: Array  # any shape, tanh(x)


def relu_forward(x: Array) -> tuple[Array, ReLUCache]:
    """max(0, x) of an array of any shape. Returns out, of the same shape, and its cache."""
    ops_for(x)
    return x * (x > 0), ReLUCache(x)


def relu_backward(dout: Array, cache: ReLUCache) -> Array:
    """Backward of :func:`relu_forward`: dx, of the shape of x."""
    check_gradient("relu_backward", dout, cache.x.shape, cache.x.dtype)
    return dout * (cache.x > 0)


def tanh_forward(x: Array) -> tuple[Array, TanhCache]:
    """tanh(x) of an array of any shape. Returns out, of the same shape, and its cache."""
    ops = ops_for(x)
    y, kept = ops.empty(x.shape, x.dtype), ops.empty(x.shape, x.dtype)
    ops.tanh(x, out=y)
    kept[...] = y
    return y, TanhCache(kept)


def tanh_backward(dout: Array, cache: TanhCache) -> Array:
    """Backward of :func:`tanh_forward`: dx, of the shape of x."""
    check_gradient("tanh_backward", dout, cache.y.shape, cache.y.dtype)
    dx = ops_for(dout).empty(dout.shape, dout.dtype)
    dx[...] = cache.y
    dx *= cache.y
    dx -= 1
    dx *= dout
    dx *= -1
    return dx
