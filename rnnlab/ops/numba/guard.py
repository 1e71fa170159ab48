"""Checks of a kernel's arguments in compiled code, before the kernel touches memory.

numba itself refuses other dtypes, other layouts and read-only arrays. It does not tell the two byte orders
apart once it has seen an unaligned array: the layers check the byte order. It does not check shapes, indices
and overlaps; these are checked here, according to the kernel's :class:`~rnnlab.ops.arguments.Declaration`.
That takes some nanoseconds per call. In Python it would take as long as a short kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rnnlab.ops.arguments import Declaration
from rnnlab.ops.numba.parallel import in_parts

__all__ = ["FITS", "OVERLAP", "guarded"]
FITS, MISFIT, OVERLAP = 0, 1, 2  # return values of a guarded kernel


def guarded(
    body: Any,
    function: Callable[..., Any],
    own: Sequence[str],
    declaration: Declaration,
    strided: Sequence[str],
    inlined: Any,
) -> FunctionType:
    """A function that runs ``body`` if its arguments are as declared, and returns the result of the check.

    Its first argument is the number of parts.

    Parameters
    ----------
    body
        numba's dispatcher for ``function``.
    function
        The kernel.
    own
        The kernel's parameters before the arguments of a call: "part" and "parts", "parts", or none.
    declaration
        The declaration of all its arrays.
    strided
        The arrays whose elements need not be contiguous. If there are any, the function takes one more
        argument: whether to skip the check of overlaps, which reports strided arrays that only interleave.
    inlined
        The decorator for functions that kernels call.
    """
    code = function.__code__
    parameters = list(code.co_varnames[len(own) : code.co_argcount])
    lines = [f"def guard({', '.join(['parts', *parameters] + ['skip_overlaps'] * bool(strided))}):"]
    lines += [f"    if {condition}:\n        return {MISFIT}" for condition in _misfits(declaration)]
    overlaps = _overlaps(declaration)
    if overlaps:
        used = sorted({name for pair in overlaps for name in pair[:2]})
        inner = [line for name in used for line in _extent(declaration, name, name in strided)]
        inner += [f"if {_overlap(*pair)}:\n{{0}}    return {OVERLAP}" for pair in overlaps]
        indent = "    "
        if strided:
            lines.append("    if not skip_overlaps:")
            indent *= 2
        lines += [indent + line.format(indent) for line in inner]
    if "part" in own:
        lines.append(f"    in_parts(parts, body, ({', '.join(parameters)},))")
    else:
        lines.append(f"    body({', '.join([*own, *parameters])})")
    lines.append(f"    return {FITS}")
    names: dict[str, Any] = {
        "address": address,
        "body": body,
        "in_parts": in_parts,
        "outside_1": inlined(_outside_1),
        "outside_2": inlined(_outside_2),
    }
    module = compile("\n".join(lines), code.co_filename, "exec")
    (made,) = (constant for constant in module.co_consts if isinstance(constant, CodeType))
    made = made.replace(co_firstlineno=code.co_firstlineno, co_name=function.__name__)
    names["__name__"] = function.__module__
    return FunctionType(made, names, function.__name__)


@intrinsic
def address(context, array):
    """The address of an array's first element. Unlike ``array.ctypes``, it does not count references."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        made = context.make_array(signature.args[0])(context, b, arguments[0])
        return b.ptrtoint(made.data, context.get_value_type(types.intp))

    return types.intp(array), generate


def _misfits(declaration: Declaration) -> list[str]:
    """Conditions, at least one of which is true if a shape does not fit or an index is out of range."""
    known: dict[str, str] = {}
    conditions = []
    for argument in declaration.arguments:
        for axis, (factor, letter) in enumerate(argument.axes or ()):
            if factor == 1:
                known.setdefault(letter, f"{argument.name}.shape[{axis}]")
    for argument in declaration.arguments:
        for axis, (factor, letter) in enumerate(argument.axes or ()):
            size = f"{argument.name}.shape[{axis}]"
            if known[letter] != size:
                conditions.append(f"{size} != {f'{factor} * ' if factor > 1 else ''}{known[letter]}")
    shapes = [" or ".join(conditions)] if conditions else []
    indices = [
        f"outside_{len(argument.axes or ())}({argument.name}, {argument.lowest}, {known[argument.size]})"
        for argument in declaration.arguments
        if argument.size
    ]
    return shapes + indices


def _overlaps(declaration: Declaration) -> list[tuple[str, str, bool]]:
    """The pairs of arrays that must not overlap, and whether they may be the same array."""
    pairs = []
    for place, a in enumerate(declaration.arguments):
        for b in declaration.arguments[place + 1 :]:
            if a.written or b.written:
                pairs.append((a.name, b.name, a.may_be == b.name or b.may_be == a.name))
    return pairs


def _extent(declaration: Declaration, name: str, strided: bool) -> list[str]:
    """Lines that set the first address of an array and the one past its last; both are 0 if it is empty."""
    (argument,) = (each for each in declaration.arguments if each.name == name)
    start, stop = f"{name}_start", f"{name}_stop"
    if not strided:
        return [f"{start} = address({name}) if {name}.size else 0", f"{stop} = {start} + {name}.nbytes"]
    axes = range(len(argument.axes or ()))
    steps = [f"({name}.shape[{axis}] - 1) * {name}.strides[{axis}]" for axis in axes]
    below, above = (" + ".join(f"{which}(0, {step})" for step in steps) for which in ("min", "max"))
    return [
        f"{start} = address({name}) + {below} if {name}.size else 0",
        f"{stop} = address({name}) + {above} + {name}.itemsize if {name}.size else 0",
    ]


def _overlap(a: str, b: str, may_be_one: bool) -> str:
    overlap = f"{a}_start < {b}_stop and {b}_start < {a}_stop"
    if may_be_one:
        overlap += (
            f" and not ({a}_start == {b}_start and {a}.strides == {b}.strides and {a}.shape == {b}.shape)"
        )
    return overlap


def _outside_1(indices, lowest, size):
    """Whether an index is out of range. If the lowest is -1, all indices below zero are allowed."""
    least, most = 0, -1
    for i in range(indices.shape[0]):
        least, most = min(least, indices[i]), max(most, indices[i])
    return most >= size or (lowest == 0 and least < 0)


def _outside_2(indices, lowest, size):
    least, most = 0, -1
    for i in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            least, most = min(least, indices[i, j]), max(most, indices[i, j])
    return most >= size or (lowest == 0 and least < 0)
