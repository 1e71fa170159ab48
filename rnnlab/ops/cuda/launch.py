"""Launches of the kernels in ``kernels*.cu``, compiled for each dtype when it is first used.

CuPy keeps what it compiled on disk.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.ops.cuda_source import kernel_source
from rnnlab.types import Array

__all__ = ["THREADS", "WARP", "by_rows", "check_device", "check_whole", "each", "launch", "stride"]
THREADS = 256  # of a block
_BLOCKS = 4096  # of a grid at most: threads go on to further numbers
WARP = 32
_SHARED = 48 * 1024  # bytes of shared memory that a block has without asking


@functools.cache
def _module(dtype: str, together: bool) -> Any:
    real = {"float32": "float", "float64": "double"}[dtype]
    options = (f"-DREAL={real}", "--std=c++17")
    return cp.RawModule(code=kernel_source(), options=options, enable_cooperative_groups=together)


@functools.cache
def _kernel(name: str, dtype: str, together: bool) -> Any:
    return _module(dtype, together).get_function(name)


def launch(
    name: str,
    dtype: np.dtype,
    blocks: int,
    threads: int,
    arguments: tuple[Any, ...],
    shared: int = 0,
    together: bool = False,
) -> None:
    """Launch a kernel compiled for a dtype, with an array as its first argument.

    Python's ints are passed as 64-bit, its floats in that dtype, NumPy's numbers as they are. ``shared`` is
    in bytes. With ``together``, all blocks run at once, as a GRID_KERNEL asks, if there are no more than the
    device has room for.
    """
    check_device(arguments[0], name)
    real, values = dtype.type, []
    for value in arguments:
        if isinstance(value, int):
            value = np.int64(value)
        elif type(value) is float:
            value = real(value)
        values.append(value)
    kernel = _kernel(name, dtype.name, together)
    if shared > _SHARED:
        kernel.max_dynamic_shared_size_bytes = shared
    if not together:
        kernel((blocks,), (threads,), tuple(values), shared_mem=shared)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where not all fit, CuPy warns, and leaves some blocks out
        kernel((blocks,), (threads,), tuple(values), shared_mem=shared)


def check_device(array: Array, function: str) -> int:
    """The number of the device that an array is on, once it is seen to be the one in use."""
    here, there = cp.cuda.runtime.getDevice(), array.device.id
    if here != there:
        raise RuntimeError(
            f"{function}: the arrays are on gpu:{there}, and this thread works on gpu:{here}: in each "
            f"thread, rnnlab.ops.ops_on('gpu:{there}') or the model's to('gpu:{there}') comes first"
        )
    return here


def each(name: str, size: int, like: Array, *arguments: Any) -> None:
    """Launch a kernel whose threads work each by itself, on so many numbers."""
    if size:
        blocks = min(-(-size // THREADS), _BLOCKS)
        launch(name, like.dtype, blocks, THREADS, arguments)


def by_rows(name: str, rows: int, columns: int, like: Array, *arguments: Any, room: int = 0) -> None:
    """Launch a kernel with a block for each row, of threads for so many columns.

    ``room`` is the number of elements of shared memory, beside one for each warp.
    """
    if rows:
        threads = min(max(WARP, 1 << max(columns - 1, 0).bit_length()), THREADS)
        shared = (room + THREADS // WARP) * like.dtype.itemsize
        launch(name, like.dtype, min(rows, _BLOCKS), threads, arguments, shared)


def check_whole(*arrays: Array | None) -> None:
    """Check that rows lie one after another, as most kernels have it."""
    for array in arrays:
        if array is not None and not array.flags.c_contiguous:
            raise ValueError(f"expected a C-contiguous array, got strides {array.strides}")


def stride(array: Array) -> int:
    """How many elements from one row (n, columns) to the next, once the columns are seen to be neighbours."""
    if array.shape[1] > 1 and array.strides[1] != array.itemsize:
        raise ValueError(f"expected columns one after another, got strides {array.strides}")
    return array.strides[0] // array.itemsize
