"""The compiled checks of a kernel's arguments: shapes, indices and overlaps."""

import hashlib
from functools import partial

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import numba

from rnnlab.ops.arguments import Declaration
from rnnlab.ops.numba.guard import FITS, MISFIT, OVERLAP, guarded

from .compare import compiled


def guard(function, arguments, strided=()):
    """The kernel with its checks, compiled for the arguments of its first call."""
    body = numba.njit(inline="always")(function)
    made = guarded(body, function, (), Declaration(arguments), strided, numba.njit)
    made.__qualname__ += f"-{hashlib.sha256(arguments.encode()).hexdigest()[:8]}"  # saved by this name
    return partial(compiled(made), 1)


def double(x, out):
    for j in range(x.size):
        out[j] = 2 * x[j]


def take(rows, table, out):
    for i in range(rows.shape[0]):
        out[i] = table[rows[i]]


def pick(slots, table, out):
    for i in range(slots.shape[0]):
        out[i] = 0
        for j in range(slots.shape[1]):
            out[i] += table[slots[i, j]]


def add(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] += x[i, j]


def widen(x, out):
    for i in range(x.shape[0]):
        out[i, 0] = x[i, 0]


def test_shapes():
    each, out = guard(double, "x (n,); out! (n,)"), np.zeros(4)
    assert each(np.arange(3.0), out) == MISFIT
    assert not out.any()  # it has not run
    assert each(np.arange(4.0), out) == FITS
    np.testing.assert_array_equal(out, [0, 2, 4, 6])


def test_sizes_that_are_multiples():
    each = guard(widen, "x (n, H); out! (n, 2H)")
    assert each(np.zeros((3, 2)), np.zeros((3, 4))) == FITS
    assert each(np.zeros((3, 2)), np.zeros((3, 3))) == MISFIT


@pytest.mark.parametrize(("lowest", "below"), [(0, MISFIT), (-1, FITS)])
def test_indices(lowest, below):
    each = guard(take, f"rows (n,) {lowest}..V; table (V,); out! (n,)")
    table, out = np.arange(3.0), np.zeros(2)
    assert each(np.array([0, 2]), table, out) == FITS
    np.testing.assert_array_equal(out, [0, 2])
    assert each(np.array([0, 3]), table, out) == MISFIT
    assert each(np.array([0, -1]), table, out) == below


def test_indices_of_two_axes():
    each = guard(pick, "slots (n, L) 0..V; table (V,); out! (n,)")
    table, out = np.arange(3.0), np.zeros(2)
    assert each(np.array([[0, 1], [2, 2]]), table, out) == FITS
    np.testing.assert_array_equal(out, [1, 4])
    for wrong in (3, -1):
        assert each(np.array([[0, 1], [wrong, 2]]), table, out) == MISFIT


def test_overlaps():
    each, whole = guard(double, "x (n,); out! (n,)"), np.arange(7.0)
    for x, out in ((whole, whole), (whole[:4], whole[3:]), (whole[3:], whole[:4])):
        assert each(x, out) == OVERLAP
    np.testing.assert_array_equal(whole, np.arange(7))
    assert each(whole[:3], whole[3:6]) == FITS
    assert each(whole[:0], whole[3:3]) == FITS


def test_one_array_where_the_declaration_allows_it():
    each, whole = guard(double, "x (n,); out! (n,) = x"), np.arange(4.0)
    assert each(whole, whole) == FITS
    np.testing.assert_array_equal(whole, [0, 2, 4, 6])
    assert each(whole[:3], whole[1:]) == OVERLAP


@pytest.mark.slow
def test_strided_arrays_are_compared_by_their_extent_unless_that_is_skipped():
    each = guard(add, "x (n, H); out! (n, H)", strided=("x", "out"))
    whole = np.ones((3, 4))
    left, right = whole[:, :2], whole[:, 2:]  # they interleave
    assert each(left, right, False) == OVERLAP
    assert each(left, right, True) == FITS
    np.testing.assert_array_equal(whole, [[1, 1, 2, 2]] * 3)
    backwards = whole[::-1]
    assert each(backwards[:1], whole[:1], False) == FITS  # the last row and the first
    assert each(backwards[:1], whole[2:], False) == OVERLAP
