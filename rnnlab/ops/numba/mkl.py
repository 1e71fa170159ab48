"""MKL's matrix product, from the ``mkl`` wheel.

MKL uses the threads of GNU's OpenMP. With Intel's OpenMP, its default, products are silently wrong in a
process in which PyTorch has loaded GNU's OpenMP before. For this reason the first products of MKL are
compared with NumPy's before it is used.
"""

from __future__ import annotations

import ctypes
import functools
import os
from importlib import metadata
from typing import Any

import numpy as np

from rnnlab.types import Array

__all__ = ["Mkl", "MklUnavailableError"]
_ROW_MAJOR, _NOT_TRANSPOSED, _TRANSPOSED = 101, 111, 112  # constants of CBLAS
_LARGEST = 2**31 - 1  # the largest of MKL's integers
_ONE_THREAD, _GNU_THREADS, _32_BIT_INTEGERS = 1, 3, 0  # constants of MKL
_REAL: dict[np.dtype, tuple[str, Any]] = {
    np.dtype(np.float32): ("s", ctypes.c_float),
    np.dtype(np.float64): ("d", ctypes.c_double),
}


class MklUnavailableError(Exception):
    """MKL cannot be used. The message gives the reason."""


class Mkl:
    """MKL, loaded, set to a number of threads, and tested.

    Parameters
    ----------
    threads : int
        The number of threads that it may use; it uses one if GNU's OpenMP is missing.

    Attributes
    ----------
    threads : int
        The number of threads that it uses.

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
            raise MklUnavailableError("other code in this process has selected another threading layer")
        self.threads = threads if layer == _GNU_THREADS else 1
        self._library.MKL_Set_Num_Threads(self.threads)
        self._is_forked = False
        if self.threads > 1:  # GNU's OpenMP does not survive a fork
            os.register_at_fork(after_in_child=self._note_fork)
        self._gemm = {dtype: self._function(letter, real) for dtype, (letter, real) in _REAL.items()}
        self._try()

    def covers(self, x: Array, w: Array, out: Array) -> bool:
        """Whether it can multiply these: all float32 or all float64, each with a contiguous axis."""
        if not x.dtype == w.dtype == out.dtype or x.dtype not in _REAL:
            return False
        order, step = _layout(out)
        return bool(_layout(x)[1] and _layout(w)[1] and step and order == _NOT_TRANSPOSED)

    def multiply(self, x: Array, w: Array, out: Array, *, add: bool) -> None:
        """out = x w, or out += x w, (n, K) (K, G) -> (n, G), of arrays that it covers."""
        (n, K), G = x.shape, w.shape[1]
        (order_x, step_x), (order_w, step_w), (_, step_out) = map(_layout, (x, w, out))
        # At each call, because threadpoolctl sets the number for the thread, which overrides all others.
        if self._is_forked:
            self._library.MKL_Set_Num_Threads_Local(1)
        places = (x.ctypes.data, step_x, w.ctypes.data, step_w, float(add), out.ctypes.data, step_out)
        self._gemm[x.dtype](_ROW_MAJOR, order_x, order_w, n, G, K, 1.0, *places)

    def _note_fork(self) -> None:
        self._is_forked = True
        self._library.MKL_Set_Num_Threads(1)  # for other users of the library

    @functools.cached_property
    def version(self) -> str:
        """MKL's version, from the metadata of its wheel."""
        return metadata.version("mkl")

    def _try(self) -> None:
        """Multiply a few matrices, large enough for all threads."""
        rng = np.random.default_rng(0)
        for rows in (16, 40, 100, 256):
            x, w = rng.standard_normal((rows, 192)), rng.standard_normal((192, 320))
            for dtype in _REAL:
                product = np.empty((rows, 320), dtype)
                self.multiply(x.astype(dtype), w.astype(dtype), product, add=False)
                if not np.allclose(product, x @ w, rtol=1e-4, atol=1e-3):
                    raise MklUnavailableError("it multiplies wrongly in this process")

    def _function(self, letter: str, real: Any) -> Any:
        gemm = getattr(self._library, f"cblas_{letter}gemm")
        integer, pointer = ctypes.c_int, ctypes.c_void_p
        gemm.restype = None
        gemm.argtypes = [integer] * 6 + [real, pointer, integer, pointer, integer, real, pointer, integer]
        return gemm


def _layout(a: Array) -> tuple[int, int]:
    """The layout of a matrix for CBLAS, and its leading dimension, 0 if CBLAS cannot read it."""
    (rows, columns), (down, across), itemsize = a.shape, a.strides, a.itemsize
    if across == itemsize or columns == 1:
        step = _step(down, rows, columns, itemsize)
        if step:
            return _NOT_TRANSPOSED, step
    if down == itemsize or rows == 1:
        return _TRANSPOSED, _step(across, columns, rows, itemsize)
    return _NOT_TRANSPOSED, 0


def _step(stride: int, lines: int, length: int, itemsize: int) -> int:
    """Elements from one line to the next; 0 if the lines overlap or are too far apart."""
    if lines <= 1:
        return max(1, length) if length <= _LARGEST else 0
    step, rest = divmod(stride, itemsize)
    return step if not rest and max(1, length) <= step <= _LARGEST and lines <= _LARGEST else 0


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
