"""Tiles of products and transposed squares in vector registers, each in a kernel of its own."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import numba

from rnnlab.ops.numba.registers import REGISTERS, ROWS, VECTOR, copy_line, sum_up, transpose_square

from .compare import every_dtype


@numba.njit
def tile(x, w, first, with_first, first_step, out):
    at = first.ctypes.data if with_first else 0
    sum_up(
        w, x.shape[0], x.shape[1], x.ctypes.data, x.strides[0], w.ctypes.data,
        at, first_step, out.ctypes.data, out.strides[0],
    )  # fmt: skip


@numba.njit
def copied(source, target):
    copy_line(source, source.ctypes.data, target.ctypes.data)


@numba.njit
def transposed(source, target):
    transpose_square(source, source.ctypes.data, source.strides[0], target.ctypes.data, target.strides[0])


def columns_of(dtype):
    return REGISTERS * VECTOR // np.dtype(dtype).itemsize


@every_dtype
@pytest.mark.parametrize("rows", range(1, ROWS + 1))
@pytest.mark.parametrize("depth", [1, 5])
def test_a_tile(depth, rows, dtype, normal):
    """Rows of x and of the result may lie apart. Numbers beside the result stay as they were."""
    columns = columns_of(dtype)
    x, w, wide = normal(rows, depth + 2)[:, :depth], normal(depth, columns), normal(rows + 1, columns + 3)
    saved, start, row = wide.copy(), normal(rows, columns), normal(1, columns)
    out = wide[:rows, :columns]
    for first, step, before in ((None, 0, 0), (row, 0, row), (start, start.strides[0], start)):
        tile(x, w, start if first is None else first, first is not None, step, out)
        np.testing.assert_allclose(
            out, before + x @ w, rtol=1e-4, atol=1e-4 if dtype == np.float32 else 1e-12
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
