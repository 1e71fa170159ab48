"""Products with a matrix of few columns, such as inputs of one pixel per step.

cuBLAS divides a product among blocks by the tiles of its result, which here has few rows or few columns. In
these kernels all multiprocessors share the large matrix and read it once. Each function returns whether it
has done the work; other shapes, and arguments that do not match, are left to cuBLAS.
"""

from __future__ import annotations

from typing import Any

import cupy as cp

from rnnlab.ops.cuda.column_sums import add_sums
from rnnlab.ops.cuda.launch import THREADS, WARP, launch
from rnnlab.ops.precision import products_precision
from rnnlab.types import Array

__all__ = ["add_gradients", "affine_into", "matmul_into"]
NARROW = 4  # maximum number of columns, as in narrow.cu
SLABS = 256  # number of slabs of rows, each with its own sum, as in narrow.cu
LARGE = 1 << 20  # minimum number of elements for which these kernels are used
_BLOCKS = 2048  # maximum blocks of a grid; they loop over further rows


def affine_into(x: Array, w: Any, b: Array, out: Array) -> bool:
    """Write x w + b to ``out``, (M, D) (D, G) (G,) -> (M, G)."""
    fits = _matrices(x, w, out) and _narrow(x) and _large(out) and _by_rows(x, out)
    if not fits or x.shape[1] != len(w) or out.shape != (len(x), w.shape[1]) or b.shape != out.shape[1:]:
        return False
    if not _contiguous(out, b):
        return False
    arguments = x, w, b, out, *out.shape[:1], *w.shape, *_steps(x), *_steps(w, 2), *_steps(out)
    launch("narrow_affine", out.dtype, min(len(out), _BLOCKS), _threads(out, THREADS), arguments)
    return True


def matmul_into(x: Array, w: Any, out: Array) -> bool:
    """Write x w to ``out``, (M, K) (K, D) -> (M, D)."""
    fits = _matrices(x, w, out) and _narrow(w) and _large(x) and _by_rows(x, out)
    if not fits or x.shape[1] != len(w) or out.shape != (len(x), w.shape[1]):
        return False
    arguments = x, w, out, *x.shape, w.shape[1], *_steps(x), *_steps(w, 2), *_steps(out)
    blocks = min(-(-len(x) * WARP // THREADS), _BLOCKS)
    launch("narrow_product", out.dtype, blocks, THREADS, arguments)
    return True


def add_gradients(x: Array, dout: Array, dW: Array, db: Array) -> bool:
    """Add x^T dout to dW (D, G) and the column sums of dout (M, G) to db (G,)."""
    fits = _matrices(x, dout, dW) and _narrow(x) and _large(dout) and _by_rows(x, dout)
    if not fits or len(x) != len(dout) or dW.shape != (x.shape[1], dout.shape[1]):
        return False
    (rows, G), D = dout.shape, x.shape[1]
    if db.shape != (G,) or not _contiguous(dout, dW, db):
        return False
    slabs = cp.empty((SLABS, (D + 1) * G), dout.dtype)  # for each slab the gradient of W, then that of b
    arguments = dout, slabs, x, rows, D, G, *_steps(dout), *_steps(x)
    launch("narrow_gradients", dout.dtype, SLABS, _threads(dout, 2 * THREADS), arguments)
    add_sums(slabs[:, : D * G], dW.reshape(-1))
    add_sums(slabs[:, D * G :], db)
    return True


def _matrices(*arrays: Any) -> bool:
    """Whether these are matrices of one floating-point dtype, whose products are not rounded to bfloat16."""
    plain = all(isinstance(each, cp.ndarray) and each.ndim == 2 for each in arrays)
    if not plain or products_precision() == "bfloat16":
        return False
    return {each.dtype.char for each in arrays} in ({"f"}, {"d"})


def _contiguous(like: Array, *arrays: Any) -> bool:
    """Whether these are contiguous and on the device and of the dtype of ``like``."""
    return all(
        isinstance(each, cp.ndarray) and each.dtype == like.dtype and each.flags.c_contiguous
        for each in arrays
    )


def _narrow(x: Array) -> bool:
    return 0 < x.shape[1] <= NARROW


def _large(x: Array) -> bool:
    return bool(x.size >= LARGE)


def _by_rows(*arrays: Array) -> bool:
    return all(each.shape[1] == 1 or each.strides[1] == each.itemsize for each in arrays)


def _threads(x: Array, most: int) -> int:
    """The number of threads of a block: one for each column, at most ``most``."""
    return min(-(-x.shape[1] // WARP) * WARP, most)


def _steps(x: Array, axes: int = 1) -> tuple[int, ...]:
    """The distances in elements along the first axes."""
    return tuple(stride // x.itemsize for stride in x.strides[:axes])
