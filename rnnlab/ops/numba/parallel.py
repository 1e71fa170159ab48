"""Parallel calls of compiled functions.

    in_parts(parts, work, (x, out))

calls ``work(part, parts, x, out)`` for each part from 0 to ``parts`` - 1, on as many threads, and waits until
all are done. With one part, the calling thread does it. The machine code is the same for any number of
threads, whereas numba's ``prange`` has a version of its own for several, which takes three times as long to
compile.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["in_parts", "share", "slice_of", "start_threads"]

_POINTER, _SIZE = ir.PointerType(), ir.IntType(64)
_PAIR = ir.LiteralStructType([_SIZE, _SIZE])
_BLOCK = 1 << 10  # elements


def start_threads() -> None:
    """Start numba's threads; machine code that calls them cannot be loaded before."""
    numba.get_num_threads()


@numba.njit(inline="always")
def share(number, part, parts):
    """The numbers below ``number`` that are a part's: a range."""
    return range(part * number // parts, (part + 1) * number // parts)


@numba.njit(inline="always")
def slice_of(x, part, parts):
    """The elements of an array of one axis that are a part's. A loop over all of them vectorises.

    Parts end at whole blocks. So the last elements, which fill no vector register and may be rounded in
    another way, are the same for any number of parts.
    """
    blocks = (x.size + _BLOCK - 1) // _BLOCK
    return x[part * blocks // parts * _BLOCK : min(x.size, (part + 1) * blocks // parts * _BLOCK)]


@intrinsic
def in_parts(context, parts, work, given):
    """See the module's docstring; ``work`` is a function of numba's, and has no result."""
    inner = work.get_call_type(context, (types.int64, types.int64, *given), {})

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        compiled = work.dispatcher.overloads[tuple(inner.args)]
        context.add_linking_libs([compiled.library])
        several, values = arguments[0], cgutils.unpack_tuple(b, arguments[2])
        record = cgutils.make_anonymous_struct(b, [several, *values])
        entry = ir.Function(
            b.module,
            ir.FunctionType(ir.VoidType(), [_POINTER] * 4),
            b.module.get_unique_name(f"{compiled.fndesc.llvm_func_name}.part"),
        )
        entry.linkage = "internal"
        entry.attributes.add("noinline")
        _write_entry(context, entry, compiled, inner, record.type)
        _call_in_parts(b, entry, _address(b, record), several)
        return context.get_dummy_value()

    return types.void(parts, work, given), generate


def _write_entry(context: Any, entry: ir.Function, compiled: Any, inner: Any, record: Any) -> None:
    """The function that numba's threads call, as the loop of a generalised ufunc.

    Its first argument has the address of the record, and the first part to do as if it were an address, its
    second the number of parts to do.
    """
    b = ir.IRBuilder(entry.append_basic_block("entry"))
    pair = b.load(entry.args[0], typ=_PAIR)
    given = b.load(b.inttoptr(b.extract_value(pair, 0), _POINTER), typ=record)
    values = [b.extract_value(given, number) for number in range(len(record.elements))]
    with cgutils.for_range(b, b.load(entry.args[1], typ=_SIZE)) as loop:
        part = b.add(b.extract_value(pair, 1), loop.index)
        context.call_internal_no_propagate(b, compiled.fndesc, inner, [part, *values])
    b.ret_void()


def _call_in_parts(b: ir.IRBuilder, entry: ir.Function, record_at: Any, parts: Any) -> None:
    """Call the entry for each part, on this thread if there is one."""
    pair = cgutils.make_anonymous_struct(b, [record_at, _SIZE(0)])
    steps = ir.Constant(_PAIR, [0, 1])  # from a part to the next
    places = [b.inttoptr(_address(b, value), _POINTER) for value in (pair, parts, steps, _SIZE(0))]
    with b.if_else(b.icmp_signed("<=", parts, _SIZE(1))) as (one, several):
        with one:
            b.call(entry, places)
        with several:
            kind = ir.FunctionType(ir.VoidType(), [_POINTER] * 5 + [_SIZE] * 3)
            parallel_for = cgutils.get_or_insert_function(b.module, kind, "numba_parallel_for")
            function = b.inttoptr(b.ptrtoint(entry, _SIZE), _POINTER)
            number = cgutils.get_or_insert_function(b.module, ir.FunctionType(_SIZE, []), "get_num_threads")
            b.call(parallel_for, [function, *places, _SIZE(0), _SIZE(2), b.call(number, [])])


def _address(b: ir.IRBuilder, value: Any) -> Any:
    """The address of memory with a value, on the stack of the function."""
    return b.ptrtoint(cgutils.alloca_once_value(b, value), _SIZE)
