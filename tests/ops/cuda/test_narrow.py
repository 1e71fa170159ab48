"""Products with a matrix of few columns, by kernels of our own, against NumPy."""

import importlib

import numpy as np
import pytest

from rnnlab.ops.cuda_source import kernel_source
from rnnlab.ops.precision import products_in

from ..cases import TOLERANCE

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
shapes = pytest.mark.parametrize(("M", "G"), [(1, 1), (300, 5), (7, 33), (600, 70)])
narrow_columns = pytest.mark.parametrize("D", [1, 3, 4])


@pytest.fixture
def narrow(device, monkeypatch):
    """The module, which takes small matrices too."""
    module = importlib.import_module("rnnlab.ops.cuda.narrow")
    monkeypatch.setattr(module, "LARGE", 1)
    return module


@pytest.fixture
def ops(narrow):
    return importlib.import_module("rnnlab.ops.cuda")


def close(ops, actual, expected, dtype):
    scale = 100 if dtype == np.float32 else 10
    tolerance = {key: scale * value for key, value in TOLERANCE[dtype].items()}
    np.testing.assert_allclose(ops.asnumpy(actual), expected, **tolerance)


@every_dtype
@shapes
@narrow_columns
def test_affine(M, G, D, narrow, ops, normal, dtype):
    x, w, b = normal(M, D), normal(D, G), normal(G)
    out = ops.empty((M, G), dtype)
    assert narrow.affine_into(*map(ops.asarray, (x, w, b)), out)
    close(ops, out, x @ w + b, dtype)


@every_dtype
@shapes
@narrow_columns
def test_product(M, G, D, narrow, ops, normal, dtype):
    x, w = normal(M, G), normal(D, G)
    out = ops.empty((M, D), dtype)
    assert narrow.matmul_into(ops.asarray(x), ops.asarray(w).T, out)
    close(ops, out, x @ w.T, dtype)


@every_dtype
@shapes
@narrow_columns
def test_gradients(M, G, D, narrow, ops, normal, dtype):
    x, dout, dW, db = normal(M, D), normal(M, G), normal(D, G), normal(G)
    results = []
    for _ in range(2):
        added = ops.asarray(dW.copy()), ops.asarray(db.copy())
        assert narrow.add_gradients(ops.asarray(x), ops.asarray(dout), *added)
        close(ops, added[0], dW + x.T @ dout, dtype)
        close(ops, added[1], db + dout.sum(axis=0), dtype)
        results.append([ops.asnumpy(a) for a in added])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float64])
def test_parts_of_wider_arrays(narrow, ops, normal, dtype):
    x, w, b, dout = normal(20, 9), normal(6, 40), normal(12), normal(20, 30)
    on_device = [ops.asarray(a) for a in (x, w, b, dout)]
    wide = ops.zeros((20, 15), dtype)
    assert narrow.affine_into(on_device[0][:, 1:4], on_device[1][::2, 5:17], on_device[2], wide[:, 2:14])
    expected = np.zeros((20, 15))
    expected[:, 2:14] = x[:, 1:4] @ w[::2, 5:17] + b
    close(ops, wide, expected, dtype)
    wide = ops.zeros((20, 5), dtype)
    assert narrow.matmul_into(on_device[3][:, :12], on_device[1][:3, 5:17].T, wide[:, 1:4])
    expected = np.zeros((20, 5))
    expected[:, 1:4] = dout[:, :12] @ w[:3, 5:17].T
    close(ops, wide, expected, dtype)
    dW, db = ops.zeros((3, 12), dtype), ops.zeros(12, dtype)
    assert narrow.add_gradients(on_device[0][:, 1:4], on_device[3][:, 7:19], dW, db)
    close(ops, dW, x[:, 1:4].T @ dout[:, 7:19], dtype)
    close(ops, db, dout[:, 7:19].sum(axis=0), dtype)


@pytest.mark.parametrize("dtype", [np.float32])
def test_what_is_left_to_cublas(narrow, ops, normal, dtype, monkeypatch):
    x, w, b, dout = (ops.asarray(normal(*shape)) for shape in ((6, 2), (2, 5), (5,), (6, 5)))
    out = ops.empty((6, 5), dtype)
    cases = {
        "many columns": (ops.asarray(normal(6, 5)), ops.asarray(normal(5, 5)), b),
        "another dtype": (x.astype(np.float64), w, b),
        "columns apart": (ops.asarray(normal(2, 6)).T, w, b),
        "no columns": (x[:, :0], w[:0], b),
        "shapes that do not match": (x[:5], w, b),
        "a vector on the host": (x, w, np.zeros(5, dtype)),
        "a vector of another length": (x, w, b[:4]),
    }
    for name, arguments in cases.items():
        assert not narrow.affine_into(*arguments, out), name
    whole = (each.astype(np.int64) for each in (x, w, b, out))
    assert not narrow.affine_into(*whole), "integers"
    dW = ops.empty((2, 5), dtype)
    assert not narrow.add_gradients(x, dout, ops.empty((3, 5), dtype), b)
    assert not narrow.add_gradients(x, dout, dW, np.zeros(5, dtype))
    assert not narrow.add_gradients(x, dout, dW, b[:4])
    with products_in("bfloat16"):
        assert not narrow.affine_into(x, w, b, out)
        assert not narrow.affine_into(x, ops.prepacked(w), b, out)
    monkeypatch.setattr(narrow, "LARGE", 31)
    assert not narrow.affine_into(x, w, b, out)


@pytest.mark.parametrize("dtype", [np.float32])
def test_weights_that_are_prepared_for_tf32x3(narrow, ops, normal, simulated):
    x, w, b, dout = (ops.asarray(normal(*shape)) for shape in ((6, 2), (2, 5), (5,), (6, 5)))
    with products_in("tf32x3"):
        ops.affine_into(x, ops.prepacked(w), b, out := ops.empty((6, 5), np.float32))
        ops.matmul_into(dout, ops.prepacked(w.T), dx := ops.empty((6, 2), np.float32))
    assert simulated.launches == {"narrow_affine": 1, "narrow_product": 1}
    close(ops, out, ops.asnumpy(x) @ ops.asnumpy(w) + ops.asnumpy(b), np.float32)
    close(ops, dx, ops.asnumpy(dout) @ ops.asnumpy(w).T, np.float32)


@pytest.mark.parametrize("dtype", [np.float32])
def test_primitives_use_them(narrow, ops, normal, simulated):
    x, w, b, dout = (ops.asarray(normal(*shape)) for shape in ((6, 2), (2, 5), (5,), (6, 5)))
    ops.affine_into(x, w, b, ops.empty((6, 5), np.float32))
    ops.matmul_into(dout, w.T, ops.empty((6, 2), np.float32))
    ops.add_affine_gradients(x, dout, ops.zeros((2, 5), np.float32), ops.zeros(5, np.float32))
    launches = {"narrow_affine": 1, "narrow_product": 1, "narrow_gradients": 1, "column_sums": 2}
    assert simulated.launches == launches


def test_constants_that_the_kernels_have_too(narrow):
    assert f"#define NARROW {narrow.NARROW} " in kernel_source()
    assert f"#define SLABS {narrow.SLABS} " in kernel_source()
