"""Matrix products by MKL: numbers, memory, and peace with PyTorch's threads."""

import gc
import importlib.util
import os
import subprocess
import sys
from importlib import metadata
from itertools import product

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import blas

try:
    from rnnlab.ops.fused_blas import Packed, affine, matmul, matmul_add, matmul_into, packed
except blas.MklUnavailableError as reason:
    pytest.skip(f"MKL is not used here: {reason}", allow_module_level=True)

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
TOLERANCE = {np.float32: 2e-4, np.float64: 1e-12, np.float16: 0.1}
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
]

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


@pytest.fixture
def normal(rng, dtype):
    return lambda *shape: rng.standard_normal(shape).astype(dtype)


def assert_close(actual, expected):
    tolerance = TOLERANCE[expected.dtype.type]
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    assert actual.dtype == expected.dtype


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
        for weights in (w_, packed(w_)):
            out = np.full((n, G), np.nan, dtype)
            matmul_into(x_, weights, out)
            assert_close(out, expected)
            matmul_add(x_, weights, out, np.empty_like(out))
            assert_close(out, expected + expected)


@every_dtype
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_results_of_all_layouts(layout, dtype, normal):
    x, w, start = normal(4, 6), normal(6, 5), normal(4, 5)
    for weights in (w, packed(w)):
        out = layout(start.copy())
        kept = None if out.base is None else out.base.copy()
        matmul_add(x, weights, out, np.empty_like(start))
        assert_close(out, start + x @ w)
        matmul_into(x, weights, out)
        assert_close(out, x @ w)
        if kept is not None:
            out[...] = 0
            assert np.count_nonzero(out.base) <= np.count_nonzero(kept)  # nothing beside it was written


@every_dtype
def test_nan_stays_and_old_results_do_not(dtype, normal):
    x, w = normal(3, 4), normal(4, 5)
    x[1, 2] = np.nan
    for weights in (w, packed(w)):
        out = np.full((3, 5), np.nan, dtype)
        matmul_into(x, weights, out)
        np.testing.assert_array_equal(np.isnan(out).all(axis=1), [False, True, False])


@pytest.mark.parametrize("dtype", [np.float16])
def test_what_mkl_does_not_multiply_numpy_does(dtype, normal, rng):
    x, w = normal(3, 4), normal(4, 5)
    assert packed(w) is w
    assert_close(matmul(x, w), x @ w)
    assert_close(affine(x, w, w[0]), x @ w + w[0])
    batch = rng.standard_normal((2, 3, 4))
    assert_close(matmul(batch, batch.swapaxes(1, 2)), batch @ batch.swapaxes(1, 2))
    integers = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(matmul(integers, integers.T), integers @ integers.T)
    x = rng.standard_normal((3, 4))
    x.flags.writeable = False
    assert_close(matmul(x, x.T), x @ x.T)
    assert_close(matmul(x, x[0]), x @ x[0])


def test_shapes_that_do_not_fit():
    x, w = np.ones((3, 4), np.float32), np.ones((5, 6), np.float32)
    with pytest.raises(ValueError, match="mismatch"):
        matmul(x, w)
    with pytest.raises(ValueError, match="mismatch"):
        affine(x, w, w[0])
    with pytest.raises(ValueError, match=r"x has shape \(3, 4\), w \(5, 6\) and out \(3, 6\)"):
        matmul_into(x, packed(w), np.empty((3, 6), np.float32))
    with pytest.raises(ValueError, match=r"x has shape \(3, 5\), w \(5, 6\) and out \(3, 5\)"):
        matmul_into(np.ones((3, 5), np.float32), packed(w), np.empty((3, 5), np.float32))
    with pytest.raises(TypeError):
        matmul_into(np.ones((3, 5)), packed(w), np.empty((3, 6)))


# ---------------------------------------------------------------- packed weights


@every_dtype
def test_two_packed_weights_at_once(dtype, normal):
    """As in the GRU, and with the weights themselves long gone."""
    x, w = normal(3, 8), normal(8, 30)
    kept = w.copy()
    left, right, again = packed(w[:, :20]), packed(w[:, 20:]), packed(w[:, :20])
    w[...] = np.nan
    del w
    gc.collect()
    for weights, part in ((left, kept[:, :20]), (right, kept[:, 20:]), (again, kept[:, :20])):
        out = np.empty((3, part.shape[1]), dtype)
        matmul_into(x, weights, out)
        assert_close(out, x @ part)


@every_dtype
@pytest.mark.parametrize("rows", [1, 7, 300, 1000])
def test_a_packed_weight_serves_any_number_of_rows(rows, dtype, normal):
    w = normal(64, 96)
    weights, x, out = packed(w), normal(rows, 64), np.empty((rows, 96), dtype)
    matmul_into(x, weights, out)
    assert_close(out, x @ w)


def test_memory_of_packed_weights_is_used_again(rng):
    w = rng.standard_normal((40, 50)).astype(np.float32)
    places = set()
    for _ in range(200):
        forward, backward = packed(w), packed(w.T)
        places |= {forward._memory.ctypes.data, backward._memory.ctypes.data}
    assert len(places) <= 4


def test_memory_of_a_packed_weight_in_use_is_not(rng):
    alive = [packed(rng.standard_normal((40, 50)).astype(np.float32)) for _ in range(10)]
    assert isinstance(alive[0], Packed)
    assert len({weights._memory.ctypes.data for weights in alive}) == 10


# ---------------------------------------------------------------- whether MKL is used


def test_it_is_refused_where_it_multiplies_wrongly(monkeypatch):
    right = blas.Mkl._product
    monkeypatch.setattr(blas.Mkl, "_product", lambda self, x, w: right(self, x, w) * 1.01)
    with pytest.raises(blas.MklUnavailableError, match="it multiplies wrongly in this process"):
        blas.Mkl(1)


def missing(name):
    raise metadata.PackageNotFoundError(name)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (missing, "it is not installed"),
        (lambda name: None, r"no libmkl_rt\.so"),
        (lambda name: [metadata.PackagePath("mkl/libmkl_core.so.2")], r"no libmkl_rt\.so"),
    ],
    ids=["no wheel", "a wheel without files", "other files"],
)
def test_it_is_refused_where_it_is_missing(files, reason, monkeypatch):
    monkeypatch.setattr(metadata, "files", files)
    with pytest.raises(blas.MklUnavailableError, match=reason):
        blas.Mkl(1)


def test_it_is_refused_where_it_cannot_be_loaded(monkeypatch, tmp_path):
    monkeypatch.setattr(blas, "_path", lambda: str(tmp_path / "libmkl_rt.so"))
    with pytest.raises(blas.MklUnavailableError, match=r"it cannot be loaded \(.*libmkl_rt\.so"):
        blas.Mkl(1)


def test_one_thread_where_openmp_is_missing(monkeypatch):
    monkeypatch.setattr(blas, "_has_gnu_openmp", lambda: False)
    asked = []
    library = blas._load(blas._path())

    class Recorder:
        def MKL_Set_Threading_Layer(self, layer):
            asked.append(layer)
            return layer

        def __getattr__(self, name):
            return getattr(library, name)

    monkeypatch.setattr(blas, "_load", lambda path: Recorder())
    assert blas.Mkl(8).threads == 1
    assert asked == [blas._ONE_THREAD]


def run(code, **environment):
    environment = os.environ | {"RNNLAB_NUM_THREADS": "2", "RNNLAB_OPS": "fused"} | environment
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


NUMPY_S_PRODUCTS = """
from rnnlab.ops import blas
def missing():
    raise blas.MklUnavailableError("it is not installed")
blas._path = missing
import numpy as np
from rnnlab.layers import lstm_backward, lstm_forward
x, weight = np.ones((2, 3, 4), np.float32), np.ones((4, 16), np.float32)
h, cache = lstm_forward(x, np.zeros((2, 4), np.float32), weight, weight, weight[0])
lstm_backward(h, cache)
import rnnlab.ops
print(rnnlab.ops.describe())
"""


def test_fused_kernels_without_mkl():
    assert "NumPy's BLAS for matrix products (not MKL: it is not installed)" in run(NUMPY_S_PRODUCTS)


BESIDE_PYTORCH = """
{imports}
import numpy as np
rng = np.random.default_rng(0)
ops = rnnlab.ops.ops_for(np.zeros(1))
wrong = 0
for trial in range(120):
    n, K, G = rng.integers(1, 300, 3)
    x, w = rng.standard_normal((n, K), np.float32), rng.standard_normal((K, G), np.float32)
    theirs = (torch.from_numpy(x) @ torch.from_numpy(w)).numpy()
    exact = x.astype(float) @ w
    out = np.empty((n, G), np.float32)
    ops.matmul_into(x, ops.packed(w), out)
    wrong += any(abs(ours - exact).max() > 1e-3 for ours in (theirs, ops.matmul(x, w), out))
print(wrong, "wrong;", rnnlab.ops.describe())
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="without PyTorch")
@pytest.mark.parametrize(
    "imports",
    [
        "import torch, rnnlab.ops",
        "import rnnlab.ops, numpy; rnnlab.ops.ops_for(numpy.zeros(1)); import torch",
    ],
    ids=["after PyTorch", "before PyTorch"],
)
def test_beside_pytorch(imports):
    said = run(BESIDE_PYTORCH.format(imports=imports))
    assert said.startswith("0 wrong;")
    assert "MKL" in said
    assert "threads: 2" in said
