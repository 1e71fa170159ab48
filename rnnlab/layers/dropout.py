"""Inverted dropout (Srivastava et al. 2014): in training each unit is dropped with probability p.

    out = x * m,  m = 0 with probability p, else 1 / (1 - p)             dx = dout * m

The scale keeps the expectation, so that nothing needs to change when no unit is dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers.checks import check_gradient, check_probability, check_rng
from rnnlab.ops import ops_for
from rnnlab.types import Array


class DropoutCache(NamedTuple):
    """What the backward needs: not the mask, which follows from the key, but what makes it again."""

    shape: tuple[int, ...]  # of x
    dtype: Any  # of x
    p: float  # 0 where nothing is dropped
    key: int  # in [0, 2^63), from the generator


def dropout_forward(x: Array, p: float, *, rng: np.random.Generator | None) -> tuple[Array, DropoutCache]:
    """Drop units of an array of any shape.

    Parameters
    ----------
    x : array
    p : float in [0, 1)
        The probability that a unit is dropped.
    rng : numpy Generator or None
        Where the noise comes from. None is inference: out is x itself.

    Returns
    -------
    out : array of the shape of x
    cache : DropoutCache

    Raises
    ------
    ValueError
        If p is out of range.
    """
    check_probability("dropout_forward", "p", p)
    check_rng("dropout_forward", rng)
    if p == 0 or rng is None:
        return x, DropoutCache(x.shape, x.dtype, 0.0, 0)
    ops = ops_for(x)
    (key,) = ops.mask_seeds(rng, 1)
    out = ops.empty(x.shape, x.dtype)
    ops.dropout(x, p, key, out)
    return out, DropoutCache(x.shape, x.dtype, p, key)


def dropout_backward(dout: Array, cache: DropoutCache) -> Array:
    """Backward of :func:`dropout_forward`: dx, of the shape of x."""
    if cache.p == 0:
        return dout
    check_gradient("dropout_backward", dout, cache.shape, cache.dtype)
    ops = ops_for(dout)
    dx = ops.empty(dout.shape, dout.dtype)
    ops.dropout(dout, cache.p, cache.key, dx)
    return dx
