"""Matrix products by a kernel that keeps a tile of the result in registers during the whole sum.

    out (n, G) = first + x (n, K) w (K, G)           first: nothing, out itself, or one row for all, (1, G)

The weight is packed into panels, (panels, K, columns), with as many columns as a few vector registers hold,
so that the innermost loop reads it sequentially. A tile is the product of up to six rows of x and a panel, or
those registers of a panel that hold columns. For each k it loads one line of the panel, broadcasts one
element of each row, and issues as many multiplications as the processor can run at once (Goto and van de
Geijn 2008, "Anatomy of high-performance matrix multiplication"). Products with few rows, as in a recurrent
step, are as fast as those with many; there, libraries that are tuned for large products reach half of that
speed.

A weight of many products is prepacked once (:class:`Panels`). In a single product, each thread packs pieces
of a few panels at a time, and multiplies them by one block of rows after the other, which stays in its cache.
Products with few rows, columns or terms have their own loops (:mod:`~rnnlab.ops.numba.thin`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from rnnlab.errors import InputError, InputTypeError, NotInstalledError
from rnnlab.ops.numba.kernel import DTYPES, always_parallel, inlined, kernel, shared_by
from rnnlab.ops.numba.layouts import by_columns, contiguous, copied, plain, writeable
from rnnlab.ops.numba.memory import empty
from rnnlab.ops.numba.parallel import share, share_either_way
from rnnlab.ops.numba.registers import (
    REGISTERS,
    ROWS,
    VECTOR,
    columns_of,
    copy_bytes,
    copy_line,
    sum_up,
    transpose_square,
)
from rnnlab.ops.numba.thin import FEW, multiply_by_columns, multiply_thin, narrowest
from rnnlab.types import Array

__all__ = [
    "Panels",
    "check",
    "multiply",
    "row_parts_of",
    "rows_by_panels",
    "rows_by_piece",
    "rows_of",
    "verify",
]
_DTYPES = tuple(map(np.dtype, DTYPES.values()))
_DEPTH = 512  # k's in a piece of a panel: 128 KB with AVX-512, 32 KB with AVX or NEON
_PIECES = 512 * 1024  # bytes of the pieces that are packed together
_ROW_BLOCK = 120  # rows that are multiplied by these pieces; the second-level cache holds 512 k's of them
_PART_ROWS = 32  # about the least rows of a part of them that packs pieces of its own
_PARALLEL_FROM = 1 << 21  # multiplications, some 30 microseconds, worth waking other threads
_SHALLOW = 8  # writing a sum takes as long as adding this number of terms
_PACKED_ROWS = 16  # rows of a weight that are packed at a time: few memory pages, so packing is faster
_BLOCK = 64  # rows of the result of a transposition that are written together: a few adjacent cache lines
_NARROW_ROWS = 64  # rows from which on packing a weight of less than half a panel is worth it


class Panels:
    """A prepacked weight (K, G). It is a copy, so later changes of the weight do not affect it.

    Parameters
    ----------
    w : (K, G)
    narrow : bool
        Also pack a weight that has too few columns for products with panels to be faster.

    Raises
    ------
    TypeError
        If it is not a matrix of float32 or float64, or has too few columns to be worth packing.
    """

    parallel_from = _PARALLEL_FROM  # multiplications

    def __init__(self, w: Array, *, narrow: bool = False) -> None:
        least = 1 if narrow else narrowest(w.dtype)
        if w.ndim != 2 or w.dtype.char not in DTYPES or not w.size or w.shape[1] < least:
            raise InputTypeError(
                f"expected a matrix of float32 or float64 with at least {least} columns, "
                f"got shape {w.shape}, {w.dtype}"
            )
        self.shape, self.dtype = w.shape, w.dtype.newbyteorder("=")
        self.panels = self._laid_out(writeable(w), columns_of(w.dtype))

    def multiply(self, x: Array, first: Array | None, out: Array) -> None:
        """out = first + x w, (n, K) -> (n, G); ``first`` is None, ``out``, or a row (1, G).

        Raises
        ------
        ValueError, TypeError
            If a shape or a dtype is wrong.
        """
        check(x, self, first, out)
        if not out.size:
            return
        if (out.shape[1] > 1 and out.strides[1] != out.itemsize) or not plain(out):
            if first is out:
                first = product = copied(out)
            else:
                product = empty(out.shape, self.dtype)
            self.multiply(x, first, product)
            out[...] = product
        else:
            self._multiply(x, first, out)

    def _laid_out(self, w: Array, columns: int) -> Array:
        """The panels of a weight."""
        K, G = w.shape
        panels = empty((-(-G // columns), K, columns), w.dtype)
        _lay_out.run(_threads(8 * w.size), w, panels)
        return panels

    def _multiply(self, x: Array, first: Array | None, out: Array) -> None:
        """out = first + x w, for arrays that are checked; the rows of ``out`` are contiguous."""
        threads = _threads(x.shape[0] * max(self.shape[0], _SHALLOW) * self.shape[1])
        _multiply_panels.run(threads, _row_by_row(x), self.panels, *rows_of(first, out), out)


def multiply(x: Array, w: Array, first: Array | None, out: Array) -> None:
    """out = first + x w, for arrays that :func:`check` has checked."""
    (n, K), G = x.shape, w.shape[1]
    columns = columns_of(out.dtype)
    if not plain(out):
        product = empty(out.shape, out.dtype)
        multiply(x, w, None if first is None else copied(first), product)
        out[...] = product
    elif min(n, K) >= FEW and 2 * G < columns and by_columns(x):
        multiply_by_columns(x, w, first, out)
    elif (
        min(n, K) < FEW
        or G < narrowest(out.dtype)
        or (2 * G < columns and n < _NARROW_ROWS)
        or out.strides[1] != out.itemsize
    ):
        multiply_thin(x, w, first, out)
    else:
        threads = _threads(n * K * G)
        together = min(_PIECES // (_DEPTH * REGISTERS * VECTOR), -(-G // columns))
        pieces = empty((threads, together, min(_DEPTH, K), columns), out.dtype)
        _multiply.run(threads, _row_by_row(x), writeable(w), pieces, *rows_of(first, out), out)


def check(x: Array, w: Array | Panels, first: Array | None, out: Array) -> None:
    """Check a product before anything is written.

    Raises
    ------
    ValueError
        If a shape does not fit, or ``out`` is read-only or overlaps x, w or b.
    TypeError
        If the dtypes are not all float32 or all float64.
    """
    matrices = x.ndim == len(w.shape) == 2
    if not matrices or x.shape[1] != w.shape[0] or out.shape != (x.shape[0], w.shape[1]):
        raise InputError(f"x w: x has shape {x.shape}, w {w.shape} and out {out.shape}")
    if not x.dtype == w.dtype == out.dtype or out.dtype not in _DTYPES:
        raise InputTypeError(f"x w: x has dtype {x.dtype}, w {w.dtype} and out {out.dtype}")
    if not out.flags.writeable:
        raise InputError("x w: out is read-only, and this function writes it")
    if first is not None and first is not out:
        if first.shape != (1, out.shape[1]) or first.dtype != out.dtype:
            raise InputError(f"x w + b: b has shape {first.shape[1:]} and dtype {first.dtype}")
        if np.may_share_memory(first, out) and np.shares_memory(first, out):
            raise InputError("x w + b: out overlaps b")
    # the compiled product checks overlaps, too, but a thin product is prepared before it
    if not isinstance(w, Panels):
        for a in (x, w):
            if np.may_share_memory(a, out) and np.shares_memory(a, out):
                raise InputError("x w: out overlaps x or w")


def verify(
    panels: type[Panels], multiply: Callable[..., None], as_factor: Callable[[Array], Array] = np.asarray
) -> None:
    """Multiply two small matrices and compare the product with NumPy's.

    It tests the versions of the kernels for all threads. Cached machine code that does not suit this process
    is found here rather than by wrong gradients.

    Raises
    ------
    ImportError
        If a product is wrong.
    """
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape, np.float32) for shape in ((50, 70), (70, 150)))
    expected, out = np.matmul(as_factor(x), as_factor(w)), np.empty((50, 150), np.float32)
    with always_parallel():
        for product in (functools.partial(multiply, x, w), functools.partial(panels(w).multiply, x)):
            product(None, out)
            product(out, out)
            if not np.allclose(out, 2 * expected, rtol=1e-4, atol=1e-4):
                raise NotInstalledError(
                    "compiled matrix products differ from NumPy's in this process; "
                    "delete the cache of compiled kernels, rnnlab/ops/numba/__pycache__ or NUMBA_CACHE_DIR"
                )


def rows_of(first: Array | None, out: Array) -> tuple[Array, int]:
    """The initial values of the sums, as arguments of kernels: rows, and their number (0 for zeros)."""
    if first is None:
        return out[:0], 0
    return (out if first is out else contiguous(first)), first.shape[0]


def _row_by_row(x: Array) -> Array:
    """x with contiguous rows."""
    x = writeable(x)
    if x.strides[1] == x.itemsize or x.shape[1] == 1:
        return x
    out = empty(x.shape, x.dtype)
    _transpose.run(_threads(8 * x.size), x, out)
    return out


def _threads(multiplications: int) -> int:
    """The number of threads that share this many multiplications: all of them or one."""
    return shared_by(multiplications, _PARALLEL_FROM)


# ---------------------------------------------------------------- kernels


@kernel(
    "T[:,:], T[:,:,::1], T[:,:], int64, T[:,:]",
    arguments="x (n, K); panels (P, K, W); first (F, G); out! (n, G) = first",
)
def _multiply_panels(part, parts, x, panels, first, first_rows, out):
    """out = first + x w, w in panels."""
    edge = np.empty((ROWS, panels.shape[2]), out.dtype)
    rows_by_panels(x, panels, part, parts, first, first_rows, edge, out, False)


@kernel(
    "T[:,:], T[:,:], T[:,:,:,::1], T[:,:], int64, T[:,:]",
    arguments="x (n, K); w (K, G); pieces! (t, p, d, W); first (F, G); out! (n, G) = first",
)
def _multiply(part, parts, x, w, pieces, first, first_rows, out):
    """The same for a weight that is not packed; each part packs into pieces of its own."""
    columns = pieces.shape[3]
    panels = (w.shape[1] + columns - 1) // columns
    row_parts = row_parts_of(x.shape[0], panels, parts, _PART_ROWS)
    blocks = (x.shape[0] + row_parts * _ROW_BLOCK - 1) // (row_parts * _ROW_BLOCK)  # of each part of the rows
    edge = np.empty((ROWS, columns), out.dtype)
    tasks = share(panels * row_parts, part, parts)
    together = pieces.shape[1] if row_parts == 1 else 1
    for start in range(tasks.start, tasks.stop, together):
        first_panel, row_part = start // row_parts, start % row_parts
        number = min(together, tasks.stop - start)
        for k in range(0, x.shape[1], _DEPTH):
            depth = min(_DEPTH, x.shape[1] - k)
            _lay_out_pieces(w, k, first_panel, pieces[part, :number, :depth])
            for block in range(row_part * blocks, (row_part + 1) * blocks):
                for i in range(number):
                    rows_by_piece(
                        x, k, pieces[part, i, :depth], first_panel + i, block, row_parts * blocks,
                        first, first_rows, edge, out,
                    )  # fmt: skip


@kernel(
    "T[:,:], T[:,:,::1]",
    arguments="w (K, G); panels! (P, K, W)",
)
def _lay_out(part, parts, w, panels):
    own = share(panels.shape[0], part, parts)
    _lay_out_pieces(w, 0, own.start, panels[own.start : own.stop])


@kernel(
    "T[:,:], T[:,::1]",
    arguments="x (n, K); out! (n, K)",
)
def _transpose(part, parts, x, out):
    """out = x, which is contiguous by columns."""
    rows = x.shape[0]
    for block in share((rows + _BLOCK - 1) // _BLOCK, part, parts):
        top = block * _BLOCK
        _copy_transposed(x, top, 0, out[top : top + _BLOCK])


@inlined
def row_parts_of(rows, panels, threads, tile_rows):
    """The number of parts into which the rows are split, so that all threads have work."""
    if threads == 1 or panels >= 2 * threads:
        return 1
    return min(2 * threads, (rows + tile_rows - 1) // tile_rows)


@inlined
def rows_by_panels(x, panels, part, parts, first, first_rows, edge, out, backwards):
    """A part's share of out = first + x w, from the first panel to the last or backwards."""
    row_parts = row_parts_of(x.shape[0], panels.shape[0], parts, ROWS)
    for task in share_either_way(panels.shape[0] * row_parts, part, parts, backwards):
        panel, row_part = task // row_parts, task % row_parts
        for k in range(0, x.shape[1], _DEPTH):
            piece = panels[panel, k : k + _DEPTH]
            rows_by_piece(x, k, piece, panel, row_part, row_parts, first, first_rows, edge, out)


@inlined
def rows_by_piece(x, k, piece, panel, row_part, row_parts, first, first_rows, edge, out):
    """Add x[rows, k : k + depth] times a piece of a panel to the rows of a part, tile by tile."""
    depth, columns = piece.shape
    left, itemsize = panel * columns, out.itemsize
    width = min(columns, out.shape[1] - left)
    registers = _registers_of(width, itemsize)
    start, stop = row_part * x.shape[0] // row_parts, (row_part + 1) * x.shape[0] // row_parts
    tiles = (stop - start + ROWS - 1) // ROWS
    if k > 0:
        first, first_rows = out, out.shape[0]
    first_step = first.strides[0] if first_rows > 1 else 0
    for tile in range(tiles):
        row = start + tile * (stop - start) // tiles
        rows = start + (tile + 1) * (stop - start) // tiles - row
        x_at = x.ctypes.data + row * x.strides[0] + k * itemsize
        out_at, out_step = out.ctypes.data + row * out.strides[0] + left * itemsize, out.strides[0]
        first_at = first.ctypes.data + row * first_step + left * itemsize if first_rows else 0
        step = first_step
        if width * itemsize < registers * VECTOR:
            for i in range(rows if first_rows else 0):
                copy_bytes(
                    edge.ctypes.data + i * edge.strides[0], first_at + i * first_step, width * itemsize
                )
            out_at, out_step = edge.ctypes.data, edge.strides[0]
            first_at, step = out_at if first_rows else 0, out_step
        sum_up(
            piece, rows, registers, depth, x_at, x.strides[0], piece.ctypes.data, first_at, step,
            out_at, out_step,
        )  # fmt: skip
        if width * itemsize < registers * VECTOR:
            for i in range(rows):
                at = out.ctypes.data + (row + i) * out.strides[0] + left * itemsize
                copy_bytes(at, out_at + i * out_step, width * itemsize)


@inlined
def _registers_of(columns, itemsize):
    """The registers of the narrowest tile that holds so many columns, one of ``WIDTHS``."""
    registers = 1
    while registers * VECTOR < columns * itemsize:
        registers *= 2
    return registers


@inlined
def _lay_out_pieces(w, k, first_panel, pieces):
    """Pieces of adjacent panels; if rows of w are contiguous, a few rows of all panels at a time."""
    number, depth, columns = pieces.shape
    step = _PACKED_ROWS if w.strides[1] == w.itemsize else max(depth, 1)
    for top in range(0, depth, step):
        for i in range(number):
            _lay_out_piece(w, k + top, (first_panel + i) * columns, pieces[i, top : top + step])


@inlined
def _lay_out_piece(w, k, left, piece):
    """piece = w[k : k + depth, left : left + columns], with zeros in the rest of the narrowest tile."""
    depth, columns = piece.shape
    width = min(columns, w.shape[1] - left)
    if w.strides[1] == w.itemsize:
        for i in range(depth):
            at = w.ctypes.data + (k + i) * w.strides[0] + left * w.itemsize
            target = piece.ctypes.data + i * piece.strides[0]
            if width == columns:
                copy_line(piece, at, target)
            else:
                copy_bytes(target, at, width * w.itemsize)
    else:
        _copy_transposed(w, k, left, piece[:, :width])
    for i in range(depth):
        for j in range(width, _registers_of(width, w.itemsize) * (VECTOR // w.itemsize)):
            piece[i, j] = 0


@inlined
def _copy_transposed(x, top, left, out):
    """out = x[top : top + rows, left : left + columns], fast if the columns of x are contiguous."""
    rows, columns = out.shape
    lanes = VECTOR // x.itemsize
    square_rows, square_columns = rows // lanes * lanes, columns // lanes * lanes
    if x.strides[0] != x.itemsize:
        square_rows = 0
    for j in range(0, square_columns, lanes):
        for i in range(0, square_rows, lanes):
            source = x.ctypes.data + (top + i) * x.strides[0] + (left + j) * x.strides[1]
            target = out.ctypes.data + i * out.strides[0] + j * out.itemsize
            transpose_square(out, source, x.strides[1], target, out.strides[0])
    for i in range(rows):
        for j in range(square_columns if i < square_rows else 0, columns):
            out[i, j] = x[top + i, left + j]
