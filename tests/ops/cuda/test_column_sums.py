"""Sums of columns, against NumPy."""

import importlib

import numpy as np
import pytest

from .compare import every_dtype, is_simulated

SUMMED = [(1, 1), (3, 40), (64, 33), (256, 5), (257, 32), (1030, 65), (5000, 2)]
ON_A_GPU = [(50_176, 512), (2048, 10_516), (64, 2048), (100_000, 1), (262_145, 3)]


@every_dtype
@pytest.mark.parametrize("shape", SUMMED, ids=str)
def test_column_sums(shape, ops, device, dtype, normal):
    rows, columns = shape
    x, out = normal(rows, columns), normal(columns)
    expected = out + x.sum(axis=0, dtype=float)
    wide = device.asarray(np.full((rows, columns + 3), np.nan, dtype))
    wide[:, 1:-2] = device.asarray(x)
    by_columns = device.asarray(np.ascontiguousarray(x.T)).T
    found = []
    for given in (device.asarray(x), wide[:, 1:-2], by_columns):
        ops.add_column_sums(given, added := device.asarray(out))
        found.append(added.get())
    tolerance = {np.float32: 1e-5, np.float64: 1e-13}[dtype]
    np.testing.assert_allclose(found[0], expected, rtol=tolerance, atol=tolerance * rows**0.5)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("shape", ON_A_GPU, ids=str)
def test_large_column_sums(shape, ops, device, rng):
    rows, columns = shape
    if is_simulated(device):
        rows, columns = rows // 25, -(-columns // 25)
    x = device.asarray(rng.standard_normal((rows, columns), np.float32))
    found = []
    for _ in range(2):
        ops.add_column_sums(x, out := device.zeros(columns, np.float32))
        found.append(out.get())
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(
        found[0], x.get().sum(axis=0, dtype=float), atol=1e-6 * rows**0.5 * 10, rtol=1e-5
    )


@pytest.mark.parametrize(("rows", "most"), [(10, 6), (11, 7), (9, 4), (5, 5)])
def test_each_part_of_column_sums_has_rows(rows, most, ops, device, monkeypatch):
    """Ten rows in at most six parts are five parts of two rows."""
    module = importlib.import_module("rnnlab.ops.cuda.column_sums")
    monkeypatch.setattr(module, "_ROWS", 1)
    monkeypatch.setattr(module, "_BLOCKS", most)
    ops.add_column_sums(device.ones((rows, 3)), out := device.zeros(3))
    np.testing.assert_array_equal(out.get(), rows)


def test_few_rows_are_added_up_in_one_launch(simulated, ops):
    for rows, launches in ((64, 1), (256, 2), (257, 4)):
        out = simulated.zeros(5)
        ops.add_column_sums(simulated.ones((rows, 5)), out)
        assert (out.get() == rows).all()
        assert simulated.launches["column_sums"] == launches
