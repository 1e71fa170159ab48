"""The factors that cuBLAS reads instead of float32 matrices, if the precision of products is reduced.

"bfloat16": the rounded numbers, see :func:`rounded`.

"tf32x3": tensor cores multiply numbers with 10 bits of mantissa. Each number x with 23 bits is split into two
such numbers, x = x_hi + x_lo up to 2^-23 of x, and a product of two numbers becomes three products:

    x w = x_lo w_hi + x_hi w_lo + x_hi w_hi                     (x_lo w_lo is below 2^-22 of x w)

:func:`split` concatenates the terms along the axis K of the sum, so that cuBLAS sums them in one product, the
small ones first (Ootomo and Yokota 2022; example 28 of NVIDIA's CUTLASS):

    [x_lo  x_hi  x_hi] (M, 3K)   times   [w_hi; w_lo; w_hi] (3K, N)

If a number is not finite, x_hi is the number itself in the last term and zero in the others. Sums with
infinity and NaN are therefore those of float32. A sum that overflows may be NaN where float32 gives infinity,
and an x_lo below 1.2e-38 may be replaced by zero.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import cupy as cp
import numpy as np

from rnnlab.errors import InputError
from rnnlab.ops.cuda.launch import each
from rnnlab.types import Array, Shape

__all__ = [
    "LARGEST",
    "TERMS",
    "Factor",
    "Prepacked",
    "layout_of",
    "rounded",
    "split",
    "split_is_faster",
    "summed",
]
LARGEST = 2**31 - 1  # the largest integer of cuBLAS
# Tensor cores round their sums towards zero, so that the error grows with the number of large terms. After
# this number of terms the sum is rounded to nearest: one call of cuBLAS ends, and the next adds to its
# result.
TERMS = 512


class Factor(NamedTuple):
    """The array that cuBLAS reads instead of one float32 matrix or several."""

    data: Array  # uint16 or float32, C-contiguous
    by_columns: bool  # whether the lines are columns
    step: int  # elements from one line to the next
    apart: int  # elements from one matrix to the next, 0 if there is only one
    shape: Shape  # shape of the float32 matrix
    dtype: np.dtype = np.dtype(np.float32)  # dtype of the float32 matrix

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class Prepacked:
    """A weight of many products in "tf32x3". It is split at the first product for which that is faster.

    Parameters
    ----------
    weight : (K, N)
        Float32. Products of few rows, and those of another precision, read the weight itself.
    """

    def __init__(self, weight: Array) -> None:
        self.weight = weight
        self.shape, self.dtype, self.ndim = weight.shape, weight.dtype, weight.ndim

    @functools.cached_property
    def split(self) -> Factor:
        """The weight in the form of a second factor."""
        return split(self.weight, "w")


def unrounded(w: Array | Factor | Prepacked) -> Array | None:
    """The weight itself, or None if only its rounded elements are known."""
    if isinstance(w, Prepacked):
        return w.weight
    return None if isinstance(w, Factor) else w


def rounded(x: Array) -> Factor:
    """Round one float32 matrix or several to bfloat16, to nearest even; NaN remains NaN."""
    _, by_columns, step, apart = layout_of(x, "x")
    rows, columns = x.shape[-2:]
    lines, length = (columns, rows) if by_columns else (rows, columns)
    bits = cp.empty((*x.shape[:-2], lines, length), np.uint16)
    matrices = x.shape[0] if x.ndim == 3 else 1
    each("to_bfloat16", bits.size, x, x, bits, matrices, lines, length, apart, step)
    return Factor(bits, by_columns, length, lines * length if matrices > 1 else 0, x.shape)


def split(array: Array, name: str) -> Factor:
    """The terms of a factor for "tf32x3"; ``name`` is "x" for the first factor and "w" for the second.

    K and the distance between lines are rounded up, so that all lines are aligned. The elements in between
    are zero.
    """
    _, by_columns, step, apart = layout_of(array, name)
    rows, columns = array.shape[-2:]
    matrices = array.shape[0] if array.ndim == 3 else 1
    lines, length = (columns, rows) if by_columns else (rows, columns)
    quads = _whole(length) // 4
    if by_columns == (name == "w"):  # the sum runs along the lines
        out_lines, out_step, term = lines, 12 * quads, 4 * quads
    else:
        out_lines, out_step = _whole(lines), 4 * quads
        term = out_lines * out_step
    data = cp.empty((matrices, 3 * out_lines * 4 * quads), np.float32)
    low, high = (0, term) if name == "x" else (term, 0)
    sizes = matrices, lines, length, apart, step, out_lines, quads, out_step, low, high, 2 * term
    each("split_tf32", matrices * out_lines * quads, array, array, data, *sizes)
    return Factor(data, by_columns, out_step, data.shape[1] if matrices > 1 else 0, array.shape)


def summed(K: int) -> tuple[tuple[int, int], ...]:
    """The parts of the sum over the terms of split factors, as start and length; one cuBLAS call per part."""
    K = _whole(K)
    first = min(K, TERMS)
    later = tuple((2 * K + start, min(TERMS, K - start)) for start in range(first, K, TERMS))
    return (0, 2 * K + first), *later


def _whole(size: int) -> int:
    """The size rounded up to a multiple of four numbers, which are 16 bytes."""
    return -(-size // 4) * 4


# Estimates for an NVIDIA H100 and large products.
_FLOAT32_RATE = 45e12  # operations per second in float32
_TF32_RATE = 350e12  # operations per second on tensor cores
_BANDWIDTH = 3.2e12  # bytes per second
_LAUNCH = 3e-6  # seconds for a kernel within a graph
_LEAST = 32  # minimum of M, K and N


def split_is_faster(matrices: int, M: int, K: int, N: int, sizes: tuple[int, int], prepacked: bool) -> bool:
    """Whether a product of split factors is faster than one in float32.

    Parameters
    ----------
    matrices, M, K, N : int
        The sizes of the product, of which there are ``matrices``.
    sizes : (int, int)
        The numbers of elements of the factors.
    prepacked : bool
        Whether the second factor is a weight that is split only once.
    """
    if min(M, K, N) < _LEAST or 3 * _whole(max(M, K, N)) > LARGEST:
        return False
    operations = 2 * matrices * M * K * N
    saved = operations / _FLOAT32_RATE - 3 * operations / _TF32_RATE
    # For each element, splitting reads 4 bytes and writes 12; the product then reads 12 instead of 4.
    moved = 24 * sizes[0] + (8 if prepacked else 24) * sizes[1]
    calls = len(summed(K)) - 1  # calls after the first, each of which reads and writes the result
    spent = moved / _BANDWIDTH + (1 if prepacked else 2) * _LAUNCH
    return saved > spent + calls * (8 * matrices * M * N / _BANDWIDTH + _LAUNCH)


def layout_of(array: Array | Factor, name: str) -> tuple[int, bool, int, int]:
    """The layout of one matrix or several.

    Returns the pointer, whether the columns rather than the rows are contiguous, and the numbers of elements
    from one line to the next and from one matrix to the next.
    """
    if isinstance(array, Factor):
        return array.data.data.ptr, array.by_columns, array.step, array.apart
    shape, strides, itemsize = array.shape, array.strides, array.itemsize
    (rows, columns), (down, across) = shape[-2:], strides[-2:]
    apart = strides[0] // itemsize if len(shape) == 3 and shape[0] > 1 else 0
    if rows <= LARGEST and columns <= LARGEST and apart >= 0:
        if across == itemsize or columns == 1:
            step = down // itemsize if rows > 1 else columns
            if columns <= step <= LARGEST:
                return array.data.ptr, False, step, apart
        if down == itemsize or rows == 1:
            step = across // itemsize if columns > 1 else rows
            if rows <= step <= LARGEST:
                return array.data.ptr, True, step, apart
    raise InputError(
        f"x w: {name} has shape {shape} and strides {strides} for elements of {itemsize} bytes, "
        f"expected contiguous rows or columns that do not overlap, at most {LARGEST} long: copy it first"
    )
