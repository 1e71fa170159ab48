"""The operations of matrix products on vector registers, as LLVM instructions.

A tile of a product, up to six rows by some or all columns of a panel, is summed in registers. Square blocks
are transposed in registers. Numbers are rounded to bfloat16, and tiles are summed from pairs of bfloat16: a
pair has 32 bits, and the lower half is its first number.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import DTypeLike

__all__ = [
    "REGISTERS",
    "ROWS",
    "VECTOR",
    "WIDTHS",
    "columns_of",
    "copy_bytes",
    "copy_line",
    "round_line",
    "round_lines",
    "rounded",
    "sum_up",
    "tile_of",
    "transpose_square",
]

ROWS = 6  # maximum rows of a tile


def tile_of(triple: str, features: Mapping[str, bool]) -> tuple[int, int]:
    """The bytes of a vector register, and the number of registers that hold the columns of a tile.

    The sums of six rows take 24 of 32 registers with AVX-512 or NEON, and 12 of 16 on other processors.

    Parameters
    ----------
    triple : str
        The processor and its system, as LLVM names them.
    features : mapping of str to bool
        Whether the processor has each of LLVM's features.
    """
    if not triple.startswith(("x86_64", "i686")):
        return 16, 4
    if features.get("avx512f"):
        return 64, 4
    return (32 if features.get("avx") else 16), 2


VECTOR, REGISTERS = tile_of(binding.get_process_triple(), binding.get_host_cpu_features())
WIDTHS = tuple(width for width in (1, 2, 4) if width <= REGISTERS)  # registers of a line of a tile


def columns_of(dtype: DTypeLike) -> int:
    """The number of columns of a panel."""
    return REGISTERS * VECTOR // np.dtype(dtype).itemsize


@intrinsic
def sum_up(context, like, rows, registers, depth, x, x_step, w, first, first_step, out, out_step):
    """out = first + x w: 1 to 6 rows, the first registers of a panel, and ``depth`` numbers to add up.

    ``registers``, one of ``WIDTHS``, is their number. x, w, first and out are addresses; a step is the
    number of bytes from one row to the next. ``first`` is 0 if the sums start at zero. ``like`` is an array
    of the dtype of x and w. The dtype uint32 stands for pairs of bfloat16, whose sums are float32; that needs
    AVX512-BF16.
    """

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        element = context.get_value_type(signature.args[0].dtype)
        terms = _Pairs(b.module) if isinstance(element, ir.IntType) else _Numbers(b.module, element)
        done = b.append_basic_block("done")
        choice = b.switch(b.add(b.mul(arguments[1], _int64(REGISTERS + 1)), arguments[2]), done)
        for rows, width in itertools.product(range(1, ROWS + 1), WIDTHS):
            b.position_at_end(b.append_basic_block(f"rows_{rows}_of_{width}"))
            choice.add_case(_int64(rows * (REGISTERS + 1) + width), b.block)
            b.call(_tile(b.module, terms, rows, width), arguments[3:])
            b.branch(done)
        b.position_at_end(done)
        return context.get_dummy_value()

    addresses_and_steps = [types.uintp, types.int64, types.uintp, *[types.uintp, types.int64] * 2]
    return types.void(like, *[types.int64] * 3, *addresses_and_steps), generate


@intrinsic
def copy_line(context, like, source, target):
    """Copy the columns of a panel from one address to another."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        vector, itemsize = _vector(context.get_value_type(signature.args[0].dtype))
        sources, targets = (_registers(b, address) for address in arguments[1:])
        for source, target in zip(sources, targets, strict=True):
            b.store(b.load(source, align=itemsize, typ=vector), target, align=itemsize)
        return context.get_dummy_value()

    return types.void(like, types.uintp, types.uintp), generate


@intrinsic
def copy_bytes(context, target, source, count):
    """Copy bytes from one address to another; the two ranges do not overlap."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        target, source = (b.inttoptr(place, cgutils.voidptr_t) for place in arguments[:2])
        cgutils.raw_memcpy(b, target, source, arguments[2], itemsize=1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


@intrinsic
def rounded(context, x):
    """A float32, rounded to bfloat16; to nearest even."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        return b.fpext(b.fptrunc(arguments[0], _BFLOAT), ir.FloatType())

    return types.float32(types.float32), generate


@intrinsic
def round_line(context, source, target):
    """Round 32 float32 at one address to bfloat16 at another; to nearest even."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        given = b.load(_pointer(b, arguments[0]), align=4, typ=ir.VectorType(ir.FloatType(), 32))
        b.store(b.fptrunc(given, ir.VectorType(_BFLOAT, 32)), _pointer(b, arguments[1]), align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp), generate


@intrinsic
def round_lines(context, first, second, target):
    """Round 16 float32 at each of two addresses to bfloat16, and store them as 16 pairs."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        *sources, target = (_pointer(b, address) for address in arguments)
        wide = ir.VectorType(ir.IntType(32), 16)

        def bits(source: Any) -> Any:
            given = b.load(source, align=4, typ=ir.VectorType(ir.FloatType(), 16))
            rounded = b.fptrunc(given, ir.VectorType(_BFLOAT, 16))
            return b.zext(b.bitcast(rounded, ir.VectorType(ir.IntType(16), 16)), wide)

        low, high = map(bits, sources)
        b.store(b.or_(low, b.shl(high, ir.Constant(wide, [16] * 16))), target, align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.uintp), generate


@intrinsic
def transpose_square(context, like, source, source_step, target, target_step):
    """Transpose as many lines as a register holds numbers, by exchanging ever smaller parts of registers."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        vector, itemsize = _vector(context.get_value_type(signature.args[0].dtype))
        _, source, source_step, target, target_step = arguments
        lanes = range(vector.count)

        def line(address: Any, step: Any, index: int) -> Any:
            return _pointer(b, b.add(address, b.mul(step, _int64(index))))

        lines = [b.load(line(source, source_step, index), align=itemsize, typ=vector) for index in lanes]
        part = vector.count // 2
        while part:
            low = [lane if not lane & part else vector.count + lane - part for lane in lanes]
            high = [lane + part if not lane & part else vector.count + lane for lane in lanes]
            for index in lanes:
                if not index & part:
                    pair = lines[index], lines[index + part]
                    for place, order in ((index, low), (index + part, high)):
                        mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), order)
                        lines[place] = b.shuffle_vector(*pair, mask)
            part //= 2
        for index, value in enumerate(lines):
            b.store(value, line(target, target_step, index), align=itemsize)
        return context.get_dummy_value()

    return types.void(like, types.uintp, types.int64, types.uintp, types.int64), generate


_INT64 = ir.IntType(64)


class _BFloat(ir.Type):
    """LLVM's type bfloat, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


_BFLOAT = _BFloat()


class _Numbers:
    """Terms of sums that are products of numbers, float or double."""

    def __init__(self, module: ir.Module, real: Any) -> None:
        self.number, self.itemsize = real, 4 if isinstance(real, ir.FloatType) else 8
        self.sums = self.weights = ir.VectorType(real, VECTOR // self.itemsize)
        self._add = _multiply_add(module, self.sums)

    def add(self, b: ir.IRBuilder, everywhere: Any, weight: Any, total: Any) -> Any:
        """``total`` plus the products of a register of weights and one with the same number in all lanes."""
        return b.call(self._add, [everywhere, weight, total])


class _Pairs:
    """Terms of sums that are a b + c d for pairs of bfloat16."""

    number, itemsize = ir.IntType(32), 4
    sums, weights = ir.VectorType(ir.FloatType(), VECTOR // 4), ir.VectorType(_BFLOAT, VECTOR // 2)

    def __init__(self, module: ir.Module) -> None:
        name = f"llvm.x86.avx512bf16.dpbf16ps.{8 * VECTOR}"
        kind = ir.FunctionType(self.sums, [self.sums, self.weights, self.weights])
        self._add = cgutils.get_or_insert_function(module, kind, name)

    def add(self, b: ir.IRBuilder, everywhere: Any, weight: Any, total: Any) -> Any:
        """See :class:`_Numbers`."""
        return b.call(self._add, [total, b.bitcast(everywhere, self.weights), weight])


def _tile(module: ir.Module, terms: _Numbers | _Pairs, count: int, width: int) -> ir.Function:
    """The function that sums up a tile of ``count`` rows of ``width`` registers.

    It has the arguments of :func:`sum_up` from ``depth`` on.

    It is not inlined: the caller's variables would take registers, which its loop needs for addresses.
    """
    name = f"tile_of_{count}_rows_of_{width}_{type(terms).__name__}_{terms.itemsize}"
    if name in module.globals:
        return module.globals[name]
    tile = ir.Function(module, ir.FunctionType(ir.VoidType(), [_INT64] * 8), name)
    tile.linkage = "internal"
    tile.attributes.add("noinline")
    b = ir.IRBuilder(tile.append_basic_block("entry"))
    _add_up(b, terms, count, width, *tile.args)
    b.ret_void()
    return tile


def _add_up(
    b: ir.IRBuilder, terms: _Numbers | _Pairs, count: int, width: int, depth: Any,
    x: Any, x_step: Any, w: Any, first: Any, first_step: Any, out: Any, out_step: Any,
) -> None:  # fmt: skip
    """A tile of ``count`` rows of ``width`` registers, whose sums the compiler keeps in registers.

    The lines of ``out``, and those of ``first`` for the tile below, are fetched during the sum.
    """
    vector, itemsize, lanes = terms.sums, terms.itemsize, terms.sums.count
    numbers = ir.VectorType(terms.number, lanes)
    rows = [_opaque(b, b.add(x, b.mul(x_step, _int64(row)))) for row in range(count)]

    def tile_at(address: Any, step: Any) -> list[Any]:
        starts = (b.add(address, b.mul(step, _int64(row))) for row in range(count))
        return [place for start in starts for place in _registers(b, start, width)]

    for place in tile_at(out, out_step):
        _prefetch(b, place, to_write=True)
    entry = b.block
    given, loop, end = (b.append_basic_block(name) for name in ("given", "loop", "end"))
    b.cbranch(b.icmp_unsigned("==", first, _int64(0)), loop, given)
    b.position_at_end(given)
    for place in tile_at(b.add(first, b.mul(first_step, _int64(count))), first_step):
        _prefetch(b, place, to_write=False)
    starts = [b.load(place, align=itemsize, typ=vector) for place in tile_at(first, first_step)]
    b.branch(loop)

    b.position_at_end(loop)
    k = b.phi(_INT64)
    k.add_incoming(_int64(0), entry)
    k.add_incoming(_int64(0), given)
    sums = [b.phi(vector) for _ in starts]
    for total, start in zip(sums, starts, strict=True):
        total.add_incoming(ir.Constant(vector, None), entry)
        total.add_incoming(start, given)
    line = b.add(w, b.mul(k, _int64(REGISTERS * VECTOR)))
    weights = [b.load(place, align=itemsize, typ=terms.weights) for place in _registers(b, line, width)]
    added = []
    for row, address in enumerate(rows):
        number = b.load(_pointer(b, b.add(address, b.mul(k, _int64(itemsize)))), typ=terms.number)
        number = b.insert_element(ir.Constant(numbers, ir.Undefined), number, _int32(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
        everywhere = b.shuffle_vector(number, ir.Constant(numbers, ir.Undefined), zeros)
        own = sums[row * width : (row + 1) * width]
        added += [terms.add(b, everywhere, weight, total) for weight, total in zip(weights, own, strict=True)]
    following = b.add(k, _int64(1))
    k.add_incoming(following, loop)
    for total, value in zip(sums, added, strict=True):
        total.add_incoming(value, loop)
    b.cbranch(b.icmp_signed("<", following, depth), loop, end)

    b.position_at_end(end)
    for place, value in zip(tile_at(out, out_step), added, strict=True):
        b.store(value, place, align=itemsize)


def _vector(number: Any) -> tuple[Any, int]:
    """The type of a full register, and the bytes of a number: float, double, or 32 bits."""
    itemsize = 8 if isinstance(number, ir.DoubleType) else 4
    return ir.VectorType(number, VECTOR // itemsize), itemsize


def _registers(b: ir.IRBuilder, address: Any, width: int = REGISTERS) -> list[Any]:
    """The addresses of the first parts of a line, each of which fills a register."""
    return [_pointer(b, b.add(address, _int64(register * VECTOR))) for register in range(width)]


def _pointer(b: ir.IRBuilder, address: Any) -> Any:
    """An address as an untyped pointer; loads from it specify the type."""
    return b.inttoptr(address, ir.PointerType())


def _opaque(b: ir.IRBuilder, address: Any) -> Any:
    """The same address, in a register of its own: the compiler does not know how to compute it."""
    kind = ir.FunctionType(_INT64, [_INT64])
    return b.call(ir.InlineAsm(kind, "", "=r,0"), [address])


def _prefetch(b: ir.IRBuilder, place: Any, *, to_write: bool) -> None:
    """Fetch the cache line at a pointer, which need not be valid, to read or to write it soon."""
    kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), *[ir.IntType(32)] * 3])
    function = cgutils.get_or_insert_function(b.module, kind, "llvm.prefetch.p0")
    b.call(function, [place, _int32(int(to_write)), _int32(3), _int32(1)])  # into all caches; data


def _multiply_add(module: ir.Module, vector: Any) -> Any:
    """a b + c, in one instruction if the processor has one."""
    kind = "f32" if isinstance(vector.element, ir.FloatType) else "f64"
    function = ir.FunctionType(vector, [vector] * 3)
    return cgutils.get_or_insert_function(module, function, f"llvm.fmuladd.v{vector.count}{kind}")


def _int64(number: int) -> Any:
    return ir.Constant(_INT64, number)


def _int32(number: int) -> Any:
    return ir.Constant(ir.IntType(32), number)
