"""Matrix products by cuBLAS, called by ctypes with a handle of our own.

CuPy's own products take longer to call, copy parts of wider matrices, and cannot be captured into CUDA
graphs. Our handle has a workspace from the start, so that a product allocates nothing and the same call gives
the same bits every time. Matrices are read in place.

The precision of float32 products is :func:`~rnnlab.ops.precision.products_precision` at the call: with "tf32"
cuBLAS rounds the factors to 10 bits of mantissa, with "bfloat16" they are stored with 7. A CUDA graph has the
precision of its capture.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from rnnlab.errors import InputError, InputTypeError, NotInstalledError
from rnnlab.ops.cuda.launch import check_device, each
from rnnlab.ops.precision import products_precision
from rnnlab.options import MatmulName
from rnnlab.types import Array

__all__ = ["Rounded", "batched", "gemm", "handles", "rounded"]

# Constants of cuBLAS: data types, compute types, the choice of an algorithm, and its largest integer.
_FLOAT32, _FLOAT64, _BFLOAT16 = 0, 1, 14
_IN_FLOAT32, _IN_FLOAT64, _IN_TF32 = 68, 70, 77
_ANY_ALGORITHM = -1
_LARGEST = 2**31 - 1

_REALS = {"f": ctypes.c_float, "d": ctypes.c_double}


class Rounded(NamedTuple):
    """A float32 matrix, or several, in bfloat16, as :func:`gemm` and :func:`batched` accept it."""

    bits: Array  # uint16, (lines, length) or (matrices, lines, length), C-contiguous
    by_columns: bool  # whether the lines are columns
    shape: tuple[int, ...]
    dtype: np.dtype = np.dtype(np.float32)  # before rounding

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


def gemm(
    x: Array | Rounded, w: Array | Rounded, out: Array, beta: float = 0.0, matmul: MatmulName | None = None
) -> None:
    """out = x w + beta out, (M, K) (K, N) -> (M, N), all float32 or all float64.

    The rows or the columns of each array must be contiguous; it may be part of a wider one. With ``beta`` 0,
    ``out`` is not read. ``matmul`` is the precision; by default it is
    :func:`~rnnlab.ops.precision.products_precision`.

    Raises
    ------
    ValueError, TypeError
        If shapes, dtypes or strides do not match.
    RuntimeError
        If the arrays are not on the device in use, the device cannot multiply bfloat16, or cuBLAS fails.
    """
    if (
        not x.ndim == w.ndim == out.ndim == 2
        or x.shape[1] != w.shape[0]
        or out.shape != (x.shape[0], w.shape[1])
    ):
        raise InputError(f"x w: x has shape {x.shape}, w {w.shape} and out {out.shape}")
    dtype = _dtype_of(x, w, out)
    (M, K), N = x.shape, w.shape[1]
    if not M or not N:
        return
    if not K:
        _scale(out, beta)
        return
    kind, way, x, w = _prepared(dtype, matmul or products_precision(), x, w)
    first, first_by_columns, first_step, _ = _place(x, "x")
    second, second_by_columns, second_step, _ = _place(w, "w")
    result, by_columns, step, _ = _place(out, "out")
    handle, one, scale = _handle(out, kind), _scalar(dtype, 1.0), _scalar(dtype, beta)
    if by_columns:  # the layout of cuBLAS
        factors = (
            not first_by_columns, not second_by_columns, M, N, K,
            ctypes.addressof(one), first, kind, first_step, second, kind, second_step,
        )  # fmt: skip
    else:  # out^T = w^T x^T
        factors = (
            second_by_columns, first_by_columns, N, M, K,
            ctypes.addressof(one), second, kind, second_step, first, kind, first_step,
        )  # fmt: skip
    result_of = ctypes.addressof(scale), result, _TYPES[dtype], step, way, _ANY_ALGORITHM
    status = handle.library.cublasGemmEx(handle.pointer, *factors, *result_of)
    if status:
        handle.fail("cublasGemmEx", status)


def batched(x: Array, w: Array, matmul: MatmulName | None = None) -> Array:
    """The product of each pair of matrices, (B, M, K) (B, K, N) -> (B, M, N).

    A factor with two axes, or with B = 1, is shared by all pairs. The rest is as in :func:`gemm`.
    """
    if not (x.ndim in (2, 3) and w.ndim in (2, 3)):
        raise InputError(f"x w: x has shape {x.shape} and w {w.shape}, expected two or three axes")
    matrices = {m.shape[0] for m in (x, w) if m.ndim == 3 and m.shape[0] != 1} or {1}
    if len(matrices) > 1 or x.shape[-1] != w.shape[-2]:
        raise InputError(f"x w: x has shape {x.shape} and w {w.shape}")
    (B,), (M, K), N = matrices, x.shape[-2:], w.shape[-1]
    dtype = _dtype_of(x, w)
    out = cp.empty((B, M, N), x.dtype)
    if not out.size:
        return out
    if not K:
        out.fill(0)
        return out
    kind, way, x, w = _prepared(dtype, matmul or products_precision(), x, w)
    first, first_by_columns, first_step, first_apart = _place(x, "x")
    second, second_by_columns, second_step, second_apart = _place(w, "w")
    handle, one, zero = _handle(out, kind), _scalar(dtype, 1.0), _scalar(dtype, 0.0)
    status = handle.library.cublasGemmStridedBatchedEx(  # out^T = w^T x^T
        handle.pointer, second_by_columns, first_by_columns, N, M, K, ctypes.addressof(one),
        second, kind, second_step, second_apart, first, kind, first_step, first_apart,
        ctypes.addressof(zero), out.data.ptr, _TYPES[dtype], N, M * N, B, way, _ANY_ALGORITHM,
    )  # fmt: skip
    if status:
        handle.fail("cublasGemmStridedBatchedEx", status)
    return out


def rounded(x: Array) -> Rounded:
    """Round a float32 matrix, or several, to bfloat16, to nearest even; NaN stays NaN."""
    _, by_columns, step, apart = _place(x, "x")
    rows, columns = x.shape[-2:]
    lines, length = (columns, rows) if by_columns else (rows, columns)
    bits = cp.empty((*x.shape[:-2], lines, length), np.uint16)
    matrices = x.shape[0] if x.ndim == 3 else 1
    each("to_bfloat16", bits.size, x, x, bits, matrices, lines, length, apart, step)
    return Rounded(bits, by_columns, x.shape)


_TYPES = {"f": _FLOAT32, "d": _FLOAT64}


def _dtype_of(x: Array, w: Array, *out: Array) -> str:
    dtype = x.dtype.char
    if dtype in _TYPES and w.dtype.char == dtype and (not out or out[0].dtype.char == dtype):
        return dtype
    names = ", ".join(str(array.dtype) for array in (x, w, *out))
    raise InputTypeError(f"x w: the arrays are {names}, expected all float32 or all float64")


def _prepared(dtype: str, matmul: MatmulName, x: Array, w: Array) -> tuple[int, int, Any, Any]:
    """The data type and the compute type for cuBLAS, and the factors."""
    if dtype == "d":
        return _FLOAT64, _IN_FLOAT64, x, w
    if matmul == "bfloat16" or isinstance(w, Rounded) or isinstance(x, Rounded):
        x, w = (m if isinstance(m, Rounded) else rounded(m) for m in (x, w))
        return _BFLOAT16, _IN_FLOAT32, x, w
    return _FLOAT32, _IN_TF32 if matmul == "tf32" else _IN_FLOAT32, x, w


def _place(array: Array | Rounded, name: str) -> tuple[int, bool, int, int]:
    """The layout of a matrix, or of several.

    Returns the pointer, whether the columns rather than the rows are contiguous, and the number of elements
    from one line to the next and from one matrix to the next.
    """
    if isinstance(array, Rounded):
        lines, length = array.bits.shape[-2:]
        apart = lines * length if array.ndim == 3 and array.shape[0] > 1 else 0
        return array.bits.data.ptr, array.by_columns, length, apart
    shape, strides, itemsize = array.shape, array.strides, array.itemsize
    (rows, columns), (down, across) = shape[-2:], strides[-2:]
    apart = strides[0] // itemsize if len(shape) == 3 and shape[0] > 1 else 0
    if rows <= _LARGEST and columns <= _LARGEST and apart >= 0:
        if across == itemsize or columns == 1:
            step = down // itemsize if rows > 1 else columns
            if columns <= step <= _LARGEST:
                return array.data.ptr, False, step, apart
        if down == itemsize or rows == 1:
            step = across // itemsize if columns > 1 else rows
            if rows <= step <= _LARGEST:
                return array.data.ptr, True, step, apart
    raise InputError(
        f"x w: {name} has shape {shape} and strides {strides} for elements of {itemsize} bytes, "
        f"expected contiguous rows or columns that do not overlap, at most {_LARGEST} long: copy it first"
    )


def _scale(out: Array, beta: float) -> None:
    if beta == 0:
        out.fill(0)
    elif beta != 1:
        out *= beta


@functools.lru_cache(maxsize=64)
def _scalar(dtype: str, value: float) -> Any:
    """A number in host memory, where cuBLAS reads it."""
    return _REALS[dtype](value)


# ---------------------------------------------------------------- the library and its handles


class _Handle:
    """A thread's handle on a device, and its workspace.

    A new handle reads scalars from the host and uses no atomics, as we need it. The streams of one thread
    share the workspace, so that their products must not run at the same time.
    """

    def __init__(self, device: int) -> None:
        self.library = _library()
        self.capability = int(cp.cuda.Device(device).compute_capability)
        pointer = ctypes.c_void_p()
        self._check("cublasCreate", self.library.cublasCreate_v2(ctypes.byref(pointer)))
        self.pointer = pointer.value
        # At exit the driver may already be unloaded.
        weakref.finalize(self, _destroy, self.library, pointer, device).atexit = False
        self._size = (32 if self.capability >= 90 else 4) << 20  # bytes, as NVIDIA recommends
        self._workspace = cp.cuda.alloc(self._size)
        self._stream: int | None = None

    def use(self, stream: int) -> None:
        """Run further products on a stream."""
        if stream != self._stream:
            self._check("cublasSetStream", self.library.cublasSetStream_v2(self.pointer, stream))
            # Setting the stream resets the workspace to cuBLAS's own.
            workspace = self._workspace.ptr, self._size
            self._check("cublasSetWorkspace", self.library.cublasSetWorkspace_v2(self.pointer, *workspace))
            self._stream = stream

    def fail(self, function: str, status: int) -> None:
        """Raise RuntimeError with the name of a status of cuBLAS."""
        raise RuntimeError(f"{function}: {self.library.cublasGetStatusName(status).decode()}")

    def _check(self, function: str, status: int) -> None:
        if status:
            self.fail(function, status)


_local = threading.local()


def _handle(out: Array, kind: int) -> _Handle:
    """The handle of this thread, on the current stream of the device that the result is on.

    ``kind`` is the data type of the factors.
    """
    device = check_device(out, "x w")
    try:
        handle = _local.handles[device]
    except (AttributeError, KeyError):
        handle = _Handle(device)
        vars(_local).setdefault("handles", {})[device] = handle
    if kind == _BFLOAT16 and handle.capability < 80:
        raise InputError(
            f"matmul or RNNLAB_MATMUL is 'bfloat16', which needs a GPU of compute capability 8.0, and "
            f"gpu:{device} has {handle.capability / 10}: expected 'float32'"
        )
    handle.use(cp.cuda.get_current_stream().ptr)
    return handle


def handles() -> list[Any]:
    """The handles of this thread; a graph holds them, since its products use their workspaces."""
    return list(vars(_local).get("handles", {}).values())


def _destroy(library: Any, pointer: ctypes.c_void_p, device: int) -> None:
    with cp.cuda.Device(device):
        library.cublasDestroy_v2(pointer)


@functools.cache
def _library() -> Any:
    """CuPy's cuBLAS.

    Raises
    ------
    ImportError
        If it cannot be loaded.
    """
    name = f"libcublas.so.{cp.cuda.runtime.runtimeGetVersion() // 1000}"
    try:
        cp.cuda.cublas  # noqa: B018  # CuPy loads the library; then its name is enough
        library = ctypes.CDLL(name)
    except (ImportError, OSError) as error:
        raise NotInstalledError(f"{name}, which CuPy uses, cannot be loaded: {error}") from None
    pointer, integer, long, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong, ctypes.c_size_t
    scalar, matrix = [pointer], [pointer, integer, integer]
    start = [pointer, *[integer] * 5]
    for function, arguments in (
        ("cublasCreate_v2", [pointer]),
        ("cublasDestroy_v2", [pointer]),
        ("cublasSetStream_v2", [pointer, pointer]),
        ("cublasSetWorkspace_v2", [pointer, pointer, size]),
        ("cublasGemmEx", [*start, *scalar, *matrix, *matrix, *scalar, *matrix, integer, integer]),
        (
            "cublasGemmStridedBatchedEx",
            [*start, *scalar, *matrix, long, *matrix, long, *scalar, *matrix, long, *[integer] * 3],
        ),
    ):
        getattr(library, function).argtypes = arguments
    library.cublasGetStatusName.argtypes, library.cublasGetStatusName.restype = [integer], ctypes.c_char_p
    return library
