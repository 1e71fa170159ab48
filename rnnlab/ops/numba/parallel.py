"""Parallel calls of compiled functions.

    in_parts(parts, work, (x, out))

calls ``work(part, parts, x, out)`` for each part from 0 to ``parts`` - 1, each on an OpenMP thread, and waits
until all are done. A single part runs on the calling thread. If a part fails, which happens only for lack of
memory, the caller raises MemoryError. On x86 a part treats subnormal numbers as zero.

The machine code is the same for any number of threads. numba's ``prange`` would need a separate version for
several threads, which takes three times as long to compile. Without OpenMP, code is compiled that does all
parts on the calling thread: numba's other threads do not let several Python threads call kernels at once.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rnnlab.ops.threads import has_openmp_threads, import_numba

__all__ = ["OPENMP", "in_parts", "share", "share_either_way", "slice_of", "start_threads"]

numba = import_numba()  # whichever module of this package is imported first
OPENMP = has_openmp_threads()
_POINTER, _SIZE = ir.PointerType(), ir.IntType(64)
_PAIR = ir.LiteralStructType([_SIZE, _SIZE])
_BLOCK = 1 << 10  # elements
_IS_X86 = binding.get_process_triple().startswith("x86_64")
_FLUSH = 0x8040  # the bits of the control register for results and for arguments that are subnormal


def start_threads() -> None:
    """Load numba's threading library, which must precede loading machine code that calls it."""
    numba.get_num_threads()


@numba.njit(inline="always")
def share(number, part, parts):
    """The range of the numbers below ``number`` that belong to a part."""
    return range(part * number // parts, (part + 1) * number // parts)


@numba.njit(inline="always")
def share_either_way(number, part, parts, backwards):
    """The same numbers, from the last to the first if ``backwards``."""
    start, stop = part * number // parts, (part + 1) * number // parts
    return range(stop - 1, start - 1, -1) if backwards else range(start, stop, 1)


@numba.njit(inline="always")
def slice_of(x, part, parts):
    """The elements of an array with one axis that belong to a part. A loop over them vectorises.

    Parts end at whole blocks. The last elements, which do not fill a vector register and may be rounded
    differently, are therefore the same for any number of parts.
    """
    blocks = (x.size + _BLOCK - 1) // _BLOCK
    return x[part * blocks // parts * _BLOCK : min(x.size, (part + 1) * blocks // parts * _BLOCK)]


@intrinsic
def in_parts(context, parts, work, given):
    """See the module's docstring; ``work`` is a numba function without a result."""
    inner = work.get_call_type(context, (types.int64, types.int64, *given), {})

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        compiled = work.dispatcher.overloads[tuple(inner.args)]
        context.add_linking_libs([compiled.library])
        several, values = arguments[0], cgutils.unpack_tuple(b, arguments[2])
        failed = _address(b, _SIZE(0))
        record = cgutils.make_anonymous_struct(b, [failed, several, *values])
        entry = ir.Function(
            b.module,
            ir.FunctionType(ir.VoidType(), [_POINTER] * 4),
            b.module.get_unique_name(f"{compiled.fndesc.llvm_func_name}.part"),
        )
        entry.linkage = "internal"
        entry.attributes.add("noinline")
        _write_entry(context, entry, compiled, inner, record.type)
        _call_in_parts(b, entry, _address(b, record), several)
        with cgutils.if_unlikely(
            b, b.icmp_signed("!=", b.load(b.inttoptr(failed, _POINTER), typ=_SIZE), _SIZE(0))
        ):
            context.call_conv.return_user_exc(b, MemoryError, ("too little memory for a part of a kernel",))
        return context.get_dummy_value()

    return types.void(parts, work, given), generate


def _write_entry(context: Any, entry: ir.Function, compiled: Any, inner: Any, record: Any) -> None:
    """The function that numba's threads call, with the signature of a generalised ufunc's loop.

    Its first argument holds the address of the record and, in place of a second address, the first part to
    do. Its second argument is the number of parts to do.
    """
    b = ir.IRBuilder(entry.append_basic_block("entry"))
    pair = b.load(entry.args[0], typ=_PAIR)
    given = b.load(b.inttoptr(b.extract_value(pair, 0), _POINTER), typ=record)
    failed, parts, *values = (b.extract_value(given, number) for number in range(len(record.elements)))
    values = [_lend(context, b, *each) for each in zip(inner.args[2:], values, strict=True)]
    control = _flush_subnormals(b)
    with cgutils.for_range(b, b.load(entry.args[1], typ=_SIZE)) as loop:
        part = b.add(b.extract_value(pair, 1), loop.index)
        status, _ = context.call_internal_no_propagate(b, compiled.fndesc, inner, [part, parts, *values])
        with cgutils.if_unlikely(b, status.is_error):
            b.store(_SIZE(1), b.inttoptr(failed, _POINTER))
    if control is not None:
        b.call(_register_function(b, "ldmxcsr"), [control])
    b.ret_void()


def _flush_subnormals(b: ir.IRBuilder) -> ir.Value | None:
    """Let the thread treat subnormal numbers as zero; return the address of the former setting.

    Gradients that vanish over many steps become subnormal, and Intel's processors take up to a hundred times
    as long for an operation on a subnormal number. Other architectures do not: None.
    """
    if not _IS_X86:
        return None
    number = ir.IntType(32)
    former, flushing = cgutils.alloca_once(b, number), cgutils.alloca_once(b, number)
    b.call(_register_function(b, "stmxcsr"), [former])
    b.store(b.or_(b.load(former, typ=number), number(_FLUSH)), flushing)
    b.call(_register_function(b, "ldmxcsr"), [flushing])
    return former


def _register_function(b: ir.IRBuilder, name: str) -> ir.Function:
    """LLVM's function that stores or loads the control register of x86's vector arithmetic."""
    kind = ir.FunctionType(ir.VoidType(), [_POINTER])
    return cgutils.get_or_insert_function(b.module, kind, f"llvm.x86.sse.{name}")


def _lend(context: Any, b: ir.IRBuilder, kind: Any, value: Any) -> Any:
    """An array without its reference count, because the caller holds a reference; other values unchanged.

    Threads that counted the references of their rows would wait for each other at each row.
    """
    if not isinstance(kind, types.Array):
        return value
    array = context.make_array(kind)(context, b, value)
    array.meminfo = ir.Constant(array.meminfo.type, None)
    return array._getvalue()


def _call_in_parts(b: ir.IRBuilder, entry: ir.Function, record_at: Any, parts: Any) -> None:
    """Call the entry for each part; on this thread if there is only one part."""
    pair = cgutils.make_anonymous_struct(b, [record_at, _SIZE(0)])
    steps = ir.Constant(_PAIR, [0, 1])  # from a part to the next
    places = [b.inttoptr(_address(b, value), _POINTER) for value in (pair, parts, steps, _SIZE(0))]
    if not OPENMP:
        b.call(entry, places)
        return
    with b.if_else(b.icmp_signed("<=", parts, _SIZE(1))) as (one, several):
        with one:
            b.call(entry, places)
        with several:
            kind = ir.FunctionType(ir.VoidType(), [_POINTER] * 5 + [_SIZE] * 3)
            parallel_for = cgutils.get_or_insert_function(b.module, kind, "numba_parallel_for")
            function = b.inttoptr(b.ptrtoint(entry, _SIZE), _POINTER)
            # this also sets the number of threads of numba's own parallel loops, which belongs to the user
            number, nothing = ir.IntType(32), ir.VoidType()
            get = cgutils.get_or_insert_function(b.module, ir.FunctionType(number, []), "get_num_threads")
            put = cgutils.get_or_insert_function(
                b.module, ir.FunctionType(nothing, [number]), "set_num_threads"
            )
            before = b.call(get, [])
            b.call(parallel_for, [function, *places, _SIZE(0), _SIZE(2), parts])
            b.call(put, [before])


def _address(b: ir.IRBuilder, value: Any) -> Any:
    """The address of a copy of a value on the stack of the function."""
    return b.ptrtoint(cgutils.alloca_once_value(b, value), _SIZE)
