"""Column sums on CuPy, in a fixed order, so that results are bitwise reproducible."""

from __future__ import annotations

import cupy as cp

from rnnlab.ops.cuda.launch import THREADS, WARP, check_contiguous, launch
from rnnlab.types import Array

_ROWS = 256  # minimum rows that a block sums, if there are so many
_BLOCKS = 1024  # about 8 per multiprocessor of an NVIDIA H100; the same on all devices, so that sums are


def add_sums(x: Array, out: Array) -> None:
    """Add the sum of all rows of x (M, G) to ``out`` (G,).

    A block sums some columns over a part of the rows; a second launch adds the parts.
    """
    rows, columns = x.shape
    if not x.size:
        return
    check_contiguous(out)
    most = max(1, _BLOCKS // -(-columns // WARP))
    part = max(_ROWS, -(-rows // most))
    parts = -(-rows // part)
    if parts > 1:
        of_parts = cp.empty((parts, columns), x.dtype)
        _sum_parts(x, of_parts, part, add=False)
        x = of_parts
    _sum_parts(x, out, x.shape[0], add=True)


def _sum_parts(x: Array, out: Array, part: int, add: bool) -> None:
    (rows, columns), (down, across) = x.shape, (stride // x.itemsize for stride in x.strides)
    blocks = -(-columns // WARP) * -(-rows // part)
    threads = min(THREADS, -(-part // 4) * WARP)  # a warp has at least four rows
    sizes = rows, columns, down, across, part, int(add)
    launch("column_sums", x.dtype, blocks, threads, (x, out, *sizes), threads * x.itemsize)
