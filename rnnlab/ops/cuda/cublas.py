"""Matrix products by cuBLAS, called by ctypes with a separate handle.

CuPy's own products take longer to call, copy parts of wider matrices, and cannot be captured into CUDA
graphs. This module's handle has a workspace from the start, so that a product allocates nothing and the same
call always gives the same bits. Matrices are read in place.

The precision of float32 products is that of :func:`~rnnlab.ops.precision.products_precision` at the time of
the call. With "tf32", cuBLAS rounds the factors to 10 bits of mantissa. With "bfloat16", the factors are
stored with 7 bits. With "tf32x3", each factor of a large product is split into two numbers of 10 bits
(:mod:`rnnlab.ops.cuda.factors`). A CUDA graph keeps the precision of its capture.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import cupy as cp

from rnnlab.errors import InputError, InputTypeError, NotInstalledError
from rnnlab.ops.cuda.factors import Factor, Prepacked, layout_of, rounded, split, split_is_faster, summed
from rnnlab.ops.cuda.launch import check_device
from rnnlab.ops.precision import products_precision
from rnnlab.types import Array

__all__ = ["batched", "gemm", "handles"]

# Constants of cuBLAS: data types, compute types, and the choice of an algorithm.
_FLOAT32, _FLOAT64, _BFLOAT16 = 0, 1, 14
_IN_FLOAT32, _IN_FLOAT64, _IN_TF32 = 68, 70, 77
_ANY_ALGORITHM = -1

_REALS = {"f": ctypes.c_float, "d": ctypes.c_double}
_TYPES = {"f": _FLOAT32, "d": _FLOAT64}
_FLOAT32_BYTES = 4


def gemm(
    x: Array | Factor,
    w: Array | Factor | Prepacked,
    out: Array,
    beta: float = 0.0,
) -> None:
    """out = x w + beta out, (M, K) (K, N) -> (M, N), all float32 or all float64.

    The rows or the columns of each array must be contiguous; it may be part of a wider one. With ``beta`` 0,
    ``out`` is not read.

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
    handle, one, scale = _handle(out), _scalar(dtype, 1.0), _scalar(dtype, beta)
    kind, way, x, w, sums = _factors(handle, dtype, x, w)
    first, first_by_columns, first_step, _ = layout_of(x, "x")
    second, second_by_columns, second_step, _ = layout_of(w, "w")
    result, by_columns, step, _ = layout_of(out, "out")
    for start, length in sums:
        if start:
            scale = one
        from_x = first + _FLOAT32_BYTES * start * (first_step if first_by_columns else 1)
        from_w = second + _FLOAT32_BYTES * start * (1 if second_by_columns else second_step)
        if by_columns:  # the layout of cuBLAS
            factors = (
                not first_by_columns, not second_by_columns, M, N, length,
                ctypes.addressof(one), from_x, kind, first_step, from_w, kind, second_step,
            )  # fmt: skip
        else:  # out^T = w^T x^T
            factors = (
                second_by_columns, first_by_columns, N, M, length,
                ctypes.addressof(one), from_w, kind, second_step, from_x, kind, first_step,
            )  # fmt: skip
        result_of = ctypes.addressof(scale), result, _TYPES[dtype], step, way, _ANY_ALGORITHM
        status = handle.library.cublasGemmEx(handle.pointer, *factors, *result_of)
        if status:
            handle.fail("cublasGemmEx", status)


def batched(x: Array, w: Array) -> Array:
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
    handle, one, scale = _handle(out), _scalar(dtype, 1.0), _scalar(dtype, 0.0)
    kind, way, x, w, sums = _factors(handle, dtype, x, w, B)
    first, first_by_columns, first_step, first_apart = layout_of(x, "x")
    second, second_by_columns, second_step, second_apart = layout_of(w, "w")
    for start, length in sums:
        if start:
            scale = one
        from_x = first + _FLOAT32_BYTES * start * (first_step if first_by_columns else 1)
        from_w = second + _FLOAT32_BYTES * start * (1 if second_by_columns else second_step)
        status = handle.library.cublasGemmStridedBatchedEx(  # out^T = w^T x^T
            handle.pointer, second_by_columns, first_by_columns, N, M, length, ctypes.addressof(one),
            from_w, kind, second_step, second_apart, from_x, kind, first_step, first_apart,
            ctypes.addressof(scale), out.data.ptr, _TYPES[dtype], N, M * N, B, way, _ANY_ALGORITHM,
        )  # fmt: skip
        if status:
            handle.fail("cublasGemmStridedBatchedEx", status)
    return out


def _dtype_of(x: Any, w: Any, *out: Array) -> str:
    dtype = x.dtype.char
    if dtype in _TYPES and w.dtype.char == dtype and (not out or out[0].dtype.char == dtype):
        return str(dtype)
    names = ", ".join(str(array.dtype) for array in (x, w, *out))
    raise InputTypeError(f"x w: the arrays are {names}, expected all float32 or all float64")


def _factors(
    handle: _Handle, dtype: str, x: Any, w: Any, matrices: int = 1
) -> tuple[int, int, Any, Any, Sequence[tuple[int, int]]]:
    """The data type and the compute type for cuBLAS, the factors, and the parts of the sum.

    A part is a start and a length, and is computed by one call. The sum of split factors may have several.
    """
    K, prepacked = x.shape[-1], isinstance(w, Prepacked)
    whole = w.weight if prepacked else w
    if dtype == "d":
        return _FLOAT64, _IN_FLOAT64, x, whole, ((0, K),)
    matmul = products_precision()
    if matmul == "bfloat16" or isinstance(whole, Factor) or isinstance(x, Factor):
        handle.check_bfloat16()
        x, whole = (m if isinstance(m, Factor) else rounded(m) for m in (x, whole))
        return _BFLOAT16, _IN_FLOAT32, x, whole, ((0, K),)
    if matmul == "tf32x3" and handle.has_tf32:
        sizes = matrices, x.shape[-2], K, w.shape[-1]
        if split_is_faster(*sizes, (x.size, whole.size), prepacked):
            return _FLOAT32, _IN_TF32, split(x, "x"), w.split if prepacked else split(w, "w"), summed(K)
    return _FLOAT32, _IN_TF32 if matmul == "tf32" else _IN_FLOAT32, x, whole, ((0, K),)


def _scale(out: Array, beta: float) -> None:
    if beta == 0:
        out.fill(0)
    elif beta != 1:
        out *= beta


@functools.lru_cache(maxsize=64)
def _scalar(dtype: str, value: float) -> Any:
    """A number in host memory, from which cuBLAS reads it."""
    return _REALS[dtype](value)


# ---------------------------------------------------------------- the library and its handles


class _Handle:
    """A thread's handle on a device, and its workspace.

    A new handle reads scalars from the host and uses no atomics, as required here. The streams of one thread
    share the workspace, so their products must not run at the same time.
    """

    def __init__(self, device: int) -> None:
        self.library = _library()
        self._device = device
        self._capability = int(cp.cuda.Device(device).compute_capability)
        pointer = ctypes.c_void_p()
        self._check("cublasCreate", self.library.cublasCreate_v2(ctypes.byref(pointer)))
        self.pointer = pointer.value
        # not at exit, when the driver may already be unloaded
        weakref.finalize(self, _destroy, self.library, pointer, device).atexit = False
        self._size = (32 if self._capability >= 90 else 4) << 20  # bytes, as NVIDIA recommends
        self._workspace = cp.cuda.alloc(self._size)
        self._stream: int | None = None

    def use(self, stream: int) -> None:
        """Run later products on a stream."""
        if stream != self._stream:
            self._check("cublasSetStream", self.library.cublasSetStream_v2(self.pointer, stream))
            # Setting the stream resets the workspace to cuBLAS's own.
            workspace = self._workspace.ptr, self._size
            self._check("cublasSetWorkspace", self.library.cublasSetWorkspace_v2(self.pointer, *workspace))
            self._stream = stream

    @property
    def has_tf32(self) -> bool:
        """Whether the device multiplies TensorFloat-32."""
        return self._capability >= 80

    def check_bfloat16(self) -> None:
        """Raise ValueError if the device does not multiply bfloat16."""
        if self._capability < 80:
            raise InputError(
                f"matmul or RNNLAB_MATMUL is 'bfloat16', which needs a GPU of compute capability 8.0, and "
                f"gpu:{self._device} has {self._capability / 10}: expected 'float32'"
            )

    def fail(self, function: str, status: int) -> None:
        """Raise RuntimeError with the name of a status of cuBLAS."""
        raise RuntimeError(f"{function}: {self.library.cublasGetStatusName(status).decode()}")

    def _check(self, function: str, status: int) -> None:
        if status:
            self.fail(function, status)


_local = threading.local()


def _handle(out: Array) -> _Handle:
    """The handle of this thread, on the current stream of the device that the result is on."""
    device = check_device(out, "x w")
    try:
        handle: _Handle = _local.handles[device]
    except (AttributeError, KeyError):
        handle = _Handle(device)
        vars(_local).setdefault("handles", {})[device] = handle
    handle.use(cp.cuda.get_current_stream().ptr)
    return handle


def handles() -> list[Any]:
    """The handles of this thread. A graph keeps them alive, because its products use their workspaces."""
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
