"""Inverted dropout (Srivastava et al. 2014): in training, each unit is dropped with probability p.

    out = x * m,    m = 0 with probability p, else 1 / (1 - p)             dx = dout * m

The scale 1 / (1 - p) preserves the expectation of each unit, so that inference needs no change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rnnlab.layers.checks import (
    check_cache,
    check_float,
    check_gradient,
    check_rng,
    ops_of,
)
from rnnlab.ops import ops_for
from rnnlab.options import Probability, check_option
from rnnlab.types import Array


class DropoutCache(NamedTuple):
    """The cache of :func:`dropout_backward`, which draws the mask again from its seed."""

    shape: tuple[int, ...]  # shape of x
    dtype: np.dtype  # dtype of x
    p: float  # 0 if no unit was dropped
    seed: int  # seed of the mask, in [0, 2^63)


def dropout_forward(x: Array, p: float, *, rng: np.random.Generator | None) -> tuple[Array, DropoutCache]:
    """Drop units of an array.

    Parameters
    ----------
    x : array
        Of any shape, float32 or float64.
    p : float in [0, 1)
        The probability that a unit is dropped.
    rng : numpy Generator or None
        The generator of the mask's seed. None means inference: no unit is dropped, and out is x itself.

    Returns
    -------
    out : array of the shape of x
    cache : DropoutCache

    Raises
    ------
    ValueError
        If p is out of range.
    TypeError
        If x is not an array of float32 or float64, or rng is not a Generator.
    """
    check_option("dropout_forward", "p", Probability, p)
    check_rng("dropout_forward", rng)
    ops = ops_of("dropout_forward", x=x)
    check_float("dropout_forward", "x", x)
    if p == 0 or rng is None:
        return x, DropoutCache(x.shape, x.dtype, 0.0, 0)
    (seed,) = ops.mask_seeds(rng, 1)
    out = ops.empty(x.shape, x.dtype)
    ops.dropout(x, p, seed, out)
    return out, DropoutCache(x.shape, x.dtype, p, seed)


def dropout_backward(dout: Array, cache: DropoutCache) -> Array:
    """Backward of :func:`dropout_forward`.

    Parameters
    ----------
    dout : array of the shape of x

    Returns
    -------
    dx : array of the shape of x
        ``dout`` itself if no unit was dropped.

    Raises
    ------
    ValueError, TypeError
        If dout differs from x in shape or dtype, or the cache is from another function.
    """
    check_cache("dropout_backward", cache, DropoutCache)
    check_gradient("dropout_backward", dout, cache.shape, cache.dtype)
    if cache.p == 0:
        return dout
    ops = ops_for(dout)
    dx = ops.empty(dout.shape, dout.dtype)
    ops.dropout(dout, cache.p, cache.seed, dx)
    return dx
