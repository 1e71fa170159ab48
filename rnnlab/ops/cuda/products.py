"""Matrix products by cuBLAS."""

from __future__ import annotations

import functools

import cupy as cp
import numpy as np

from rnnlab.ops.arguments import checked
from rnnlab.ops.cuda import cublas
from rnnlab.ops.precision import products_precision
from rnnlab.types import Array


def matmul(x: Array, w: Array) -> Array:
    if x.ndim != 2 or w.ndim != 2:
        return cublas.batched(x, w)
    out = cp.empty((x.shape[0], w.shape[1]), x.dtype)
    cublas.gemm(x, w, out)
    return out


def affine(x: Array, w: Array, b: Array) -> Array:
    out = cp.empty((x.shape[0], w.shape[1]), x.dtype)
    affine_into(x, w, b, out)
    return out


def affine_into(x: Array, w: Array, b: Array, out: Array) -> None:
    out[...] = b
    cublas.gemm(x, w, out, 1.0)


def prepacked(w: Array) -> Array:
    # Where products are computed in bfloat16, the weight is rounded once.
    if products_precision() == "bfloat16" and w.dtype == np.float32:
        return cublas.rounded(w)
    return w


def matmul_into(x: Array, w: Array, out: Array) -> None:
    cublas.gemm(x, w, out)


def matmul_add(x: Array, w: Array, out: Array) -> None:
    cublas.gemm(x, w, out, 1.0)


def add_column_sums(x: Array, out: Array) -> None:
    # A product with ones keeps more blocks busy than a sum does.
    rows, device = x.shape[0], cp.cuda.runtime.getDevice()
    ones = _ones(max(rows - 1, 0).bit_length(), x.dtype.char, device)[:, :rows]
    cublas.gemm(ones, x, out[None], 1.0, "float32")


@checked
def add_affine_gradients(x: Array, dout: Array, dW: Array, db: Array) -> None:
    matmul_add(x.T, dout, dW)
    add_column_sums(dout, db)


@functools.cache
def _ones(bits: int, dtype: str, device: int) -> Array:
    """A row of 2^bits ones on the device in use; cached, since a graph reads it again."""
    ones = cp.ones((1, 1 << bits), dtype)
    cp.cuda.get_current_stream().synchronize()  # once, and any stream may read them
    return ones
