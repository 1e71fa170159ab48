"""Rows that move and memory that is cleared, on one thread and on several."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba import arrays, kernel
from rnnlab.ops.numba.arrays import as_indices, clear, put, take, zeros

from .compare import every_dtype

LAYOUTS = {
    "contiguous": np.ascontiguousarray,
    "rows apart": lambda a: np.hstack([a, a])[:, : a.shape[1]],
    "columns apart": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "by columns": np.asfortranarray,
}


@pytest.fixture(params=[1, 2, 3], ids="{} threads".format, autouse=True)
def threads(request, monkeypatch):
    monkeypatch.setattr(kernel, "_threads", request.param)
    monkeypatch.setattr(arrays, "_PARALLEL_FROM", 10)


@pytest.mark.slow
@every_dtype
@pytest.mark.parametrize("columns", [0, 1, 3, 70])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("integer", [np.int64, np.int32])
def test_rows(columns, layout, integer, dtype, rng):
    x = LAYOUTS[layout](rng.standard_normal((50, columns)).astype(dtype))
    rows = rng.permutation(50)[:31].astype(integer)
    out = LAYOUTS[layout](np.full((31, columns), 7, dtype))
    take(x, rows, out)
    np.testing.assert_array_equal(out, x[rows])
    back = LAYOUTS[layout](np.full((50, columns), 7, dtype))
    put(out, rows, back)
    expected = np.full_like(back, 7)
    expected[rows] = out
    np.testing.assert_array_equal(back, expected)


@pytest.mark.parametrize("layout", ["rows apart", "columns apart"])
def test_nothing_is_written_between_the_rows(layout, rng):
    x = rng.standard_normal((9, 6)).astype(np.float32)
    whole = np.zeros((9, 12), np.float32)
    own = np.s_[:, :6] if layout == "rows apart" else np.s_[:, ::2]
    for function in (take, put):
        whole[...] = 7
        function(x, np.arange(9)[::-1].copy(), whole[own])
        np.testing.assert_array_equal(whole[own], x[::-1])
        assert (whole == 7).sum() == 9 * 6


def test_a_read_only_array(rng):
    x = rng.standard_normal((9, 6)).astype(np.float32)
    x.flags.writeable = False
    rows, out, back = rng.permutation(9), np.zeros((9, 6), np.float32), np.zeros((9, 6), np.float32)
    take(x, rows, out)
    np.testing.assert_array_equal(out, x[rows])
    put(x, rows, back)
    np.testing.assert_array_equal(back[rows], x)


@every_dtype
@pytest.mark.parametrize("size", [0, 1, 5000])
def test_clear(size, dtype):
    whole = np.ones(size + 2, dtype)
    clear(whole[1:-1])
    assert whole[0] == whole[-1] == 1
    assert not whole[1:-1].any()


@pytest.mark.parametrize("shape", [3, (2, 70), (0, 4), ()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_zeros(shape, dtype):
    out = zeros(shape, dtype)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, np.zeros(shape, dtype))


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([0, 50], IndexError, "rows has indices from 0 to 50, expected indices from 0 to 49"),
        ([0, 1, 2], ValueError, r"out has shape \(2, 20\), expected \(n, D\) = \(3, 20\)"),
        ([0.0, 1.0], TypeError, "rows has dtype float64"),
    ],
    ids=["range", "shape", "dtype"],
)
def test_arguments_that_do_not_fit(rows, error, message):
    with pytest.raises(error, match=f"take: {message}"):
        take(np.zeros((50, 20)), np.array(rows), np.zeros((2, 20)))


def test_arrays_that_overlap():
    x = np.zeros((50, 20))
    for function in (take, put):
        with pytest.raises(ValueError, match=f"{function.__name__}: out, which is written, overlaps x"):
            function(x[:30], np.arange(30), x[20:])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, ">i4"])
def test_indices_of_any_integers(dtype):
    numbers = np.arange(6).astype(dtype)[::2]
    found = as_indices(numbers)
    assert found.dtype == np.int64
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, [0, 2, 4])
    with pytest.raises(TypeError, match="expected integers, got bool"):
        as_indices(numbers > 0)
