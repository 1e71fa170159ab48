"""Matrix products by cuBLAS, narrow products by custom kernels, and column sums."""

from __future__ import annotations

import cupy as cp
import numpy as np

from rnnlab.errors import InputError
from rnnlab.ops.cuda import checks, cublas, factors, narrow
from rnnlab.ops.cuda.column_sums import add_sums
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
    if not narrow.affine_into(x, factors.unrounded(w), b, out):
        if b.shape != out.shape[1:] or b.dtype != out.dtype:
            raise InputError(
                f"affine: b has shape {b.shape} and dtype {b.dtype}, expected {out.shape[1:]} and {out.dtype}"
            )
        out[...] = b
        cublas.gemm(x, w, out, 1.0)


def prepacked(w: Array) -> Array | factors.Factor | factors.Prepacked:
    # For products in bfloat16 the weight is rounded once; for those in tf32x3 it is split once.
    if w.dtype != np.float32:
        return w
    precision = products_precision()
    if precision == "bfloat16":
        return factors.rounded(w)
    return factors.Prepacked(w) if precision == "tf32x3" else w


def matmul_into(x: Array, w: Array, out: Array) -> None:
    if not narrow.matmul_into(x, factors.unrounded(w), out):
        cublas.gemm(x, w, out)


def matmul_add(x: Array, w: Array, out: Array) -> None:
    cublas.gemm(x, w, out, 1.0)


@checks.checked
def add_column_sums(x: Array, out: Array) -> None:
    add_sums(x, out)


@checks.checked
def add_affine_gradients(x: Array, dout: Array, dW: Array, db: Array) -> None:
    if narrow.add_gradients(x, dout, dW, db):
        return
    matmul_add(x.T, dout, dW)
    add_column_sums(dout, db)
