"""Launches of the kernels in ``kernels/*.cu``, compiled for each dtype at its first use.

CuPy caches the compiled kernels on disk.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.errors import InputError
from rnnlab.ops.cuda_source import kernel_source
from rnnlab.types import Array

__all__ = [
    "NULL",
    "THREADS",
    "WARP",
    "by_rows",
    "check_contiguous",
    "check_device",
    "each",
    "launch",
    "stride",
]
NULL = np.uint64(0)  # a null pointer: CuPy 13.3 passes None as 0xffffffffffffffff (cupy issue 9046)
THREADS = 256  # of a block
_BLOCKS = 4096  # of a grid at most: threads loop over further elements
WARP = 32
_SHARED = 48 * 1024  # bytes of shared memory that a block has without asking


@functools.cache
def _module(dtype: str) -> Any:
    real = {"float32": "float", "float64": "double"}[dtype]
    return cp.RawModule(code=kernel_source(), options=(f"-DREAL={real}", "--std=c++17"))


@functools.cache
def _kernel(name: str, dtype: str) -> Any:
    return _module(dtype).get_function(name)


def launch(
    name: str,
    dtype: np.dtype,
    blocks: int,
    threads: int,
    arguments: tuple[Any, ...],
    shared: int = 0,
    cooperative: bool = False,
) -> None:
    """Launch a kernel compiled for a dtype, with an array as its first argument.

    Parameters
    ----------
    name : str
        Of the kernel.
    dtype : dtype
        What the kernels' REAL stands for, float32 or float64.
    blocks, threads : int
        Of the grid, and of each block.
    arguments : tuple
        Python integers are passed as 64-bit integers, Python floats in ``dtype``, NumPy scalars as they are,
        and :data:`NULL` for an array that is left out.
    shared : int
        Bytes of dynamic shared memory per block.
    cooperative : bool
        All blocks run at once, as a GRID_KERNEL requires.

    Raises
    ------
    RuntimeError
        If the first array is on another device than the one in use.
    cupy.cuda.driver.CUDADriverError
        If a cooperative launch has more blocks than run at once.
    """
    check_device(arguments[0], name)
    real, values = dtype.type, []
    for value in arguments:
        if isinstance(value, int):
            value = np.int64(value)
        elif type(value) is float:
            value = real(value)
        values.append(value)
    kernel = _kernel(name, dtype.name)
    if shared > _SHARED:
        kernel.max_dynamic_shared_size_bytes = shared
    if cooperative:
        _launch_cooperatively(kernel, blocks, threads, tuple(values), shared)
    else:
        kernel((blocks,), (threads,), tuple(values), shared_mem=shared)


def _launch_cooperatively(
    kernel: Any, blocks: int, threads: int, values: tuple[Any, ...], shared: int
) -> None:
    # The flag is set at the launch alone. A module that is compiled with enable_cooperative_groups is linked
    # to libcudadevrt, which pip's CuPy lacks, and which a kernel without cooperative_groups.h does not need.
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # if not all blocks fit, CuPy warns and launches fewer
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
    """Launch a kernel with a block for each row, with threads for the columns, at most ``most``.

    ``workspace`` counts elements of shared memory, in addition to one per warp.
    """
    if rows:
        threads = min(max(WARP, 1 << max(columns - 1, 0).bit_length()), most)
        shared = (workspace + most // WARP) * like.dtype.itemsize
        launch(name, like.dtype, min(rows, _BLOCKS), threads, arguments, shared)


def check_contiguous(*arrays: Array) -> None:
    """Raise ValueError if an array is not C-contiguous; :data:`NULL` is no array."""
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
