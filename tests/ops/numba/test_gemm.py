"""Products by compiled kernels: panels of a weight, sums that start at given numbers, and argument checks."""

import gc

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba import gemm, memory
from rnnlab.ops.numba.gemm import Panels, check, multiply

from .compare import every_dtype

TOLERANCE = {np.float32: 5e-4, np.float64: 1e-12}


def assert_product(actual, expected):
    tolerance = TOLERANCE[expected.dtype.type]
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    assert actual.dtype == expected.dtype


@pytest.mark.slow
@every_dtype
def test_two_prepacked_weights_at_once(dtype, normal):
    """As in the GRU. The weights may change or go; panels are a copy."""
    x, w = normal(3, 8), normal(8, 150)
    saved = w.copy()
    left, right, again = Panels(w[:, :90]), Panels(w[:, 90:]), Panels(w[:, :90])
    w[...] = np.nan
    del w
    gc.collect()
    for weights, part in ((left, saved[:, :90]), (right, saved[:, 90:]), (again, saved[:, :90])):
        out = np.empty((3, part.shape[1]), dtype)
        weights.multiply(x, None, out)
        assert_product(out, x @ part)


@every_dtype
@pytest.mark.parametrize("rows", [1, 7, 300, 1000])
def test_a_prepacked_weight_serves_any_number_of_rows(rows, dtype, normal):
    w = normal(64, 96)
    weights, x, out = Panels(w), normal(rows, 64), np.empty((rows, 96), dtype)
    weights.multiply(x, None, out)
    assert_product(out, x @ w)


def test_memory_of_prepacked_weights_is_reused(rng, monkeypatch):
    monkeypatch.setattr(memory, "_POOL", memory.Pool())  # which has no blocks of other tests
    w = rng.standard_normal((80, 100)).astype(np.float32)
    places = set()
    for _ in range(200):
        forward, backward = Panels(w), Panels(w.T)
        places |= {forward.panels.ctypes.data, backward.panels.ctypes.data}
    assert len(places) <= 4


def test_memory_of_a_prepacked_weight_in_use_is_not_reused(rng):
    alive = [Panels(rng.standard_normal((80, 100)).astype(np.float32)) for _ in range(10)]
    assert len({weights.panels.ctypes.data for weights in alive}) == 10


@every_dtype
def test_nan_of_the_inputs_propagates_and_nan_of_the_output_does_not(dtype, normal):
    x, w = normal(3, 4), normal(4, 40)
    x[1, 2] = np.nan
    for product in (Panels(w).multiply, lambda x, first, out: multiply(x, w, first, out)):
        out = np.full((3, 40), np.nan, dtype)
        product(x, None, out)
        np.testing.assert_array_equal(np.isnan(out).all(axis=1), [False, True, False])


@every_dtype
@pytest.mark.parametrize(
    "sizes", [(5, 6, 70), (2, 6, 70), (5, 6, 3)], ids=["tiles", "few rows", "few columns"]
)
def test_sums_start_at_a_row_or_at_the_result(sizes, dtype, normal):
    n, K, G = sizes
    x, w, row, start = normal(n, K), normal(K, G), normal(1, G), normal(n, G)
    products = [lambda first, out: multiply(x, w, first, out)]
    if G > 3:
        products.append(lambda first, out: Panels(w).multiply(x, first, out))
    for product in products:
        out = start.copy()
        product(out, out)
        assert_product(out, start + x @ w)
        product(row, out)
        assert_product(out, row + x @ w)
        product(None, out)
        assert_product(out, x @ w)


@every_dtype
@pytest.mark.parametrize("transposed", ["x", "w", "neither"])
def test_several_blocks_of_rows_and_groups_of_panels(transposed, dtype, normal):
    """Also several pieces of each panel: the sums start where those of the piece before end."""
    n, K, G = 300, 600, 1100
    assert n > 2 * gemm._ROW_BLOCK
    assert K > gemm._DEPTH
    assert G * np.dtype(dtype).itemsize > 4 * gemm._PIECES // gemm._DEPTH
    x, w, start = normal(n, K), normal(K, G), normal(n, G)
    x = x.copy("F") if transposed == "x" else x
    w = w.copy("F") if transposed == "w" else w
    out = start.copy()
    multiply(x, w, out, out)
    assert_product(out, start + x @ w)
    multiply(x, w, start[:1], out)
    assert_product(out, start[:1] + x @ w)


@pytest.mark.parametrize(
    "w",
    [np.zeros((4, 1)), np.zeros((0, 64)), np.zeros((2, 3, 64)), np.zeros((4, 64), np.float16)],
    ids=["few columns", "empty", "three axes", "half precision"],
)
def test_weights_that_are_not_worth_panels(w):
    with pytest.raises(TypeError, match="expected a matrix of float32 or float64 with at least"):
        Panels(w)


def test_arguments_that_do_not_fit():
    x, w, out = np.ones((3, 4)), np.ones((4, 60)), np.ones((3, 60))
    for weight in (w, Panels(w)):
        check(x, weight, None, out)
        check(x, weight, out, out)
        check(x, weight, np.ones((1, 60)), out)
        with pytest.raises(ValueError, match=r"x w: x has shape \(3, 5\), w \(4, 60\) and out \(3, 60\)"):
            check(np.ones((3, 5)), weight, None, out)
        with pytest.raises(TypeError, match="x w: x has dtype float32, w float64 and out float64"):
            check(x.astype(np.float32), weight, None, out)
        with pytest.raises(ValueError, match=r"x w \+ b: b has shape \(3,\) and dtype float64"):
            check(x, weight, np.ones((1, 3)), out)
        with pytest.raises(ValueError, match=r"x w \+ b: out overlaps b"):
            check(x, weight, out[:1], out)
    square = np.ones((3, 3))
    with pytest.raises(ValueError, match="x w: out overlaps x or w"):
        check(square, np.ones((3, 3)), None, square)
