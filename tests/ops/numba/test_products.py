"""Matrix products of all shapes and layouts, by whatever does them."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba import products, threads
from rnnlab.ops.numba.blas import NumpyBlas
from rnnlab.ops.numba.mkl import Mkl, MklUnavailableError
from rnnlab.ops.numba.products import (
    add_affine_gradients,
    add_column_sums,
    affine,
    affine_into,
    matmul,
    matmul_add,
    matmul_into,
    prepacked,
)

from .compare import every_dtype, strided

TOLERANCE = {np.float32: 5e-4, np.float64: 1e-12, np.float16: 0.1}
SIZES = [
    (3, 4, 5),
    (1, 7, 9),
    (6, 1, 4),
    (5, 3, 1),
    (1, 1, 1),
    (0, 3, 4),
    (3, 0, 4),
    (3, 4, 0),
    (33, 65, 130),
    (7, 40, 64),
    (13, 1100, 97),  # more to add up than lies in a piece of a panel
    (75, 9, 21),  # some registers of a panel
    (300, 22, 6),  # more than a block of a column
]


@pytest.fixture(params=[None, NumpyBlas, Mkl], ids=["own", "NumPy's BLAS", "MKL"])
def by(request, monkeypatch):
    """What large products are done by, all products being large."""
    try:
        library = request.param and (Mkl(threads()) if request.param is Mkl else NumpyBlas())
    except MklUnavailableError as reason:
        pytest.skip(f"MKL is not used here: {reason}")
    monkeypatch.setattr(products, "_library", lambda: library)
    monkeypatch.setattr(products, "_LARGE", 0)


LAYOUTS = {
    "rows": lambda a: a,
    "columns": np.asfortranarray,
    "some columns of more": lambda a: within(a, (slice(None), slice(1, a.shape[1] + 1))),
    "some rows of more": lambda a: within(a, (slice(2, a.shape[0] + 2), slice(None))),
    "columns, some of more": lambda a: within(a.T, (slice(None), slice(1, a.shape[0] + 1))).T,
    "every second row": lambda a: within(a, (slice(0, 2 * a.shape[0], 2), slice(None))),
    "neither axis": lambda a: within(a, (slice(None, None, 2), slice(None, None, 2))),
    "backwards": lambda a: a[::-1].copy()[::-1],
}


def within(a, where):
    """The same numbers as a view of a larger array."""
    larger = np.full((2 * a.shape[0] + 3, 2 * a.shape[1] + 3), 7, a.dtype)
    if where == (slice(None, None, 2), slice(None, None, 2)):
        where = (slice(0, 2 * a.shape[0], 2), slice(0, 2 * a.shape[1], 2))
    elif where[0] == slice(None):
        where = (slice(0, a.shape[0]), where[1])
    elif where[1] == slice(None):
        where = (where[0], slice(0, a.shape[1]))
    larger[where] = a
    return larger[where]


def assert_close(actual, expected):
    tolerance = TOLERANCE[expected.dtype.type]
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if not (abs(actual - expected) <= tolerance * (1 + abs(expected))).all():  # faster than the next line
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("by")
@every_dtype
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products_of_all_layouts(sizes, dtype, normal):
    n, K, G = sizes
    x, w, b = normal(n, K), normal(K, G), normal(G)
    expected = x @ w
    for x_layout, w_layout in product(LAYOUTS.values(), repeat=2):
        x_, w_ = x_layout(x), w_layout(w)
        assert_close(matmul(x_, w_), expected)
        assert_close(affine(x_, w_, b), expected + b)
        for weights in (w_, prepacked(w_)):
            out = np.full((n, G), np.nan, dtype)
            matmul_into(x_, weights, out)
            assert_close(out, expected)
            matmul_add(x_, weights, out)
            assert_close(out, expected + expected)
            affine_into(x_, weights, b, out)
            assert_close(out, expected + b)


@every_dtype
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_results_of_all_layouts(layout, dtype, normal):
    x, w, start = normal(4, 6), normal(6, 5), normal(4, 5)
    for weights in (w, prepacked(w)):
        out = layout(start.copy())
        out[...] = 0
        beside = None if out.base is None else out.base.copy()
        out[...] = start
        matmul_add(x, weights, out)
        assert_close(out, start + x @ w)
        matmul_into(x, weights, out)
        assert_close(out, x @ w)
        if beside is not None:
            out[...] = 0
            np.testing.assert_array_equal(out.base, beside)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("by")
@every_dtype
@pytest.mark.parametrize("sizes", [(0, 2, 5), (1, 1, 1), (6, 4, 33), (7, 3, 200), (9, 5, 40)], ids=str)
def test_gradients_of_an_affine_map_in_all_layouts(sizes, dtype, normal):
    n, K, G = sizes
    x, dout, dW, db = normal(n, K), normal(n, G), normal(K, G), normal(G)
    expected = dW + x.T @ dout, db + dout.sum(axis=0)
    for x_layout, dout_layout in product(LAYOUTS.values(), repeat=2):
        for dW_layout in (np.copy, strided):
            found, sums = dW_layout(dW), db.copy()
            add_affine_gradients(x_layout(x), dout_layout(dout), found, sums)
            assert_close(found, expected[0])
            assert_close(sums, expected[1])
        sums = db.copy()
        add_column_sums(dout_layout(dout), sums)
        assert_close(sums, expected[1])


@pytest.mark.parametrize("K", [2, 6])
def test_a_wrong_bias_leaves_the_gradient_of_the_weight_alone(K):
    dW = np.zeros((K, 3))
    with pytest.raises(ValueError, match=r"add_affine_gradients: db has shape \(4,\)"):
        add_affine_gradients(np.ones((5, K)), np.ones((5, 3)), dW, np.zeros(4))
    assert not dW.any()


@pytest.mark.usefixtures("by")
def test_other_dtypes_and_axes(rng):
    half = rng.standard_normal((3, 3)).astype(np.float16)
    assert prepacked(half) is half
    assert_close(matmul(half, half), half @ half)
    with pytest.raises(TypeError, match="affine: x has dtype float16, expected float32 or float64"):
        affine(half, half, half[0])
    batch = rng.standard_normal((2, 3, 4))
    assert_close(matmul(batch, batch.swapaxes(1, 2)), batch @ batch.swapaxes(1, 2))
    integers = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(matmul(integers, integers.T), integers @ integers.T)
    x = rng.standard_normal((3, 4))
    x.flags.writeable = False
    assert_close(matmul(x, x.T), x @ x.T)
    assert_close(matmul(x, x[0]), x @ x[0])


def test_shapes_that_do_not_fit():
    x, w = np.ones((3, 4), np.float32), np.ones((5, 60), np.float32)
    with pytest.raises(ValueError, match=r"matmul: w has shape \(5, 60\), expected \(K, N\) with K = 4"):
        matmul(x, w)
    with pytest.raises(ValueError, match=r"affine: w has shape \(5, 60\), expected \(D, H\) = \(4, 60\)"):
        affine(x, w, w[0])
    with pytest.raises(
        ValueError, match=r"matmul_into: w has shape \(5, 60\), expected \(K, G\) = \(4, 60\)"
    ):
        matmul_into(x, prepacked(w), np.empty((3, 60), np.float32))
    with pytest.raises(
        ValueError, match=r"matmul_into: out has shape \(3, 5\), expected \(n, G\) = \(3, 60\)"
    ):
        matmul_into(np.ones((3, 5), np.float32), prepacked(w), np.empty((3, 5), np.float32))
    with pytest.raises(TypeError, match="matmul_into: w has dtype float32, expected float64, the dtype of x"):
        matmul_into(np.ones((3, 5)), prepacked(w), np.empty((3, 60)))


@pytest.mark.usefixtures("by")
@every_dtype
@pytest.mark.parametrize("n", [1, 3, 8])
def test_a_bias_of_any_layout(n, dtype, normal):
    x, w, b = normal(n, 30), normal(30, 128), normal(256)
    for bias in (b[::2], b[::-2], np.broadcast_to(b[:1], 128)):
        assert_close(affine(x, w, bias), x @ w + bias)
        out = np.empty((n, 128), dtype)
        affine_into(x, prepacked(w), bias, out)
        assert_close(out, x @ w + bias)
    for wrong in (b[:5], b):
        with pytest.raises(ValueError, match="b has shape"):
            affine(x, w, wrong)


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("size", [4, 40])
def test_a_result_that_is_read_only(size, rng):
    x, w = rng.standard_normal((2, size, size))
    out = np.zeros((size, size))
    out.flags.writeable = False
    for multiply in (matmul_into, matmul_add):
        for weights in (w, prepacked(w)):
            with pytest.raises(ValueError, match="out is read-only"):
                multiply(x, weights, out)
    assert not out.any()


@pytest.mark.parametrize("n", [2, 8])
def test_bytes_off_their_place_and_in_the_other_order(n, rng):
    x, w = rng.standard_normal((n, 30)), rng.standard_normal((30, 128))
    odd = np.zeros(n * 30 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(n, 30)
    odd[...] = x
    np.testing.assert_allclose(matmul(odd, w), x @ w, rtol=1e-12)
    np.testing.assert_allclose(matmul(x.astype(">f8"), w.astype(">f8")), x @ w, rtol=1e-12)
    for weights in (w, prepacked(w)):
        out = np.empty((n, 128))
        matmul_into(odd, weights, out)
        np.testing.assert_allclose(out, x @ w, rtol=1e-12)
        with pytest.raises(TypeError, match="matmul_into: x has dtype float64 in the other byte order"):
            matmul_into(x.astype(">f8"), weights, out)
