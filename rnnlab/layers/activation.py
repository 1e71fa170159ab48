"""Elementwise nonlinearities.

Forward and backward:

    relu(x) = max(0, x)        dx = dout where x > 0, else 0
    y = tanh(x)                dx = dout (1 - y^2)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rnnlab.layers.checks import check_cache, check_float, check_gradient, ops_of
from rnnlab.ops import ops_for
from rnnlab.types import Array


class ReLUCache(NamedTuple):
    """Arrays that :func:`relu_backward` needs."""

    x: Array  # any shape


class TanhCache(NamedTuple):
    """Arrays that :func:`tanh_backward` needs."""

    y: Array  # any shape, tanh(x)


def relu_forward(x: Array) -> tuple[Array, ReLUCache]:
    """Rectified linear unit, max(0, x).

    Parameters
    ----------
    x : array
        Of any shape, float32 or float64.

    Returns
    -------
    out : array of the shape of x
    cache : ReLUCache

    Raises
    ------
    TypeError
        If x is not an array of float32 or float64.
    """
    ops_of("relu_forward", x=x)
    check_float("relu_forward", "x", x)
    return np.maximum(x, 0), ReLUCache(x)


def relu_backward(dout: Array, cache: ReLUCache) -> Array:
    """Backward of :func:`relu_forward`.

    Parameters
    ----------
    dout : array of the shape of x

    Returns
    -------
    dx : array of the shape of x
        The subgradient 0 where x is 0.

    Raises
    ------
    ValueError, TypeError
        If dout differs from x in shape or dtype, or the cache is from another function.
    """
    check_cache("relu_backward", cache, ReLUCache)
    check_gradient("relu_backward", dout, cache.x.shape, cache.x.dtype)
    return np.where(cache.x > 0, dout, cache.x.dtype.type(0))


def tanh_forward(x: Array) -> tuple[Array, TanhCache]:
    """Hyperbolic tangent.

    Parameters
    ----------
    x : array
        Of any shape, float32 or float64.

    Returns
    -------
    out : array of the shape of x
    cache : TanhCache

    Raises
    ------
    TypeError
        If x is not an array of float32 or float64.
    """
    ops = ops_of("tanh_forward", x=x)
    check_float("tanh_forward", "x", x)
    y, saved = ops.empty(x.shape, x.dtype), ops.empty(x.shape, x.dtype)
    ops.tanh(x, out=y)
    saved[...] = y  # a copy, because the caller may overwrite the output
    return y, TanhCache(saved)


def tanh_backward(dout: Array, cache: TanhCache) -> Array:
    """Backward of :func:`tanh_forward`.

    Parameters
    ----------
    dout : array of the shape of x

    Returns
    -------
    dx : array of the shape of x

    Raises
    ------
    ValueError, TypeError
        If dout differs from x in shape or dtype, or the cache is from another function.
    """
    check_cache("tanh_backward", cache, TanhCache)
    check_gradient("tanh_backward", dout, cache.y.shape, cache.y.dtype)
    dx = ops_for(dout).empty(dout.shape, dout.dtype)
    dx[...] = cache.y
    dx *= cache.y
    dx -= 1
    dx *= dout
    dx *= -1
    return dx
