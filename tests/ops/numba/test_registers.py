"""Tiles of products and transposed squares in vector registers, each in a kernel of its own."""

import re

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from llvmlite import binding, ir

from rnnlab.ops.numba import registers
from rnnlab.ops.numba.registers import (
    REGISTERS,
    ROWS,
    VECTOR,
    WIDTHS,
    columns_of,
    copy_line,
    sum_up,
    tile_of,
    transpose_square,
)

from .compare import compiled, every_dtype


@compiled
def tile(x, w, width, first, with_first, first_step, out):
    at = first.ctypes.data if with_first else 0
    sum_up(
        w, x.shape[0], width, x.shape[1], x.ctypes.data, x.strides[0], w.ctypes.data,
        at, first_step, out.ctypes.data, out.strides[0],
    )  # fmt: skip


@compiled
def copied(source, target):
    copy_line(source, source.ctypes.data, target.ctypes.data)


@compiled
def transposed(source, target):
    transpose_square(source, source.ctypes.data, source.strides[0], target.ctypes.data, target.strides[0])


@every_dtype
@pytest.mark.parametrize("rows", range(1, ROWS + 1))
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("depth", [1, 5])
def test_a_tile(depth, width, rows, dtype, normal):
    """Rows of x and of the result may lie apart. Numbers beside the result stay as they were."""
    columns = columns_of(dtype) * width // REGISTERS
    x, w, wide = (
        normal(rows, depth + 2)[:, :depth],
        normal(depth, columns_of(dtype)),
        normal(rows + 1, columns + 3),
    )
    saved, start, row = wide.copy(), normal(rows, columns), normal(1, columns)
    out = wide[:rows, :columns]
    for first, step, before in ((None, 0, 0), (row, 0, row), (start, start.strides[0], start)):
        tile(x, w, width, start if first is None else first, first is not None, step, out)
        np.testing.assert_allclose(
            out, before + x @ w[:, :columns], rtol=1e-4, atol=1e-4 if dtype == np.float32 else 1e-12
        )
    np.testing.assert_array_equal(wide[rows], saved[rows])
    np.testing.assert_array_equal(wide[:, columns:], saved[:, columns:])


@every_dtype
def test_a_line(dtype, normal):
    columns = columns_of(dtype)
    source, target = normal(columns), np.zeros(columns + 1, dtype)
    copied(source, target)
    np.testing.assert_array_equal(target[:columns], source)
    assert target[columns] == 0


@every_dtype
def test_a_square(dtype, normal):
    lanes = VECTOR // np.dtype(dtype).itemsize
    source, wide = normal(lanes, lanes + 3), np.zeros((lanes, lanes + 2), dtype)
    transposed(source, wide)
    np.testing.assert_array_equal(wide[:, :lanes], source[:, :lanes].T)
    assert not wide[:, lanes:].any()


PROCESSORS = {  # triple, features, the instruction that ends a multiplication, a place on the stack
    "neoverse-n1": ("aarch64-unknown-linux-gnu", [], r"\bfmla", r"\[sp"),
    "apple-m1": ("arm64-apple-macosx", [], r"\bfmla", r"\[sp"),
    "sapphirerapids": ("x86_64-unknown-linux-gnu", ["avx", "avx2", "avx512f"], r"\bvfmadd", r"\(%r[sb]p"),
    "haswell": ("x86_64-unknown-linux-gnu", ["avx", "avx2"], r"\bvfmadd", r"\(%r[sb]p"),
    "sandybridge": ("x86_64-unknown-linux-gnu", ["avx"], r"\bvaddp", r"\(%r[sb]p"),
    "x86-64": ("x86_64-unknown-linux-gnu", [], r"\baddp", r"\(%r[sb]p"),
}


@pytest.mark.parametrize("real", [ir.FloatType(), ir.DoubleType()], ids=str)
@pytest.mark.parametrize("processor", PROCESSORS)
def test_every_processor_keeps_the_sums_in_registers(processor, real, monkeypatch):
    """Machine code for processors that this one need not be."""
    triple, features, multiplication, stack = PROCESSORS[processor]
    vector, columns = tile_of(triple, dict.fromkeys(features, True))
    monkeypatch.setattr(registers, "VECTOR", vector)
    monkeypatch.setattr(registers, "REGISTERS", columns)
    blocks = re.split(r"^[.\w]+:", machine_code(triple, processor, real), flags=re.MULTILINE)
    loop = max(blocks, key=lambda block: len(re.findall(multiplication, block)))
    loop = re.split(r"\n\t(?:b|j)\.?[a-z]{1,2}\b", loop)[0]  # to the branch back
    assert len(re.findall(multiplication, loop)) == ROWS * columns
    assert not re.search(stack, loop), loop


def machine_code(triple, processor, real):
    module = ir.Module()
    module.triple = triple
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 8), "caller")
    builder = ir.IRBuilder(function.append_basic_block())
    numbers = registers._Numbers(module, real)
    builder.call(registers._tile(module, numbers, ROWS, registers.REGISTERS), function.args)
    builder.ret_void()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=processor, opt=3)
    parsed = binding.parse_assembly(str(module))
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(parsed, builder)
    return machine.emit_assembly(parsed)
