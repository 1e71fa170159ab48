"""Matrix products: the choice between the kernels, MKL and NumPy.

The kernels of :mod:`~rnnlab.ops.numba.gemm` compute products with prepacked weights and single products. On
processors other than AMD's Zen a library may compute large single products: MKL, where it is installed and
works, else NumPy's BLAS, where it is faster. The kernels of :mod:`~rnnlab.ops.numba.bfloat16` compute all
products of rounded factors. NumPy computes ``matmul`` of other dtypes and of arrays with more than two axes.
"""

from __future__ import annotations

import functools

import numpy as np
from llvmlite import binding

from rnnlab.errors import InputError
from rnnlab.ops.numba import bfloat16, gemm
from rnnlab.ops.numba.arrays import take
from rnnlab.ops.numba.blas import NumpyBlas, is_faster
from rnnlab.ops.numba.gemm import Panels
from rnnlab.ops.numba.kernel import (
    DTYPES,
    cache_folder,
    kernel,
    named_errors,
    primitive,
    shared_by,
    threads,
)
from rnnlab.ops.numba.memory import empty
from rnnlab.ops.numba.mkl import Mkl, MklUnavailableError
from rnnlab.ops.numpy.bfloat16 import rounded_to_bfloat16
from rnnlab.types import Array

__all__ = [
    "DESCRIPTION",
    "add_column_sums",
    "affine",
    "affine_into",
    "matmul",
    "matmul_add",
    "matmul_into",
    "prepacked",
    "verify",
]
_LARGE = 1 << 26  # multiplications, from which on a library may be faster than the kernels
_PARALLEL_FROM = 1 << 18  # numbers to add, worth waking other threads


def _mkl() -> tuple[Mkl | None, str]:
    """MKL, if it computes the large products, and a description of what does."""
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
    """What computes large products; None are the kernels."""
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
    if x.ndim != 2 or w.ndim != 2 or x.dtype != w.dtype or x.dtype.char not in DTYPES:
        if x.dtype == w.dtype and bfloat16.rounds(x.dtype):
            x, w = rounded_to_bfloat16(x), rounded_to_bfloat16(w)
        return np.matmul(x, w)
    if x.shape[1] != w.shape[0]:
        raise InputError(f"matmul: w has shape {w.shape}, expected (K, N) with K = {x.shape[1]} columns of x")
    out = empty((x.shape[0], w.shape[1]), x.dtype.newbyteorder("="))
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
    _add_column_sums.run(shared_by(x.size, _PARALLEL_FROM), x, out)


def verify() -> None:
    """Check products of full precision; see :func:`rnnlab.ops.numba.gemm.verify`."""
    gemm.verify(Panels, gemm.multiply)


@kernel("T[:,:], T[::1]", arguments="x (M, N); out! (N,)")
def _add_column_sums(part, parts, x, out):
    left, right = part * out.size // parts, (part + 1) * out.size // parts
    sums = np.zeros(right - left, out.dtype)
    for i in range(x.shape[0]):
        row = x[i, left:right]
        for j in range(sums.size):
            sums[j] += row[j]
    for j in range(sums.size):
        out[left + j] += sums[j]


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
            take(first, np.zeros(out.shape[0], np.int64), out)
        library.multiply(x, w, out, add=first is not None)
        return
    gemm.multiply(x, w, first, out)
