"""The stand-in of ``cupy.cublas``."""

from __future__ import annotations

import numpy as np

from . import cuda
from .array import ndarray


def gemm(
    transa: str, transb: str, a: ndarray, b: ndarray, out: ndarray, alpha: float = 1.0, beta: float = 0.0
) -> ndarray:
    """out = alpha op(a) op(b) + beta out, checked as CuPy checks it; with beta = 0, out is not read."""
    if cuda.recording is not None:
        cuda.recording.refuse_cublas()
    assert a.ndim == b.ndim == out.ndim == 2
    assert a.dtype == b.dtype == out.dtype
    assert a.dtype.char in "fd"
    x, w = (m._array.T if way == "T" else m._array for way, m in ((transa, a), (transb, b)))
    assert x.shape[1] == w.shape[0]
    assert out.shape == (x.shape[0], w.shape[1])
    assert min(*x.shape, w.shape[1]) > 0, "cuBLAS takes no empty matrix"
    with np.errstate(all="ignore"):
        product = x.dtype.type(alpha) * np.matmul(x, w)
        out._array[...] = product if beta == 0 else product + out._array * x.dtype.type(beta)
    return out
