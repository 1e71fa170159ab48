"""Products of split factors ("tf32x3"): the terms, the sums, and when they are chosen."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from rnnlab.ops.precision import products_in

from .compare import is_simulated
from .test_cublas import Layout


@pytest.fixture
def blas(device):
    return importlib.import_module("rnnlab.ops.cuda.cublas")


@pytest.fixture
def factors(device):
    return importlib.import_module("rnnlab.ops.cuda.factors")


@pytest.fixture
def always(factors, monkeypatch):
    """Every product is one of split factors."""
    monkeypatch.setattr(factors, "split_is_faster", lambda *sizes: True)
    monkeypatch.setattr(
        importlib.import_module("rnnlab.ops.cuda.cublas"), "split_is_faster", lambda *sizes: True
    )


def multiply(blas, matmul: str, *arguments: Any) -> None:
    """``gemm`` in a precision."""
    with products_in(matmul):
        blas.gemm(*arguments)


def as_tf32(x: np.ndarray) -> np.ndarray:
    """The nearest numbers of 11 significant bits, ties to even; those that would overflow, towards zero."""
    x = x.astype(np.float64)
    ulp = np.ldexp(1.0, np.maximum(np.frexp(x)[1], -125) - 11)
    nearest = np.rint(x / ulp) * ulp
    return np.where(abs(nearest) < 2.0**128, nearest, np.trunc(x / ulp) * ulp)


def terms(factors, device, matrix: np.ndarray, name: str, layout: Layout) -> np.ndarray:
    """The three terms of a factor along the sum, as matrices, and what lies behind them in the lines."""
    found = factors.split(layout.put(device, matrix), name)
    assert found.shape == matrix.shape
    by_columns = found.by_columns
    assert by_columns == layout.by_columns or matrix.shape == (1, 1)
    lines = found.data.get().reshape(-1, found.step)
    assert not found.step % 4
    along = by_columns == (name == "w")
    parts = np.split(lines, 3, axis=int(along))
    rows, columns = matrix.T.shape if by_columns else matrix.shape
    for part in parts:
        behind = part.copy()
        behind[:rows, :columns] = 0
        assert not behind.any()
    return np.array([part[:rows, :columns].T if by_columns else part[:rows, :columns] for part in parts])


SPECIAL = [
    *(0.0, -0.0, np.inf, -np.inf, np.nan, 3.4028235e38, -3.4028235e38, 3.4e38, 1e-45, -1e-40, 1.2e-38),
    *np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0x7F7FF000, 0x7F7FEFFF, 0x3F801000], np.uint32).view(
        np.float32
    ),
]


@pytest.mark.parametrize("name", ["x", "w"])
@pytest.mark.parametrize("layout", [Layout(), Layout(True), Layout(before=1), Layout(True, 0, 3)], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 8), (5, 7), (34, 129)], ids=str)
def test_the_terms_of_any_numbers(shape, layout, name, factors, device, rng):
    x = rng.integers(2**32, size=shape, dtype=np.uint32).view(np.float32).ravel()
    x[: len(SPECIAL)] = SPECIAL[: x.size]
    x = rng.permutation(x).reshape(shape)
    if layout.before or layout.behind:
        x = np.where(np.isfinite(x), x, np.float32(1))  # the frame is NaN
    first, second, last = terms(factors, device, x, name, layout)
    low, high = (first, second) if name == "x" else (second, first)
    finite = np.isfinite(x)
    number = np.where(finite, x, 0)
    np.testing.assert_array_equal(high, as_tf32(number))
    np.testing.assert_array_equal(last[finite], high[finite])
    np.testing.assert_array_equal(last[~finite], x[~finite])
    rest = number.astype(float) - high
    normal = abs(rest) >= 2.0**-126  # others may be taken for zero
    np.testing.assert_array_equal(low[normal], as_tf32(rest)[normal])
    bound = np.maximum(abs(number.astype(float)) * 2.0**-23, 2.0**-126)
    assert (abs(number.astype(float) - high - low) <= bound).all()
    assert not (np.concatenate([low, high, last]).view(np.uint32) & 0x1FFF)[
        np.isfinite([*low, *high, *last])
    ].any()


def test_nan_stays_nan_where_the_last_bits_are_dropped(factors, device):
    x = np.array([[0x7F800001, 0xFF800001]], np.uint32).view(np.float32)
    last = factors.split(device.asarray(x), "x").data.get()[0, 8:10]
    assert np.isnan((last.view(np.uint32) & 0xFFFFE000).view(np.float32)).all()


def test_several_matrices(factors, device, rng):
    x = rng.standard_normal((3, 5, 6)).astype(np.float32)
    given = device.asarray(x)
    for array, swap in ((given, False), (given.swapaxes(1, 2), True)):
        together = factors.split(array, "w")
        assert together.apart == together.data.shape[1]
        for k in range(3):
            alone = factors.split(device.asarray(x[k]).T if swap else device.asarray(x[k]), "w")
            assert (alone.step, alone.by_columns, alone.apart) == (together.step, together.by_columns, 0)
            np.testing.assert_array_equal(alone.data.get()[0], together.data.get()[k])


@pytest.mark.parametrize(
    ("K", "parts"),
    [
        (1, [(0, 12)]),
        (512, [(0, 1536)]),
        (513, [(0, 1544), (1544, 4)]),
        (1300, [(0, 3112), (3112, 512), (3624, 276)]),
    ],
)
def test_the_parts_of_a_sum(K, parts, factors):
    assert factors.summed(K) == tuple(parts)


def error(product: np.ndarray, exact: np.ndarray) -> float:
    return float(np.sqrt(np.mean((product - exact) ** 2)))


def factor(rng: np.random.Generator, shape: tuple[int, ...], spread: bool) -> np.ndarray:
    """Normal numbers; with ``spread`` of magnitudes from 1e-9 to 1e9 within a row."""
    scale = 10.0 ** rng.uniform(-9, 9, shape) if spread else 1.0
    return (rng.standard_normal(shape) * scale).astype(np.float32)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("K", [1, 2, 7, 64, 511, 512, 1029, 2000])
def test_the_error_is_that_of_float32(K, spread, blas, device):
    rng = np.random.default_rng(K)
    x, w, before = factor(rng, (33, K), spread), factor(rng, (K, 37), spread), factor(rng, (33, 37), spread)
    for beta in (0.0, 1.0):
        exact = x.astype(float) @ w + beta * before
        plain = device.asarray(before)
        multiply(blas, "float32", device.asarray(x), device.asarray(w), plain, beta)
        layouts = [Layout.of(rng) for _ in range(3)]
        views = [layout.put(device, each) for layout, each in zip(layouts, (x, w, before), strict=True)]
        multiply(blas, "tf32x3", *views, beta)
        # Tensor cores round sums towards zero, which the stand-in does not.
        most = 2 if is_simulated(device) else 20
        smallest = 2.0**-24 * error(exact, 0 * exact)  # of a product of one number in each sum
        assert error(views[2].get(), exact) <= most * max(error(plain.get(), exact), smallest)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, -1.0])
def test_a_result_of_before_counts_once(beta, blas, device, rng, factors, monkeypatch):
    monkeypatch.setattr(factors, "TERMS", 8)
    x, w, out = (rng.standard_normal(shape).astype(np.float32) for shape in ((6, 30), (30, 5), (6, 5)))
    given = device.asarray(out if beta else np.full_like(out, np.nan))
    multiply(blas, "tf32x3", device.asarray(x), device.asarray(w), given, beta)
    np.testing.assert_allclose(given.get(), x @ w + beta * out, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("always")
def test_what_is_not_finite_is_as_in_float32(blas, device, rng):
    numbers = [np.inf, -np.inf, np.nan, 0.0, 1.0, -1.0, 1.25, 1 + 2.0**-20]
    x = rng.choice([*numbers, 2e38, -2e38], (200, 2)).astype(np.float32)
    w = rng.choice(numbers, (2, 200)).astype(np.float32)
    results = []
    for matmul in ("float32", "tf32x3"):
        out = device.empty((200, 200), np.float32)
        multiply(blas, matmul, device.asarray(x), device.asarray(w), out)
        results.append(out.get())
    finite = np.isfinite(results[0])
    given = np.isfinite(x).all(axis=1)[:, None] & np.isfinite(w).all(axis=0)
    overflows = given & ~finite  # NaN is possible, or the largest number where sums are rounded towards zero
    assert overflows.any()
    assert not (abs(results[1][overflows]) < 3.4e38).any()
    same = ~finite & ~overflows
    assert np.isinf(results[0][same]).any()
    np.testing.assert_array_equal(results[0][same], results[1][same])
    with np.errstate(invalid="ignore"):
        bound = 1e-6 * (abs(x).astype(float) @ abs(w))[finite]
    assert (abs(results[1][finite] - results[0][finite]) <= bound).all()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("way", ["as it is", "transposed"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4, 5), (3, 5, 2)),
        ((3, 4, 5), (5, 2)),
        ((4, 5), (3, 5, 2)),
        ((1, 4, 5), (3, 5, 2)),
        ((0, 4, 5), (0, 5, 2)),
        ((3, 4, 0), (3, 0, 2)),
        ((2, 33, 600), (2, 600, 34)),
    ],
    ids=str,
)
def test_batches(shapes, way, blas, device, rng):
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)

    def put(matrix: np.ndarray) -> Any:
        if way == "as it is":
            return device.asarray(matrix)
        return device.asarray(np.ascontiguousarray(matrix.swapaxes(-1, -2))).swapaxes(-1, -2)

    with products_in("tf32x3"):
        out = blas.batched(put(x), put(w))
    np.testing.assert_allclose(out.get(), x.astype(float) @ w, rtol=1e-5, atol=2e-5)


@pytest.mark.usefixtures("always")
def test_empty_matrices(blas, device):
    for M, K, N in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
        x, w = device.ones((M, K), np.float32), device.ones((K, N), np.float32)
        multiply(blas, "tf32x3", x, w, out := device.full((M, N), 2.0, np.float32), 1.0)
        assert (out.get() == 2).all()


@pytest.mark.usefixtures("always")
def test_the_same_bits_twice(blas, device, rng):
    x, w = (device.asarray(factor(rng, shape, False)) for shape in ((70, 900), (900, 40)))
    results = []
    for _ in range(2):
        multiply(blas, "tf32x3", x, w, out := device.empty((70, 40), np.float32))
        results.append(out.get())
    np.testing.assert_array_equal(*results)


# ---------------------------------------------------------------- where it is chosen

LARGE = {
    (2048, 512, 10516): True,  # the scores of captions, M, K, N
    (512, 2048, 10516): True,  # the gradient of their weight
    (1344, 512, 2541): True,
    (1344, 768, 2048): True,
    (16384, 2048, 4096): True,
    (64, 512, 2048): False,  # a step of an LSTM
    (25, 512, 2048): False,
    (2048, 512, 31): False,
    (2048, 31, 10516): False,
    (1, 1, 1): False,
}


@pytest.mark.parametrize(("sizes", "expected"), LARGE.items(), ids=str)
def test_large_products_are_split(sizes, expected, factors):
    M, K, N = sizes
    assert factors.split_is_faster(1, M, K, N, (M * K, K * N), False) == expected


def test_a_weight_that_is_packed_is_split_for_fewer_rows(factors):
    K, N = 1024, 4096
    fewest = [
        next(M for M in range(32, 4096) if factors.split_is_faster(1, M, K, N, (M * K, K * N), packed))
        for packed in (True, False)
    ]
    assert 64 < fewest[0] < 256 < fewest[1] < 1024


def test_sizes_beyond_the_integers_of_cublas(factors):
    size = 2**30
    assert not factors.split_is_faster(1, size, size, size, (size, size), False)


@pytest.fixture
def ops(simulated):
    return importlib.import_module("rnnlab.ops.cuda")


def chosen(monkeypatch, rule) -> None:
    monkeypatch.setattr(importlib.import_module("rnnlab.ops.cuda.cublas"), "split_is_faster", rule)


def test_a_packed_weight_is_split_once_and_not_for_few_rows(simulated, ops, rng, monkeypatch):
    chosen(monkeypatch, lambda matrices, M, *others: M > 2)
    w = rng.standard_normal((5, 6)).astype(np.float32)
    with products_in("tf32x3"):
        packed = ops.prepacked(simulated.asarray(w)[:, :3])
        assert (packed.shape, packed.dtype, packed.ndim) == ((5, 3), np.float32, 2)
        for rows, launches in ((2, 0), (3, 2), (4, 3), (1, 3)):
            x, b = rng.standard_normal((rows, 5)).astype(np.float32), np.ones(3, np.float32)
            out = simulated.empty((rows, 3), np.float32)
            if not launches:
                simulated.launches.clear()
            ops.affine_into(simulated.asarray(x), packed, simulated.asarray(b), out)
            np.testing.assert_allclose(out.get(), x @ w[:, :3] + 1, rtol=1e-5, atol=1e-5)
            assert simulated.launches["split_tf32"] == launches


def test_a_packed_weight_in_other_precisions(simulated, ops, monkeypatch):
    chosen(monkeypatch, lambda *sizes: True)
    with products_in("tf32x3"):
        packed = ops.prepacked(simulated.full((1, 1), 1 + 2.0**-12, np.float32))
    x, out = simulated.ones((1, 1), np.float32), simulated.empty((1, 1), np.float32)
    expected = {"float32": 1 + 2.0**-12, "tf32": 1.0, "tf32x3": 1 + 2.0**-12, "bfloat16": 1.0}
    for matmul, value in expected.items():
        with products_in(matmul):
            ops.matmul_into(x, packed, out)
        assert out.item() == value
    double = simulated.ones((2, 2))
    with products_in("tf32x3"):
        assert ops.prepacked(double) is double


def test_a_gpu_without_tf32_multiplies_float32(simulated, ops, monkeypatch):
    chosen(monkeypatch, lambda *sizes: True)
    monkeypatch.setattr(simulated.cuda.Device, "compute_capability", "75")
    importlib.import_module("rnnlab.ops.cuda.cublas")._local.__dict__.clear()
    x = simulated.ones((2, 2), np.float32)
    with products_in("tf32x3"):
        assert (ops.matmul(x, x).get() == 2).all()
    assert not simulated.launches["split_tf32"]
    importlib.import_module("rnnlab.ops.cuda.cublas")._local.__dict__.clear()


def test_a_graph_splits_anew_at_each_launch(simulated, ops, monkeypatch):
    chosen(monkeypatch, lambda *sizes: True)
    graphs = importlib.import_module("rnnlab.ops.cuda.graphs")
    x, w = simulated.ones((2, 3), np.float32), simulated.ones((3, 2), np.float32)
    out = simulated.zeros((2, 2), np.float32)

    def work():
        ops.matmul_into(x, ops.prepacked(w), out)
        ops.matmul_add(x, w, out)

    with products_in("tf32x3"):
        work()
        graph = graphs.Graph(work, graphs.GraphMemory())
    for value in (2.0, 3.0):
        w.fill(value)
        graph.launch(np.random.default_rng(0), lambda: None)
        assert (out.get() == 6 * value).all()


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("M", "K", "N"), [(2048, 512, 10516), (1344, 512, 2541), (512, 2048, 10516), (1344, 768, 2048)]
)
def test_the_error_of_large_products_on_a_gpu(M, K, N):
    cupy = pytest.importorskip("cupy")
    factors = importlib.import_module("rnnlab.ops.cuda.factors")
    blas = importlib.import_module("rnnlab.ops.cuda.cublas")
    assert factors.split_is_faster(1, M, K, N, (M * K, K * N), False)
    rng = np.random.default_rng(0)
    x, w = (cupy.asarray(rng.standard_normal(shape, np.float32)) for shape in ((M, K), (N, K)))
    blas.gemm(x.astype(float), w.T.astype(float), exact := cupy.empty((M, N)))
    errors = {}
    for matmul in ("float32", "tf32", "tf32x3"):
        multiply(blas, matmul, x, w.T, out := cupy.empty((M, N), np.float32))
        errors[matmul] = error(out.get(), exact.get())
    assert errors["tf32x3"] <= 20 * errors["float32"]
    assert errors["tf32x3"] <= errors["tf32"] / 30
