"""Inverted dropout (Srivastava et al. 2014): in training each unit is dropped with probability p.

    out = x * m,  m = 0 with probability p, else 1 / (1 - p)             dx = dout * m

The scale keeps the expectation, so that nothing needs to change when no unit is dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers.checks import check_gradient, check_probability
from rnnlab.ops import ops_for

Array = Any


class DropoutCache(NamedTuple):
    """What the backward needs."""

    mask: Array | None  # of the shape of x; None where nothing is dropped


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
    if p == 0 or rng is None:
        return x, DropoutCache(None)
    mask = ops_for(x).dropout_mask(x.shape, p, x.dtype, rng)
    return x * mask, DropoutCache(mask)


def dropout_backward(dout: Array, cache: DropoutCache) -> Array:
    """Backward of :func:`dropout_forward`: dx, of the shape of x."""
    if cache.mask is None:
        return dout
    check_gradient("dropout_backward", dout, cache.mask.shape, cache.mask.dtype)
    return dout * cache.mask
