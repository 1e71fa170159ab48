"""Rounding to bfloat16, the upper half of the bits of float32."""

from __future__ import annotations

import numpy as np

from rnnlab.ops.precision import products_precision
from rnnlab.types import Array

__all__ = ["factors", "rounded_to_bfloat16"]


def rounded_to_bfloat16(x: Array) -> Array:
    """The nearest bfloat16 of each number, as float32; a tie goes to the one whose last bit is 0.

    Infinities, NaN and the sign of zero are kept. Numbers at least half a step above the largest bfloat16
    become infinite.

    Parameters
    ----------
    x : array of float32, of any shape
    """
    bits = x.view(np.uint32)
    bits = bits + (0x7FFF + (bits >> 16 & 1))
    return np.where(np.isnan(x), x, (bits & 0xFFFF0000).view(np.float32))


def factors(x: Array, w: Array) -> tuple[Array, Array]:
    """The factors of a product in the current precision."""
    if products_precision() == "bfloat16" and x.dtype == w.dtype == np.float32:
        return rounded_to_bfloat16(x), rounded_to_bfloat16(w)
    return x, w
