"""Matrix products: which of the ways of multiplying serves which product.

:mod:`~rnnlab.ops.numba.gemm` multiplies by a weight that was laid out once, as the steps of a sequence do,
and single products too. On other processors than AMD's Zen, MKL does the large ones where it is installed and
works. NumPy does the rest: other dtypes, more axes.
"""

from __future__ import annotations

import numpy as np
from llvmlite import binding

from rnnlab.ops.numba import gemm
from rnnlab.ops.numba.gemm import Panels
from rnnlab.ops.numba.kernel import threads
from rnnlab.ops.numba.memory import empty
from rnnlab.ops.numba.mkl import Mkl, MklUnavailableError
from rnnlab.types import Array

__all__ = ["DESCRIPTION", "affine", "affine_into", "matmul", "matmul_add", "matmul_into", "prepacked"]
_LARGE = 1 << 26  # multiplications, from which MKL is at its best on the processors that it is made for


def _choose() -> tuple[Mkl | None, str]:
    """MKL if large products are for it to do, and what is said of it."""
    if binding.get_host_cpu_name().startswith("znver"):
        return None, "matrix products by kernels too"
    try:
        mkl = Mkl(threads())
    except MklUnavailableError as reason:
        return None, f"matrix products by kernels too (not MKL: {reason})"
    return mkl, f"MKL {mkl.version} for large matrix products, threads: {mkl.threads}"


_MKL, DESCRIPTION = _choose()


def affine(x: Array, w: Array, b: Array) -> Array:
    """x w + b, (M, D) (D, H) (H,) -> (M, H)."""
    out = empty((x.shape[0], w.shape[1]), x.dtype)
    affine_into(x, w, b, out)
    return out


def affine_into(x: Array, w: Array, b: Array, out: Array) -> None:
    """out = x w + b, (n, K) (K, G) (G,) -> (n, G), w as it is or from :func:`prepacked`."""
    if b.shape != out.shape[1:]:
        raise ValueError(f"x w + b: b has shape {b.shape}, expected {out.shape[1:]}")
    _multiply(x, w, b[None], out)


def matmul(x: Array, w: Array) -> Array:
    """x w, (n, K) (K, G) -> (n, G), or as NumPy multiplies arrays of other numbers of axes."""
    if x.ndim != 2 or w.ndim != 2 or x.dtype != w.dtype:
        return np.matmul(x, w)
    out = empty((x.shape[0], w.shape[1]), x.dtype)
    _multiply(x, w, None, out)
    return out


def prepacked(w: Array) -> Array:
    """The matrix w (K, G) in a form that is multiplied by often."""
    try:
        return Panels(w)
    except TypeError:
        return w


def matmul_into(x: Array, w: Array, out: Array) -> None:
    """out = x w, (n, K) (K, G) -> (n, G), w as it is or from :func:`prepacked`."""
    _multiply(x, w, None, out)


def matmul_add(x: Array, w: Array, out: Array) -> None:
    """out += x w, (n, K) (K, G) -> (n, G), w as it is or from :func:`prepacked`."""
    _multiply(x, w, out, out)


def _multiply(x: Array, w: Array, first: Array | None, out: Array) -> None:
    """out = first + x w; ``first`` is None, ``out`` or a row (1, G)."""
    if isinstance(w, Panels):
        w.multiply(x, first, out)
        return
    fits = x.shape[1:] == w.shape[:1] and out.shape == (x.shape[0], *w.shape[1:])
    if _MKL is not None and x.shape[0] * w.size >= _LARGE and fits and _MKL.covers(x, w, out):
        if first is not None and first is not out:
            out[...] = first
        _MKL.multiply(x, w, out, add=first is not None)
        return
    if not gemm.multiply(x, w, first, out):
        product = np.matmul(x, w)
        np.copyto(out, product if first is None else np.add(product, first, out=product))
