"""Matrix products by MKL: ``cblas_?gemm``, and ``cblas_?gemm_compute`` with a packed weight.

A product with few rows spends much of its time on laying out the weight as its innermost loop reads it. A
recurrent weight is laid out, packed, once a sequence. The product then adds right into what is there: the
gates need no scratch.

Rows and columns may lie anywhere in memory as long as one axis is contiguous. What MKL does not cover (other
strides or dtypes, more axes) NumPy does. The kernels call MKL themselves, which costs less than ctypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding
from numba import types
from numba.extending import overload

from rnnlab.ops import numpy_ops
from rnnlab.ops.blas import Mkl
from rnnlab.ops.fused_kernel import DTYPES, THREADS, inlined, kernel
from rnnlab.ops.fused_memory import empty

__all__ = ["MKL", "Packed", "affine", "matmul", "matmul_add", "matmul_into", "packed"]

Array = Any

MKL = Mkl(THREADS)

_ROW_MAJOR, _AS_IT_IS, _TRANSPOSED, _PACKED, _RIGHT = 101, 111, 112, 151, 162  # of CBLAS
_TYPICAL_ROWS = 256  # the packed layout depends a little on how many rows will be multiplied with it
_LARGEST = 2**31 - 1  # MKL's integers


def affine(x: Array, w: Array, b: Array) -> Array:
    """x w + b, (M, D) (D, H) (H,) -> (M, H)."""
    out = empty((x.shape[0], w.shape[1]), x.dtype)
    out[...] = b
    return out if _multiplied(x, w, 1, out) else numpy_ops.affine(x, w, b)


def matmul(x: Array, w: Array) -> Array:
    """x w, (n, K) (K, G) -> (n, G), or as NumPy multiplies arrays of other numbers of axes."""
    if x.ndim == w.ndim == 2:
        out = empty((x.shape[0], w.shape[1]), x.dtype)
        if _multiplied(x, w, 0, out):
            return out
    return np.matmul(x, w)


def packed(w: Array) -> Array:
    """The matrix w (K, G) in a form that :func:`matmul_into` and :func:`matmul_add` multiply by often."""
    try:
        return Packed(w)
    except TypeError:
        return w


def matmul_into(x: Array, w: Array, out: Array) -> None:
    """out = x w, (n, K) (K, G) -> (n, G), w from :func:`packed`."""
    if isinstance(w, Packed):
        w.multiply(x, 0, out)
    elif not _multiplied(x, w, 0, out):
        numpy_ops.matmul_into(x, w, out)


def matmul_add(x: Array, w: Array, out: Array, scratch: Array) -> None:
    """out += x w, (n, K) (K, G) -> (n, G), w from :func:`packed`; ``scratch`` is not needed."""
    if isinstance(w, Packed):
        w.multiply(x, 1, out)
    elif not _multiplied(x, w, 1, out):
        numpy_ops.matmul_add(x, w, out, scratch)


class Packed:
    """A weight (K, G), packed. It is a copy: what happens to the weight afterwards does not show.

    Raises
    ------
    TypeError
        If it is not a matrix of float32 or float64 with a contiguous axis.
    """

    def __init__(self, w: Array) -> None:
        if w.ndim != 2 or not w.size or w.dtype.char not in DTYPES:
            raise TypeError(f"expected a matrix of float32 or float64, got shape {w.shape}, {w.dtype}")
        self.shape, self.dtype = w.shape, w.dtype
        K, G = w.shape
        nbytes = MKL.packed_size(w.dtype, _TYPICAL_ROWS, G, K)
        self._memory = empty(nbytes // w.dtype.itemsize, w.dtype)
        if not _pack(w, self._memory, _TYPICAL_ROWS):
            raise TypeError(f"expected a matrix with a contiguous axis, got strides {w.strides}")

    def multiply(self, x: Array, beta: float, out: Array) -> None:
        """out = beta out + x w, (n, K) -> (n, G).

        Raises
        ------
        ValueError, TypeError
            If a shape or a dtype does not fit.
        """
        if _compute(x, self._memory, *self.shape, beta, out):
            return
        expected = x.shape[0], self.shape[1]
        if x.shape[1] != self.shape[0] or out.shape != expected:
            raise ValueError(f"x w: x has shape {x.shape}, w {self.shape} and out {out.shape}")
        product = empty(expected, self.dtype)
        _compute(np.ascontiguousarray(x), self._memory, *self.shape, 0, product)
        out[...] = product + beta * out if beta else product


def _multiplied(x: Array, w: Array, beta: float, out: Array) -> bool:
    """Let MKL do out = beta out + x w; false, and nothing is done, if it does not cover these arrays."""
    try:
        return _gemm(x, w, beta, out)
    except TypeError:
        return False


# ---------------------------------------------------------------- kernels


@kernel("T[:,:], T[:,:], T, T[:,:]")
def _gemm(x, w, beta, out):
    n, K, G = x.shape[0], x.shape[1], w.shape[1]
    order_x, step_x = _layout(x)
    order_w, step_w = _layout(w)
    order_out, step_out = _layout(out)
    if w.shape[0] != K or out.shape[0] != n or out.shape[1] != G:
        return False
    if not (order_x and order_w and order_out == _AS_IT_IS):
        return False
    _cblas_gemm(
        out, _ROW_MAJOR, order_x, order_w, n, G, K, 1.0,
        x.ctypes.data, step_x, w.ctypes.data, step_w, beta, out.ctypes.data, step_out,
    )  # fmt: skip
    return True


@kernel("T[:,:], T[::1], int64, int64, T, T[:,:]")
def _compute(x, memory, K, G, beta, out):
    order_x, step_x = _layout(x)
    order_out, step_out = _layout(out)
    if x.shape[1] != K or out.shape[0] != x.shape[0] or out.shape[1] != G:
        return False
    if not order_x or order_out != _AS_IT_IS:
        return False
    _cblas_compute(
        out, _ROW_MAJOR, order_x, _PACKED, x.shape[0], G, K,
        x.ctypes.data, step_x, memory.ctypes.data, G, beta, out.ctypes.data, step_out,
    )  # fmt: skip
    return True


@kernel("T[:,:], T[::1], int64")
def _pack(w, memory, rows):
    order, step = _layout(w)
    if not order:
        return False
    K, G = w.shape
    _cblas_pack(w, _ROW_MAJOR, _RIGHT, order, rows, G, K, 1.0, w.ctypes.data, step, memory.ctypes.data)
    return True


@inlined
def _layout(a):
    """How CBLAS is to read a matrix, and the elements from one line to the next; 0, 0 if it cannot."""
    rows, columns = a.shape
    down, across = a.strides
    if across == a.itemsize or columns == 1:
        step = _step(down, rows, columns, a.itemsize)
        if step:
            return _AS_IT_IS, step
    if down == a.itemsize or rows == 1:
        step = _step(across, columns, rows, a.itemsize)
        if step:
            return _TRANSPOSED, step
    return 0, 0


@inlined
def _step(stride, lines, length, itemsize):
    """Elements from one line to the next; 0 if the lines overlap or are too far apart."""
    step = max(1, length) if lines <= 1 else stride // itemsize
    fits = step >= length and max(step, lines) <= _LARGEST and (lines <= 1 or stride % itemsize == 0)
    return max(1, step) if fits else 0


# ---------------------------------------------------------------- MKL's functions, for kernels


def _mkl(function: str, *arguments: Any) -> Any:
    """``cblas_?<function>``, to be called in a kernel with an array of the dtype before its own arguments.

    "real" among the types of the arguments stands for the dtype.
    """
    found = {}
    for letter, real in (("s", types.float32), ("d", types.float64)):
        name = f"cblas_{letter}{function}"
        binding.add_symbol(f"rnnlab_{name}", MKL.address(name))
        signature = types.void(*(real if argument == "real" else argument for argument in arguments))
        found[real] = types.ExternalFunction(f"rnnlab_{name}", signature)

    def call(like, *arguments):
        raise NotImplementedError("for kernels only")

    @overload(call)
    def choose(like, *arguments):
        external = found[like.dtype]
        return lambda like, *arguments: external(*arguments)

    return call


_int, _address = types.intc, types.uintp
_cblas_gemm = _mkl("gemm", *[_int] * 6, "real", _address, _int, _address, _int, "real", _address, _int)
_cblas_compute = _mkl("gemm_compute", *[_int] * 6, _address, _int, _address, _int, "real", _address, _int)
_cblas_pack = _mkl("gemm_pack", *[_int] * 6, "real", _address, _int, _address)
