"""MKL's matrix products, from the ``mkl`` wheel, for kernels to call.

MKL works on OpenMP's threads as GNU made them. The Intel kind, its default, gives wrong products without a
word where PyTorch has loaded GNU's before; a wrong product is worse than a slow one, so MKL is tried against
NumPy before anything uses it.
"""

from __future__ import annotations

import ctypes
import functools
from importlib import metadata
from typing import Any

import numpy as np

__all__ = ["Mkl", "MklUnavailableError"]

Array = Any

_ROW_MAJOR, _AS_IT_IS, _RIGHT = 101, 111, 162  # of CBLAS
_ONE_THREAD, _GNU_THREADS, _32_BIT_INTEGERS = 1, 3, 0  # of MKL
_REAL: dict[np.dtype, tuple[str, Any]] = {
    np.dtype(np.float32): ("s", ctypes.c_float),
    np.dtype(np.float64): ("d", ctypes.c_double),
}


class MklUnavailableError(Exception):
    """Why MKL is not used."""


class Mkl:
    """MKL, loaded, set to a number of threads, and tried.

    Parameters
    ----------
    threads : int
        What it may use; one if GNU's OpenMP is missing.

    Attributes
    ----------
    threads : int
        What it uses.

    Raises
    ------
    MklUnavailableError
        If it is not installed, cannot be loaded, or multiplies wrongly.
    """

    def __init__(self, threads: int) -> None:
        self._library = _load(_path())
        self._library.MKL_Set_Interface_Layer(_32_BIT_INTEGERS)
        layer = _GNU_THREADS if threads > 1 and _has_gnu_openmp() else _ONE_THREAD
        if self._library.MKL_Set_Threading_Layer(layer) != layer:
            raise MklUnavailableError("something else in this process has set it to other threads")
        self.threads = threads if layer == _GNU_THREADS else 1
        self._library.MKL_Set_Num_Threads(self.threads)
        self._try()

    def address(self, function: str) -> int:
        """Where a function lies, ``cblas_sgemm`` say."""
        return ctypes.cast(getattr(self._library, function), ctypes.c_void_p).value or 0

    def packed_size(self, dtype: np.dtype, rows: int, G: int, K: int) -> int:
        """The bytes that a packed weight (K, G) takes."""
        size = getattr(self._library, f"cblas_{_REAL[dtype][0]}gemm_pack_get_size")
        size.restype = ctypes.c_size_t
        return size(_RIGHT, rows, G, K)

    @functools.cached_property
    def version(self) -> str:
        """MKL's version, as its wheel tells it."""
        return metadata.version("mkl")

    def _try(self) -> None:
        """Multiply a few matrices, large enough for all threads."""
        rng = np.random.default_rng(0)
        for rows in (16, 40, 100, 256):
            x, w = rng.standard_normal((rows, 192)), rng.standard_normal((192, 320))
            for dtype in _REAL:
                product = self._product(x.astype(dtype), w.astype(dtype))
                if not np.allclose(product, x @ w, rtol=1e-4, atol=1e-3):
                    raise MklUnavailableError("it multiplies wrongly in this process")

    def _product(self, x: Array, w: Array) -> Array:
        letter, real = _REAL[x.dtype]
        gemm = getattr(self._library, f"cblas_{letter}gemm")
        integer, pointer = ctypes.c_int, ctypes.c_void_p
        gemm.restype = None
        gemm.argtypes = [integer] * 6 + [real, pointer, integer, pointer, integer, real, pointer, integer]
        (n, K), G, out = x.shape, w.shape[1], np.empty((x.shape[0], w.shape[1]), x.dtype)
        places = (x.ctypes.data, K, w.ctypes.data, G, 0, out.ctypes.data, G)
        gemm(_ROW_MAJOR, _AS_IT_IS, _AS_IT_IS, n, G, K, 1, *places)
        return out


def _path() -> str:
    try:
        files = metadata.files("mkl") or []
    except metadata.PackageNotFoundError:
        raise MklUnavailableError("it is not installed") from None
    for file in files:
        if file.name.startswith("libmkl_rt.so"):
            return str(file.locate())
    raise MklUnavailableError("its wheel has no libmkl_rt.so")


def _load(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise MklUnavailableError(f"it cannot be loaded ({error})") from None


def _has_gnu_openmp() -> bool:
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        return False
    return True
