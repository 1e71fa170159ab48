"""Matrix products of float32 whose factors are rounded to bfloat16; sums are float32.

Current processors multiply pairs of bfloat16 along k, a b + c d, faster than single float32 numbers:
processors with AMX in tiles of 16 x 16 pairs, AMD's with AVX512-BF16 in registers of 16 pairs. A pair has 32
bits. The rows of x are rounded to rows of pairs, and a weight to panels of pairs
(:mod:`~rnnlab.ops.numba.gemm`), with zeros beyond the last k, for up to 1,024 k at a time.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numba
import numpy as np
from llvmlite import binding

from rnnlab.errors import InputTypeError
from rnnlab.ops.numba import amx, registers
from rnnlab.ops.numba.amx import AMX
from rnnlab.ops.numba.gemm import Panels, row_parts_of, rows_by_piece, rows_of, verify
from rnnlab.ops.numba.kernel import inlined, kernel, phase, reduction, shared_by
from rnnlab.ops.numba.layouts import by_columns, contiguous, plain, writeable
from rnnlab.ops.numba.memory import empty
from rnnlab.ops.numba.parallel import in_parts, share, share_either_way
from rnnlab.ops.numba.registers import VECTOR, round_line, round_lines, rounded, transpose_square
from rnnlab.ops.numba.thin import FEW, multiply_thin, narrowest, part_of
from rnnlab.ops.numpy.bfloat16 import rounded_to_bfloat16
from rnnlab.ops.precision import products_precision
from rnnlab.types import Array

__all__ = [
    "AMX",
    "INSTRUCTIONS",
    "PAYS",
    "ROWS",
    "VERSIONS",
    "RoundedPanels",
    "begin_tiles",
    "declined",
    "end_tiles",
    "missing",
    "multiply",
    "pairs_by_panels",
    "round_rows",
    "rounded_rows",
    "rounds",
]

INSTRUCTIONS = "AMX" if AMX else "AVX512-BF16"
# In two cycles, Intel's processors with AVX512-BF16 multiply 16 pairs, or 64 numbers of float32.
_HALF_AS_FAST = ("cooperlake", "emeraldrapids", "graniterapids", "graniterapids-d", "sapphirerapids")
PAYS = AMX or binding.get_host_cpu_name() not in _HALF_AS_FAST  # whether it is faster than float32
_COLUMNS = 64  # columns of a panel
_config: Any = numba.config
_OTHER_TARGET = bool(_config.CPU_NAME or _config.CPU_FEATURES)  # whether numba targets another processor
_HAS_PAIRS = bool(binding.get_host_cpu_features().get("avx512bf16")) and not _OTHER_TARGET
VERSIONS = "f" if _HAS_PAIRS and 4 * _COLUMNS == registers.REGISTERS * VECTOR else ""
ROWS = amx.ROWS if AMX else registers.ROWS  # rows of a tile; AMX is part of a kernel's name in the cache
_BLOCK = 16  # lines and pairs that are rounded together; panels and rows have a multiple of it
_DEPTH = 512  # pairs in a piece of a panel: 128 KB
_TOGETHER = 4  # pieces multiplied by one block of rows; the second-level cache holds both
_ROW_BLOCK = 512  # rows in such a block
_PARALLEL_FROM = 1 << 23  # multiplications for which it is worth waking other threads


def rounds(dtype: np.dtype) -> bool:
    """Whether factors of this dtype are currently rounded."""
    return dtype == np.float32 and products_precision() == "bfloat16" and _usable()


@functools.cache
def missing() -> str:
    """Why bfloat16 cannot be multiplied here; empty if it can."""
    if _OTHER_TARGET:
        return "NUMBA_CPU_NAME or NUMBA_CPU_FEATURES is set"
    if not VERSIONS:
        return "this processor has neither AMX nor AVX512-BF16"
    return "" if not AMX or amx.permitted() else "the system does not let this process use AMX"


def declined() -> str:
    """Why products are computed in float32 although bfloat16 was asked for; empty if bfloat16 is used."""
    return missing() or ("" if PAYS else "this processor has no AMX, and without it float32 is faster")


@functools.cache
def _usable() -> bool:
    """Whether bfloat16 is used: if so, products are verified; if not, a warning gives the reason once."""
    if declined():
        warnings.warn(
            f"products are computed in float32, not bfloat16: {declined()}", RuntimeWarning, stacklevel=4
        )
        return False
    verify(RoundedPanels, multiply, rounded_to_bfloat16)
    return True


class RoundedPanels(Panels):
    """A prepacked weight of float32 in bfloat16."""

    parallel_from = _PARALLEL_FROM

    def _laid_out(self, w: Array, columns: int) -> Array:
        K, G = w.shape
        panels = empty((-(-G // columns), _pairs(K), columns), np.dtype(np.uint32))
        _lay_out.run(shared_by(8 * w.size, _PARALLEL_FROM), w, panels)
        return panels

    def __reduce__(self) -> Any:
        raise InputTypeError("a prepacked weight in bfloat16 cannot be saved: prepack it again")

    def _multiply(self, x: Array, first: Array | None, out: Array) -> None:
        threads = shared_by(x.shape[0] * 2 * self.panels.size, _PARALLEL_FROM)
        x = writeable(x)
        _multiply_panels.run(threads, x, _scratch(x), self.panels, *rows_of(first, out), out)


def multiply(x: Array, w: Array, first: Array | None, out: Array) -> None:
    """out = first + x w, for arrays that :func:`~rnnlab.ops.numba.gemm.check` has checked."""
    (n, K), G = x.shape, w.shape[1]
    thin = min(n, K) < FEW or (G < narrowest(out.dtype) and not by_columns(x))
    if not plain(out) or (out.strides[1] != out.itemsize and not thin):
        product = empty(out.shape, np.dtype(np.float32))
        multiply(x, w, None if first is None else contiguous(first), product)
        out[...] = product
    elif thin:
        multiply_thin(x, w, first, out, _add_rounded_dots, _add_rounded_rows)
    else:
        threads = shared_by(n * K * G, _PARALLEL_FROM)
        x, sizes = writeable(x), (threads, _TOGETHER, min(_DEPTH, _pairs(K)), _COLUMNS)
        pieces = empty(sizes, np.dtype(np.uint32))
        _multiply.run(threads, x, _scratch(x), writeable(w), pieces, *rows_of(first, out), out)


def _pairs(K: int) -> int:
    """The number of pairs along k, including pairs of zeros."""
    return -(-K // (2 * _BLOCK)) * _BLOCK


def _whole_tiles(n: int) -> int:
    """The number of rows rounded up to whole tiles."""
    return -(-n // amx.ROWS) * amx.ROWS


def _scratch(x: Array) -> Array:
    """Memory for a piece of the rounded rows of x."""
    return empty((_whole_tiles(x.shape[0]), min(_DEPTH, _pairs(x.shape[1]))), np.dtype(np.uint32))


# ---------------------------------------------------------------- kernels


@kernel(
    "T[:,:], uint32[:,::1], uint32[:,:,::1], T[:,:], int64, T[:,:]",
    arguments="x (n, K); rows! (R, D) uint32; panels (Q, P, W) uint32; first (F, G); out! (n, G) = first",
    dtypes=VERSIONS,
)
def _multiply_panels(parts, x, rows, panels, first, first_rows, out):
    """out = first + x w, w in panels."""
    for k in range(0, panels.shape[1], _DEPTH):
        depth = min(_DEPTH, panels.shape[1] - k)
        in_parts(parts, round_rows, (x, k, depth, rows))
        in_parts(parts, _multiply_piece_of_panels, (rows, k, depth, panels, first, first_rows, out))


@phase
def _multiply_piece_of_panels(part, parts, rows, k, depth, panels, first, first_rows, out):
    row_parts = row_parts_of(out.shape[0], panels.shape[0], parts, ROWS)
    blocks = _row_blocks(out.shape[0], row_parts)
    edge = np.empty((ROWS, _COLUMNS), out.dtype)
    begin_tiles()
    for block in range(blocks):
        for task in share(panels.shape[0] * row_parts, part, parts):
            panel, row_part = task // row_parts, task % row_parts * blocks + block
            rows_by_pairs(
                rows, k > 0, panels[panel, k : k + depth], panel, row_part, row_parts * blocks,
                first, first_rows, edge, out,
            )  # fmt: skip
    end_tiles()


@kernel(
    "T[:,:], uint32[:,::1], T[:,:], uint32[:,:,:,::1], T[:,:], int64, T[:,:]",
    arguments="x (n, K); rows! (R, D) uint32; w (K, G); pieces! (t, p, d, W) uint32; "
    "first (F, G); out! (n, G) = first",
    dtypes=VERSIONS,
)
def _multiply(parts, x, rows, w, pieces, first, first_rows, out):
    """The same for a weight that is not packed; each part packs into a piece of its own."""
    pairs = (x.shape[1] + 2 * _BLOCK - 1) // (2 * _BLOCK) * _BLOCK
    for k in range(0, pairs, _DEPTH):
        depth = min(_DEPTH, pairs - k)
        in_parts(parts, round_rows, (x, k, depth, rows))
        in_parts(parts, _multiply_piece, (rows, k, depth, w, pieces, first, first_rows, out))


@phase
def _multiply_piece(part, parts, rows, k, depth, w, pieces, first, first_rows, out):
    panels = (w.shape[1] + _COLUMNS - 1) // _COLUMNS
    row_parts = row_parts_of(out.shape[0], panels, parts, ROWS)
    tasks, blocks = panels * row_parts, _row_blocks(out.shape[0], row_parts)
    edge = np.empty((ROWS, _COLUMNS), out.dtype)
    begin_tiles()
    stop = (part + 1) * tasks // parts
    for start in range(part * tasks // parts, stop, _TOGETHER):
        for task in range(start, min(stop, start + _TOGETHER)):
            _round_panel(w, k, task // row_parts * _COLUMNS, pieces[part, task - start, :depth])
        for block in range(blocks):
            for task in range(start, min(stop, start + _TOGETHER)):
                panel, row_part = task // row_parts, task % row_parts * blocks + block
                rows_by_pairs(
                    rows, k > 0, pieces[part, task - start, :depth], panel, row_part, row_parts * blocks,
                    first, first_rows, edge, out,
                )  # fmt: skip
    end_tiles()


@kernel(
    "T[:,:], uint32[:,:,::1]",
    arguments="w (K, G); panels! (Q, P, W) uint32",
    dtypes=VERSIONS,
)
def _lay_out(part, parts, w, panels):
    for panel in share(panels.shape[0], part, parts):
        _round_panel(w, 0, panel * _COLUMNS, panels[panel])


@kernel(
    "T[:,::1], T[:,::1], T[:,::1]",
    arguments="x (n, K); columns (G, K); out! (n, G)",
    dtypes=VERSIONS,
)
def _add_rounded_dots(part, parts, x, columns, out):
    """out += x w, the columns of w one after the other."""
    top, bottom, left, right = part_of(out, part, parts)
    for i in range(top, bottom):
        for j in range(left, right):
            out[i, j] += _rounded_dot(x[i], columns[j])


@kernel(
    "T[:,:], T[:,::1], T[:,::1]",
    arguments="x (n, K); w (K, G); out! (n, G)",
    dtypes=VERSIONS,
)
def _add_rounded_rows(part, parts, x, w, out):
    """out += x w, row by row of w."""
    top, bottom, left, right = part_of(out, part, parts)
    for i in range(top, bottom):
        sums = out[i, left:right]
        for k in range(w.shape[0]):
            factor: Any = rounded(x[i, k])
            row = w[k, left:right]
            for j in range(sums.size):
                sums[j] += factor * rounded(row[j])


@reduction
def _rounded_dot(a, b):
    total = a.dtype.type(0)
    for k in range(a.size):
        total += rounded(a[k]) * rounded(b[k])
    return total


@inlined
def _row_blocks(rows, row_parts):
    """The number of blocks that each part of the rows is split into."""
    return (rows + _ROW_BLOCK * row_parts - 1) // (_ROW_BLOCK * row_parts)


@inlined
def rounded_rows(number, depth):
    """Memory for this many rows of ``depth`` pairs, from the start of a cache line."""
    size = (number + amx.ROWS - 1) // amx.ROWS * amx.ROWS * depth
    memory = np.empty(size + _BLOCK, np.uint32)
    start = (amx.LINE - memory.ctypes.data % amx.LINE) // memory.itemsize
    return memory[start : start + size].reshape((-1, depth))


@inlined
def begin_tiles():
    if AMX:
        amx.set_tiles()


@inlined
def end_tiles():
    if AMX:
        amx.release_tiles()


@inlined
def pairs_by_panels(rows, panels, part, parts, first_rows, edge, out, backwards):
    """A part's share of out = rows w, or out += rows w if ``first_rows`` is the number of rows.

    It goes from the first panel to the last or backwards.
    """
    row_parts = row_parts_of(out.shape[0], panels.shape[0], parts, ROWS)
    for task in share_either_way(panels.shape[0] * row_parts, part, parts, backwards):
        panel, row_part = task // row_parts, task % row_parts
        rows_by_pairs(rows, False, panels[panel], panel, row_part, row_parts, out, first_rows, edge, out)


@inlined
def rows_by_pairs(rows, more, piece, panel, row_part, row_parts, first, first_rows, edge, out):
    """Multiply the rows of a part by a piece of a panel; with ``more``, add the products to the result."""
    if more:
        first, first_rows = out, out.shape[0]
    if AMX:
        _rows_by_tiles(rows, piece, panel, row_part, row_parts, first, first_rows, edge, out)
    else:
        rows_by_piece(
            rows[: out.shape[0]], 0, piece, panel, row_part, row_parts, first, first_rows, edge, out
        )


@inlined
def _rows_by_tiles(rows, piece, panel, row_part, row_parts, first, first_rows, edge, out):
    """The same by AMX. Half of the columns of a piece stay in the first-level cache for all rows."""
    itemsize, depth = out.itemsize, piece.shape[0] // _BLOCK
    tiles = (out.shape[0] + ROWS - 1) // ROWS
    first_step = first.strides[0] if first_rows > 1 else 0
    for tile in range(row_part * tiles // row_parts, (row_part + 1) * tiles // row_parts):
        for half in range(2):
            row = tile * ROWS
            count = min(ROWS, out.shape[0] - row)
            both = count > ROWS // 2
            columns, right = (_COLUMNS // 2, half * _COLUMNS // 2) if both else (_COLUMNS, half * _COLUMNS)
            left = panel * _COLUMNS + right
            width = min(columns, out.shape[1] - left)
            if width <= 0 or right == _COLUMNS:
                continue
            x_at, x_step = rows.ctypes.data + row * rows.strides[0], _BLOCK * rows.strides[0]
            w_at = piece.ctypes.data + right // _BLOCK * amx.TILE
            out_at, out_step = out.ctypes.data + row * out.strides[0] + left * itemsize, out.strides[0]
            first_at = first.ctypes.data + row * first_step + left * itemsize if first_rows else 0
            step = first_step
            whole = width == columns and count % (ROWS // 2) == 0
            if not whole:
                for i in range(count if first_rows else 0):
                    for j in range(width):
                        edge[i, j] = first[row + i if first_step else 0, left + j]
                out_at, out_step = edge.ctypes.data, edge.strides[0]
                first_at, step = out_at if first_rows else 0, out_step
            amx.sum_tiles(both, depth, x_at, x_step, w_at, first_at, step, out_at, out_step)
            if not whole:
                for i in range(count):
                    for j in range(width):
                        out[row + i, left + j] = edge[i, j]


@phase
def round_rows(part, parts, x, k, depth, rows):
    """Round the numbers of a piece, in a part's rows of x."""
    spare, square = np.empty((_BLOCK, 2 * _BLOCK), x.dtype), np.empty((_BLOCK, _BLOCK), np.uint32)
    blocks = (x.shape[0] + _BLOCK - 1) // _BLOCK
    for block in share(blocks, part, parts):
        top = block * _BLOCK
        for pair in range(0, depth, _BLOCK):
            at = rows.ctypes.data + top * rows.strides[0] + pair * (amx.LINE if AMX else rows.itemsize)
            step = amx.LINE if AMX else rows.strides[0]
            _round_block(x, top, 2 * (k + pair), spare, square, at, step, False)


@inlined
def _round_panel(w, k, left, piece):
    """Round the numbers of a piece of a panel."""
    spare, square = np.empty((_BLOCK, 2 * _BLOCK), w.dtype), np.empty((_BLOCK, _BLOCK), np.uint32)
    for pair in range(0, piece.shape[0], _BLOCK):
        for column in range(0, min(_COLUMNS, w.shape[1] - left), _BLOCK):
            at = piece.ctypes.data + pair * piece.strides[0] + column * (amx.LINE if AMX else piece.itemsize)
            step = amx.LINE if AMX else piece.strides[0]
            _round_block(w.T, left + column, 2 * (k + pair), spare, square, at, step, True)


@inlined
def _round_block(m, top, left, spare, square, out, step, across):
    """Round 16 lines of 32 numbers of m (lines, K) to pairs at an address, zeros beyond the last k.

    The pairs of a line are stored side by side; with ``across``, the pairs of one k are, and the lines are
    columns. The content of lines beyond the last is undefined.
    """
    lines, numbers = min(_BLOCK, m.shape[0] - top), min(2 * _BLOCK, m.shape[1] - left)
    at, down, right = m.ctypes.data + top * m.strides[0] + left * m.strides[1], m.strides[0], m.strides[1]
    by_lines = right == m.itemsize
    if numbers < 2 * _BLOCK or not (by_lines or (down == m.itemsize and lines == _BLOCK)):
        spare[:] = 0
        for i in range(lines):
            for j in range(numbers):
                spare[i, j] = m[top + i, left + j]
        at, down, by_lines = spare.ctypes.data, spare.strides[0], True
    target, target_step = (square.ctypes.data, square.strides[0]) if by_lines == across else (out, step)
    if by_lines:
        for i in range(lines):
            round_line(at + i * down, target + i * target_step)
    else:
        for pair in range(_BLOCK):
            even = at + 2 * pair * right
            round_lines(even, even + right, target + pair * target_step)
    if by_lines == across:
        transpose_square(square, square.ctypes.data, square.strides[0], out, step)
