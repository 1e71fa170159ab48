"""Tiles of products of bfloat16 in the tile registers of AMX, as LLVM instructions.

A tile register holds 16 lines of 64 bytes: 16 x 16 sums of float32, or 16 lines of 16 pairs of bfloat16. One
instruction multiplies a tile of x, 16 rows by 16 pairs along k, with a tile of a panel, 16 pairs along k by
16 columns, and adds the products to a tile of sums. The factors are stored tile by tile, 1 KB each, because
lines whose distance is a power of two would compete for the same few sets of the first-level cache.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["AMX", "LINE", "ROWS", "TILE", "permitted", "release_tiles", "set_tiles", "sum_tiles"]

AMX = bool(binding.get_host_cpu_features().get("amx-bf16"))
LINE = 64  # bytes of a line of a tile
_LINES = 16  # lines of a tile
TILE = _LINES * LINE  # bytes
ROWS = 2 * _LINES  # maximum rows of sums
_PANEL_TILES = 4  # side by side in a panel
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18  # constants of Linux


def permitted() -> bool:
    """Request permission to use AMX; whether it is granted and the processor has AMX for bfloat16."""
    if not AMX or sys.platform != "linux":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0


@intrinsic
def set_tiles(context):
    """Give all tile registers their full size. Each thread calls it before its first tile."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        palette = [1] + [0] * 15 + [LINE, 0] * 8 + [0] * 16 + [_LINES] * 8 + [0] * 8
        bytes_ = ir.ArrayType(_INT8, len(palette))
        setting = cgutils.alloca_once_value(b, ir.Constant(bytes_, palette))
        _call(b, "ldtilecfg", b.bitcast(setting, ir.PointerType()))
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def release_tiles(context):
    """Release the tile registers, so that the system need not save them. Each thread calls it at the end."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        _call(b, "tilerelease")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def sum_tiles(context, both, depth, x, x_step, w, first, first_step, out, out_step):
    """out = first + x w: 32 rows and columns if ``both``, else 16 rows and 64 columns.

    x, w, first and out are addresses; ``depth`` is the number of tiles along k. The tiles of 16 rows of x are
    stored one after another along k, those of the next 16 rows ``x_step`` bytes further. The tiles of a panel
    are stored in groups of four: 64 columns of 16 pairs, then of the next 16 pairs. w points into a panel.
    The other steps are the bytes from one row to the next. ``first`` is 0 if the sums start at zero.
    """

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        both, *places = arguments
        with b.if_else(both) as (of_two, of_one):
            with of_two:
                _add_up(b, [0, 1], [0, 1], *places)
            with of_one:
                _add_up(b, [0], [0, 1, 2, 3], *places)
        return context.get_dummy_value()

    addresses_and_steps = [types.uintp, types.int64, types.uintp, *[types.uintp, types.int64] * 2]
    return types.void(types.boolean, types.int64, *addresses_and_steps), generate


def _add_up(
    b: ir.IRBuilder, down: list[int], across: list[int], depth: Any,
    x: Any, x_step: Any, w: Any, first: Any, first_step: Any, out: Any, out_step: Any,
) -> None:  # fmt: skip
    """The sums of four tiles, whose positions from the top and from the left are counted in tiles."""
    sums = [(row, column) for row in down for column in across]
    of_x, of_w = 4, 4 + len(down)  # the first registers of the factors; the sums are in 0 to 3
    line = _int64(LINE)

    def place(address: Any, step: Any, row: int, column: int) -> Any:
        return b.add(address, b.add(b.mul(step, _int64(row * _LINES)), _int64(column * LINE)))

    with b.if_else(b.icmp_unsigned("==", first, _int64(0))) as (from_zero, from_first):
        with from_zero:
            for register in range(4):
                _call(b, "tilezero", _int8(register))
        with from_first:
            for register, (row, column) in enumerate(sums):
                _load(b, register, place(first, first_step, row, column), first_step)
    with cgutils.for_range(b, depth) as loop:
        x_here = b.add(x, b.mul(loop.index, _int64(TILE)))
        w_here = b.add(w, b.mul(loop.index, _int64(_PANEL_TILES * TILE)))
        for register, row in enumerate(down, of_x):
            _load(b, register, b.add(x_here, b.mul(x_step, _int64(row))), line)
        for column_number, column in enumerate(across):
            register = of_w + column_number % (8 - of_w)
            _load(b, register, b.add(w_here, _int64(column * TILE)), line)
            for row_number in range(len(down)):
                total = row_number * len(across) + column_number
                _call(b, "tdpbf16ps", _int8(total), _int8(of_x + row_number), _int8(register))
    for register, (row, column) in enumerate(sums):
        at = b.inttoptr(place(out, out_step, row, column), ir.PointerType())
        _call(b, "tilestored64", _int8(register), at, out_step)


def _load(b: ir.IRBuilder, register: int, address: Any, step: Any) -> None:
    _call(b, "tileloadd64", _int8(register), b.inttoptr(address, ir.PointerType()), step)


def _call(b: ir.IRBuilder, instruction: str, *arguments: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    b.call(cgutils.get_or_insert_function(b.module, kind, f"llvm.x86.{instruction}"), arguments)


_INT8 = ir.IntType(8)


def _int8(number: int) -> Any:
    return ir.Constant(_INT8, number)


def _int64(number: int) -> Any:
    return ir.Constant(ir.IntType(64), number)
