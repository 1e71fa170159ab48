"""Matrix products: the choice between the kernels, MKL and NumPy.

The kernels of :mod:`~rnnlab.ops.numba.gemm` compute products with prepacked weights and single products. On
processors other than AMD's Zen, a library may compute large single products: MKL if it is installed and
works, else NumPy's BLAS if it is faster. The kernels of :mod:`~rnnlab.ops.numba.bfloat16` compute all
products of rounded factors. NumPy computes ``matmul`` of other dtypes and of arrays with more than two axes.
"""

from __future__ import annotations

import functools
from contextlib import suppress

import numpy as np
from llvmlite import binding

from rnnlab.errors import InputError
from rnnlab.ops.arguments import checked
from rnnlab.ops.numba import bfloat16, gemm
from rnnlab.ops.numba.arrays import take
from rnnlab.ops.numba.blas import NumpyBlas, is_faster
from rnnlab.ops.numba.gemm import Panels
from rnnlab.ops.numba.kernel import (
    DTYPES,
    RefusedError,
    cache_folder,
    kernel,
    named_errors,
    primitive,
    shared_by,
    threads,
)
from rnnlab.ops.numba.layouts import contiguous, writeable
from rnnlab.ops.numba.memory import empty
from rnnlab.ops.numba.mkl import Mkl, MklUnavailableError
from rnnlab.ops.numpy.bfloat16 import rounded_to_bfloat16
from rnnlab.types import Array

__all__ = [
    "DESCRIPTION",
    "NARROW",
    "add_affine_gradients",
    "add_column_sums",
    "affine",
    "affine_into",
    "matmul",
    "matmul_add",
    "matmul_into",
    "prepacked",
    "verify",
]
_LARGE = 1 << 26  # multiplications from which on a library may be faster than the kernels
NARROW = 4  # maximum columns of an input that is multiplied within another kernel, not in a separate product
_PARALLEL_FROM = 1 << 18  # additions for which it is worth waking other threads


def _mkl() -> tuple[Mkl | None, str]:
    """MKL if it computes the large products, and a description of the library that does."""
    if _ZEN:
        return None, "matrix products by kernels too"
    try:
        mkl = Mkl(threads())
    except MklUnavailableError as reason:
        return None, f"large matrix products by NumPy's BLAS if it is faster (not MKL: {reason})"
    return mkl, f"MKL {mkl.version} for large matrix products, threads: {mkl.threads}"


_ZEN = binding.get_host_cpu_name().startswith("znver")
_MKL, DESCRIPTION = _mkl()


@functools.cache
def _library() -> Mkl | NumpyBlas | None:
    """The library that computes large products; None if the kernels do."""
    if _MKL is not None or _ZEN:
        return _MKL

    def by_kernels(x: Array, w: Array, out: Array) -> None:
        gemm.multiply(x, w, None, out)

    return NumpyBlas() if is_faster(by_kernels, cache_folder(), threads()) else None


@named_errors
def affine(x: Array, w: Array, b: Array) -> Array:
    out = empty((x.shape[0], w.shape[1]), x.dtype)
    _multiply(x, w, b[None], out)
    return out


@named_errors
def affine_into(x: Array, w: Array, b: Array, out: Array) -> None:
    _multiply(x, w, b[None], out)


def matmul(x: Array, w: Array) -> Array:
    kinds = x.dtype == w.dtype and x.dtype.isnative and x.dtype.char in DTYPES
    if x.ndim != 2 or w.ndim != 2 or not kinds:
        if x.dtype == w.dtype and bfloat16.rounds(x.dtype):
            x, w = rounded_to_bfloat16(x), rounded_to_bfloat16(w)
        return np.matmul(x, w)
    if x.shape[1] != w.shape[0]:
        raise InputError(f"matmul: w has shape {w.shape}, expected (K, N) with K = {x.shape[1]} columns of x")
    out = empty((x.shape[0], w.shape[1]), x.dtype)
    _multiply(x, w, None, out)
    return out


def prepacked(w: Array) -> Array:
    try:
        return (bfloat16.RoundedPanels if bfloat16.rounds(w.dtype) else Panels)(w)
    except TypeError:
        return w


@named_errors
def matmul_into(x: Array, w: Array, out: Array) -> None:
    _multiply(x, w, None, out)


@named_errors
def matmul_add(x: Array, w: Array, out: Array) -> None:
    _multiply(x, w, out, out)


@primitive
def add_column_sums(x: Array, out: Array) -> None:
    by_rows = x if x.flags.c_contiguous else x.copy()
    _add_column_sums.run(shared_by(x.size, _PARALLEL_FROM), by_rows, out)


@checked
def add_affine_gradients(x: Array, dout: Array, dW: Array, db: Array) -> None:
    if x.shape[1] <= NARROW and not bfloat16.rounds(dout.dtype):
        with suppress(RefusedError):
            parts = shared_by(dout.size, _PARALLEL_FROM)
            _add_narrow_gradients.run(parts, x, contiguous(dout), dW, db)
            return
    _multiply(x.T, dout, dW, dW)
    add_column_sums(dout, db)


def verify() -> None:
    """Check products of full precision; see :func:`rnnlab.ops.numba.gemm.verify`."""
    gemm.verify(Panels, gemm.multiply)


@kernel("T[:,::1], T[::1]")
def _add_column_sums(part, parts, x, out):
    M, left, right = x.shape[0], part * out.size // parts, (part + 1) * out.size // parts
    sums = np.zeros(right - left, out.dtype)
    for i in range(0, M - 3, 4):  # four rows at once, so that the sums are accessed a quarter as often
        a, b, c, d = x[i, left:right], x[i + 1, left:right], x[i + 2, left:right], x[i + 3, left:right]
        for j in range(sums.size):
            sums[j] += (a[j] + b[j]) + (c[j] + d[j])
    for i in range(M - M % 4, M):
        for j in range(sums.size):
            sums[j] += x[i, left + j]
    for j in range(sums.size):
        out[left + j] += sums[j]


@kernel("T[:,:], T[:,::1], T[:,::1], T[::1]", arguments="x (n, K); dout (n, G); dW! (K, G); db! (G,)")
def _add_narrow_gradients(part, parts, x, dout, dW, db):
    """Both sums for a part of the columns, in one pass over ``dout``."""
    (M, K), left, right = x.shape, part * db.size // parts, (part + 1) * db.size // parts
    sums = np.zeros((K + 1, right - left), db.dtype)
    bias = sums[K]
    for i in range(0, M - 3, 4):
        a, b = dout[i, left:right], dout[i + 1, left:right]
        c, d = dout[i + 2, left:right], dout[i + 3, left:right]
        for j in range(bias.size):
            bias[j] += (a[j] + b[j]) + (c[j] + d[j])
        for k in range(K):
            weight, p, q, r, s = sums[k], x[i, k], x[i + 1, k], x[i + 2, k], x[i + 3, k]
            for j in range(weight.size):
                weight[j] += (p * a[j] + q * b[j]) + (r * c[j] + s * d[j])
    for i in range(M - M % 4, M):
        for j in range(bias.size):
            bias[j] += dout[i, left + j]
        for k in range(K):
            for j in range(bias.size):
                sums[k, j] += x[i, k] * dout[i, left + j]
    for j in range(bias.size):
        db[left + j] += bias[j]
        for k in range(K):
            dW[k, left + j] += sums[k, j]


def _multiply(x: Array, w: Array, first: Array | None, out: Array) -> None:
    """out = first + x w; ``first`` is None, ``out`` or a row (1, G)."""
    if isinstance(w, Panels):
        w.multiply(x, first, out)
        return
    gemm.check(x, w, first, out)
    if bfloat16.rounds(out.dtype):
        bfloat16.multiply(x, w, first, out)
        return
    library = _library() if x.shape[0] * w.size >= _LARGE else None
    if library is not None and library.covers(x, w, out):
        if first is not None and first is not out:
            take(writeable(first), np.zeros(out.shape[0], np.int64), out)
        library.multiply(x, w, out, add=first is not None)
        return
    gemm.multiply(x, w, first, out)
