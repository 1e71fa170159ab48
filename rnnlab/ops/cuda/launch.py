"""Launches of the kernels in ``kernels/*.cu``, which are compiled for each dtype at its first use.

CuPy caches the compiled kernels on disk.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.errors import InputError
from rnnlab.ops.cuda_source import FILES, SEQUENCES, kernel_parameters, kernel_source
from rnnlab.types import Array

__all__ = [
    "NULL",
    "THREADS",
    "WARP",
    "by_rows",
    "check_contiguous",
    "check_device",
    "compiled_dtype",
    "each",
    "launch",
    "stride",
]
NULL = np.uint64(0)  # a null pointer: CuPy 13.3 passes None as 0xffffffffffffffff (cupy issue 9046)
THREADS = 256  # threads of a block
_BLOCKS = 4096  # maximum blocks of a grid; threads loop over further elements
WARP = 32
_SHARED = 48 * 1024  # bytes of shared memory that a block has by default
_INTEGERS = {"Size": np.int64, "Seed": np.uint64, "unsigned": np.uint32}  # integer types of parameters


_compiled: list[str] = []  # dtypes of the kernels in FILES


@functools.cache
def _module(dtype: str, constants: tuple[str, ...]) -> Any:
    real = {"float32": "float", "float64": "double"}[dtype]
    if not constants:
        _compiled.append(dtype)
    code = kernel_source(SEQUENCES if constants else FILES)
    return cp.RawModule(code=code, options=(f"-DREAL={real}", *constants, "--std=c++17"))


def compiled_dtype() -> np.dtype:
    """A dtype that the kernels are compiled for already, for a kernel without floating-point numbers."""
    return np.dtype(_compiled[0] if _compiled else np.float32)


@functools.cache
def _kernel(name: str, dtype: str, constants: tuple[str, ...] = ()) -> Any:
    return _module(dtype, constants).get_function(name)


@functools.cache
def _conversions(name: str, dtype: str) -> tuple[Callable[[Any], Any], ...]:
    """The conversion of each argument to the type that the kernel declares. CuPy passes bytes unconverted."""
    return tuple(_conversion(name, kind, dtype) for kind in kernel_parameters()[name])


def _conversion(name: str, kind: str, dtype: str) -> Callable[[Any], Any]:
    if kind == "*":
        return lambda array: array
    if kind in _INTEGERS:
        integer = _INTEGERS[kind]
        return lambda number: integer(operator.index(number))
    reals = {"REAL": dtype, "double": "float64"}
    if kind not in reals:
        raise TypeError(f"{name}: a parameter of type {kind}, expected *, {', '.join((*_INTEGERS, *reals))}")
    real = np.dtype(reals[kind]).type
    return lambda number: real(float(number))


@functools.cache
def _allow_shared(name: str, dtype: str, constants: tuple[str, ...], device: int) -> int:
    """Allow the blocks of a kernel to use all shared memory of the device; return its size in bytes."""
    kernel = _kernel(name, dtype, constants)
    most = cp.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"] - kernel.shared_size_bytes
    kernel.max_dynamic_shared_size_bytes = most
    return int(most)


@functools.cache
def _most_blocks(name: str, dtype: str, threads: int, shared: int, device: int) -> int:
    """The maximum number of blocks of a kernel that run at the same time."""
    kernel = _kernel(name, dtype).kernel
    each = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.ptr, threads, shared)
    return each * cp.cuda.Device(device).attributes["MultiProcessorCount"]


def launch(
    name: str,
    dtype: np.dtype,
    blocks: int,
    threads: int,
    arguments: tuple[Any, ...],
    shared: int = 0,
    cooperative: bool = False,
    constants: tuple[str, ...] = (),
) -> None:
    """Launch a kernel compiled for a dtype, with an array as its first argument.

    Parameters
    ----------
    name : str
        The name of the kernel.
    dtype : dtype
        The kernel's type REAL, float32 or float64.
    blocks, threads : int
        The numbers of blocks in the grid and of threads in a block.
    arguments : tuple
        Numbers are converted to the types that the kernel declares. :data:`NULL` stands for an array that is
        left out.
    shared : int
        Bytes of dynamic shared memory per block.
    cooperative : bool
        Whether all blocks must run at the same time, as a GRID_KERNEL requires.
    constants : tuple of str
        Definitions for the compiler, for a kernel in :data:`~rnnlab.ops.cuda_source.SEQUENCES`.

    Raises
    ------
    RuntimeError
        If the first array is not on the device in use, or a cooperative launch has more blocks than can run
        at the same time.
    ValueError
        If a block needs more shared memory than the device has.
    """
    device, kind = check_device(arguments[0], name), dtype.name
    conversions = _conversions(name, kind)
    values = tuple([convert(value) for convert, value in zip(conversions, arguments, strict=True)])
    kernel = _kernel(name, kind, constants)
    if shared > _SHARED and shared > (most := _allow_shared(name, kind, constants, device)):
        raise InputError(
            f"{name}: a block needs {shared:,} bytes of shared memory, gpu:{device} has {most:,}"
        )
    if not cooperative:
        kernel((blocks,), (threads,), values, shared_mem=shared)
        return
    most = _most_blocks(name, kind, threads, shared, device)
    if blocks > most:  # CuPy would launch fewer blocks, which would wait for the others forever
        raise RuntimeError(f"{name}: {blocks} blocks, of which {most} run at once")
    # The flag is set at the launch only. Compiling with enable_cooperative_groups would link the module to
    # libcudadevrt, which pip's CuPy lacks and which a kernel without cooperative_groups.h does not need.
    kernel.kernel((blocks,), (threads,), values, shared_mem=shared, enable_cooperative_groups=True)


def check_device(array: Array, function: str) -> int:
    """The number of the device in use.

    Raises
    ------
    RuntimeError
        If the array is on another device.
    """
    here, there = cp.cuda.runtime.getDevice(), array.device.id
    if here != there:
        raise RuntimeError(
            f"{function}: the arrays are on gpu:{there}, but this thread uses gpu:{here}; call "
            f"rnnlab.ops.ops_on('gpu:{there}') or the model's to('gpu:{there}') in each thread first"
        )
    return here


def each(name: str, size: int, like: Array, *arguments: Any) -> None:
    """Launch a kernel whose threads work independently, on ``size`` elements."""
    if size:
        blocks = min(-(-size // THREADS), _BLOCKS)
        launch(name, like.dtype, blocks, THREADS, arguments)


def by_rows(
    name: str,
    rows: int,
    columns: int,
    like: Array,
    *arguments: Any,
    workspace: int = 0,
    most: int = THREADS,
) -> None:
    """Launch a kernel with a block for each row and threads for its columns, at most ``most`` threads.

    ``workspace`` counts elements of shared memory, in addition to one per warp.
    """
    if rows:
        threads = min(max(WARP, 1 << max(columns - 1, 0).bit_length()), most)
        shared = (workspace + most // WARP) * like.dtype.itemsize
        launch(name, like.dtype, min(rows, _BLOCKS), threads, arguments, shared)


def check_contiguous(*arrays: Array) -> None:
    """Raise ValueError if an array is not C-contiguous; :data:`NULL` is not an array."""
    for array in arrays:
        if array is not NULL and not array.flags.c_contiguous:
            raise InputError(f"expected a C-contiguous array, got strides {array.strides}")


def stride(array: Array) -> int:
    """The number of elements from one row (n, columns) to the next.

    Raises
    ------
    ValueError
        If the columns of a row are not contiguous.
    """
    if array.size and array.shape[1] > 1 and array.strides[1] != array.itemsize:
        raise InputError(f"expected rows with contiguous columns, got strides {array.strides}")
    return array.strides[0] // array.itemsize
