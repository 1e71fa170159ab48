"""Products with few rows, terms or columns, for which packing the weight is not worth it."""

from __future__ import annotations

import numpy as np

from rnnlab.ops.numba.kernel import Kernel, inlined, kernel, reduction, shared_by
from rnnlab.ops.numba.layouts import by_columns, contiguous, writeable
from rnnlab.ops.numba.memory import empty
from rnnlab.ops.numba.registers import VECTOR, columns_of
from rnnlab.types import Array

__all__ = ["FEW", "multiply_by_columns", "multiply_thin", "narrowest", "part_of"]

FEW = 4  # rows or terms below which packing the weight is not worth it
_PARALLEL_FROM = 1 << 18  # numbers of a matrix for which it is worth waking other threads
_BLOCK = 256  # numbers of a column of x that are read together, with sums that stay in the cache


def narrowest(dtype: np.dtype) -> int:
    """The least number of columns for which packing a weight is worth it: half a register."""
    return max(1, VECTOR // dtype.itemsize // 2)


def multiply_thin(
    x: Array,
    w: Array,
    first: Array | None,
    out: Array,
    add_dots: Kernel | None = None,
    add_rows: Kernel | None = None,
) -> None:
    """out = first + x w, for arrays that are checked; the kernels may be replaced."""
    if by_columns(w) or 2 * w.shape[1] < columns_of(w.dtype):
        _add(add_dots or _add_dots, contiguous(x), contiguous(w.T), first, out)
    else:
        _add(add_rows or _add_rows, writeable(x), contiguous(w), first, out)


def multiply_by_columns(x: Array, w: Array, first: Array | None, out: Array) -> None:
    """The same for few columns of w, and contiguous columns of x, as in the gradient of a weight."""
    _add(_add_columns, contiguous(x.T), contiguous(w), first, out)


def _add(add: Kernel, x: Array, w: Array, first: Array | None, out: Array) -> None:
    """out = first + the product that a kernel adds to its last argument."""
    sums = out if out.flags.c_contiguous else empty(out.shape, out.dtype)
    if first is not sums:
        sums[...] = 0 if first is None else first
    add.run(shared_by(max(x.size, w.size, out.size), _PARALLEL_FROM), x, w, sums)
    if sums is not out:
        out[...] = sums


# ---------------------------------------------------------------- kernels


@kernel(
    "T[:,::1], T[:,::1], T[:,::1]",
    arguments="x (n, K); columns (G, K); out! (n, G)",
)
def _add_dots(part, parts, x, columns, out):
    """out += x w, the columns of w one after the other."""
    top, bottom, left, right = part_of(out, part, parts)
    for i in range(top, bottom):
        for j in range(left, right):
            out[i, j] += _dot(x[i], columns[j])


@kernel(
    "T[:,:], T[:,::1], T[:,::1]",
    arguments="x (n, K); w (K, G); out! (n, G)",
)
def _add_rows(part, parts, x, w, out):
    """out += x w, row by row of w."""
    top, bottom, left, right = part_of(out, part, parts)
    for i in range(top, bottom):
        sums = out[i, left:right]
        for k in range(w.shape[0]):
            factor, row = x[i, k], w[k, left:right]
            for j in range(sums.size):
                sums[j] += factor * row[j]


@kernel(
    "T[:,::1], T[:,::1], T[:,::1]",
    arguments="columns (K, n); w (K, G); out! (n, G)",
)
def _add_columns(part, parts, columns, w, out):
    """out += x w, four columns of x at a time."""
    (K, n), G = columns.shape, w.shape[1]
    sums = np.empty((G, _BLOCK), out.dtype)
    top, bottom = part * n // parts, (part + 1) * n // parts
    for start in range(top, bottom, _BLOCK):
        stop = min(start + _BLOCK, bottom)
        for g in range(G):
            sums[g, : stop - start] = 0
        for k in range(0, K - 3, 4):
            a, b = columns[k, start:stop], columns[k + 1, start:stop]
            c, d = columns[k + 2, start:stop], columns[k + 3, start:stop]
            for g in range(G):
                own, p, q, r, s = sums[g], w[k, g], w[k + 1, g], w[k + 2, g], w[k + 3, g]
                for i in range(a.size):
                    own[i] += (p * a[i] + q * b[i]) + (r * c[i] + s * d[i])
        for k in range(K - K % 4, K):
            for g in range(G):
                for i in range(stop - start):
                    sums[g, i] += w[k, g] * columns[k, start + i]
        for i in range(stop - start):
            for g in range(G):
                out[start + i, g] += sums[g, i]


@inlined
def part_of(out, part, parts):
    """The range of a matrix that belongs to a part: first and last row, first and last column."""
    rows, columns = out.shape
    if rows >= parts:
        return part * rows // parts, (part + 1) * rows // parts, 0, columns
    return 0, rows, part * columns // parts, (part + 1) * columns // parts


@reduction
def _dot(a, b):
    total = a.dtype.type(0)
    for k in range(a.size):
        total += a[k] * b[k]
    return total
