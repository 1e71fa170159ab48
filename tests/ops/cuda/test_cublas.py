"""Products by cuBLAS: on the stand-in everywhere, on a GPU where there is one."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import rnnlab
from rnnlab.errors import InputError
from rnnlab.ops.precision import products_in

from ...simulated_cupy import cublas_library
from ..cases import TOLERANCE

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# Relative errors of a factor, at most.
MODES = {"float32": 2.0**-23, "tf32": 2.0**-10, "tf32x3": 2.0**-23, "bfloat16": 2.0**-8}


@pytest.fixture
def blas(device):
    return importlib.import_module("rnnlab.ops.cuda.cublas")


@pytest.fixture
def factors(device):
    return importlib.import_module("rnnlab.ops.cuda.factors")


@pytest.fixture
def ops(device):
    return importlib.import_module("rnnlab.ops.cuda")


class Layout(NamedTuple):
    """How a matrix lies in a wider array."""

    by_columns: bool = False
    before: int = 0  # numbers of a line that belong to others
    behind: int = 0

    def put(self, device: Any, matrix: np.ndarray) -> Any:
        """The matrix on the device; what is around it is NaN."""
        lines = matrix.T if self.by_columns else matrix
        wide = np.full((lines.shape[0], self.before + lines.shape[1] + self.behind), np.nan, matrix.dtype)
        wide[:, self.before : wide.shape[1] - self.behind] = lines
        view = device.asarray(wide)[:, self.before : wide.shape[1] - self.behind]
        return view.T if self.by_columns else view

    @classmethod
    def of(cls, rng: np.random.Generator) -> Layout:
        return cls(bool(rng.integers(2)), *map(int, rng.integers(3, size=2)))


def assert_nothing_else_written(out: Any) -> None:
    wide = out if out.base is None else out.base
    assert int(np.isfinite(wide.get()).sum()) == out.size


# ---------------------------------------------------------------- numbers


@every_dtype
@pytest.mark.parametrize("seed", range(60))
def test_products_of_parts_of_wider_arrays(seed, dtype, blas, device):
    rng = np.random.default_rng(seed)
    M, K, N = (int(size) for size in rng.choice([1, 1, 2, 3, 7, 33], size=3))
    x, w, out = (rng.standard_normal(shape).astype(dtype) for shape in ((M, K), (K, N), (M, N)))
    layouts = [Layout.of(rng) for _ in range(3)]
    views = [layout.put(device, matrix) for layout, matrix in zip(layouts, (x, w, out), strict=True)]
    blas.gemm(*views, 1.0)
    np.testing.assert_allclose(views[2].get(), out + x @ w, **TOLERANCE[dtype])
    assert_nothing_else_written(views[2])
    views[2][...] = np.nan
    blas.gemm(*views)
    np.testing.assert_allclose(views[2].get(), x @ w, **TOLERANCE[dtype])
    assert_nothing_else_written(views[2])
    blas.gemm(*views, -0.5)
    np.testing.assert_allclose(views[2].get(), x @ w / 2, **TOLERANCE[dtype])


@every_dtype
@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)], ids=str)
def test_empty_matrices(shape, dtype, blas, device):
    M, K, N = shape
    x, w, out = device.ones((M, K), dtype), device.ones((K, N), dtype), device.full((M, N), 2.0, dtype)
    for beta, expected in ((1.0, 2), (0.5, 1), (0.0, 0)):
        blas.gemm(x, w, out, beta)
        assert (out.get() == expected).all()
    assert (blas.batched(x[None], w).get() == 0).all()


def test_axes_of_length_one(blas, device):
    column, row = device.arange(6.0).reshape(3, 2)[:, 1:], device.arange(8.0)[None, :]
    blas.gemm(column, row, out := device.empty((3, 8)))
    np.testing.assert_array_equal(out.get(), np.outer([1, 3, 5], np.arange(8)))
    every_second = device.arange(8.0)[None, ::2]  # columns, of one number
    blas.gemm(column, every_second, out := device.empty((3, 4)))
    np.testing.assert_array_equal(out.get(), np.outer([1, 3, 5], [0, 2, 4, 6]))
    blas.gemm(row, row.T, out := device.empty((1, 1)))
    assert out.item() == 140


BATCHES = {
    "three axes": ((3, 4, 5), (3, 5, 2)),
    "one row": ((3, 1, 5), (3, 5, 2)),
    "one column": ((3, 4, 5), (3, 5, 1)),
    "the second for all": ((3, 4, 5), (5, 2)),
    "the first for all": ((4, 5), (3, 5, 2)),
    "one first": ((1, 4, 5), (3, 5, 2)),
    "one second": ((3, 4, 5), (1, 5, 2)),
    "one each": ((1, 4, 5), (1, 5, 2)),
    "none": ((0, 4, 5), (0, 5, 2)),
    "nothing to add up": ((3, 4, 0), (3, 0, 2)),
}


@every_dtype
@pytest.mark.parametrize("way", ["as it is", "transposed", "wider"])
@pytest.mark.parametrize("case", BATCHES)
def test_batches(case, way, dtype, ops, device, rng):
    x, w = (rng.standard_normal(shape).astype(dtype) for shape in BATCHES[case])

    def put(matrix: np.ndarray) -> Any:
        if way == "transposed":
            return device.asarray(np.ascontiguousarray(matrix.swapaxes(-1, -2))).swapaxes(-1, -2)
        if way == "wider":
            wide = np.full((*matrix.shape[:-1], matrix.shape[-1] + 3), np.nan, dtype)
            wide[..., 1:-2] = matrix
            return device.asarray(wide)[..., 1:-2]
        return device.asarray(matrix)

    out = ops.matmul(put(x), put(w))
    assert out.flags.c_contiguous
    np.testing.assert_allclose(out.get(), x @ w, **TOLERANCE[dtype])


def test_a_batch_of_rows_of_a_matrix(ops, device, rng):
    x, w = rng.standard_normal((3, 5)), rng.standard_normal((3, 5, 2))
    np.testing.assert_allclose(
        ops.matmul(device.asarray(x)[:, None], device.asarray(w)).get(), x[:, None] @ w, rtol=1e-12
    )
    every_second = device.asarray(w)[::2]
    np.testing.assert_allclose(
        ops.matmul(device.asarray(x)[::2, None], every_second).get(), x[::2, None] @ w[::2], rtol=1e-12
    )


def test_what_is_not_finite_goes_through(blas, device):
    x = device.asarray([[np.nan, 0.0], [np.inf, 1.0], [1.0, 1.0]])
    blas.gemm(x, device.asarray(np.eye(2)), out := device.empty((3, 2)))
    assert np.isnan(out.get()[0]).all()
    assert out.get()[1, 0] == np.inf
    np.testing.assert_array_equal(out.get()[2], [1, 1])


# ---------------------------------------------------------------- precision


@pytest.fixture(params=MODES)
def mode(request, blas):
    with products_in(request.param):
        yield request.param


@pytest.mark.parametrize("seed", range(5))
def test_rounding(seed, mode, ops, device):
    rng = np.random.default_rng(seed)
    M, K, N = map(int, rng.integers(1, 70, size=3))
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((M, K), (K, N)))
    exact = x.astype(float) @ w.astype(float)
    bound = (2 * MODES[mode] + K * 2.0**-23) * (abs(x).astype(float) @ abs(w).astype(float))
    layouts = [Layout.of(rng) for _ in range(2)]
    on_device = [layout.put(device, matrix) for layout, matrix in zip(layouts, (x, w), strict=True)]
    products = [
        ops.matmul(*on_device),
        ops.matmul(on_device[0][None], on_device[1][None])[0],
        ops.affine(*on_device, device.zeros(N, np.float32)),
    ]
    for written in (ops.matmul_into, ops.matmul_add):
        written(on_device[0], ops.prepacked(on_device[1]), out := device.zeros((M, N), np.float32))
        products.append(out)
    for product in products:
        assert product.dtype == np.float32
        assert (abs(product.get() - exact) <= bound).all()


@pytest.mark.parametrize("mode", ["tf32", "bfloat16"])
def test_factors_are_rounded(mode, simulated):
    blas = importlib.import_module("rnnlab.ops.cuda.cublas")
    for extra, saved in ((MODES[mode] / 4, False), (4 * MODES[mode], True)):
        x, one = simulated.full((1, 1), 1 + extra, np.float32), simulated.ones((1, 1), np.float32)
        with products_in(mode):
            products = blas.batched(x[None], one), blas.batched(one[None], x)
        assert [product.item() for product in products] == [1 + extra if saved else 1] * 2
        assert blas.batched(x[None], one).item() == np.float32(1 + extra)


def test_double_precision_is_never_reduced(mode, ops, device, rng):
    x, w = rng.standard_normal((20, 30)), rng.standard_normal((30, 10))
    given = device.asarray(w)
    assert ops.prepacked(given) is given
    for product in (ops.matmul(device.asarray(x), given), ops.matmul(device.asarray(x)[None], given)[0]):
        np.testing.assert_allclose(product.get(), x @ w, rtol=1e-12)


def as_bfloat16(x: np.ndarray) -> np.ndarray:
    """To the nearest 8 bits of mantissa, to even where two are, with exponents as they are."""
    with np.errstate(all="ignore"):
        exponent = np.frexp(x.astype(np.float64))[1]
        exponent = np.maximum(exponent, -125)  # those that are smaller are subnormal
        ulp = np.ldexp(1.0, exponent - 8)
        return np.where(np.isfinite(x), np.rint(x / ulp) * ulp, x).astype(np.float32)


def test_rounding_to_bfloat16(factors, device, rng):
    bits = rng.integers(2**32, size=4000, dtype=np.uint32)
    ties = (rng.integers(2**16, size=1000, dtype=np.uint32) << 16) | 0x8000
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.4028235e38, 1e-45, 1e-40], np.float32)
    nans = np.array(
        [0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32
    )  # whose first bits say infinity
    x = np.concatenate([bits.view(np.float32), ties.view(np.float32), special, nans.view(np.float32)])
    rounded = factors.rounded(device.asarray(x[None])).data.get()[0]
    assert rounded.dtype == np.uint16
    values = (rounded.astype(np.uint32) << 16).view(np.float32)
    largest = 255 * 2.0**120  # of bfloat16; from half a step above it, infinity
    finite = as_bfloat16(np.where(np.isfinite(x), x, 0))
    expected = np.where(np.isfinite(x), np.where(abs(finite) > largest, np.copysign(np.inf, x), finite), x)
    np.testing.assert_array_equal(values, expected.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(values[~np.isnan(x)]), np.signbit(x[~np.isnan(x)]))


def test_a_packed_weight_is_rounded_once(simulated, rng):
    ops = importlib.import_module("rnnlab.ops.cuda")
    w = simulated.asarray(rng.standard_normal((4, 6)).astype(np.float32))
    x, out = simulated.ones((2, 4), np.float32), simulated.empty((2, 3), np.float32)
    with products_in("bfloat16"):
        packed = ops.prepacked(w[:, :3])
        w.fill(0)
        simulated.launches.clear()
        for _ in range(3):
            ops.matmul_into(x, packed, out)
    assert simulated.launches["to_bfloat16"] == 3  # those of x
    assert (out.get() != 0).all()
    assert packed.shape == (4, 3)
    assert packed.dtype == np.float32


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (1000, 7)], ids=str)
def test_column_sums_are_never_reduced(shape, mode, ops, device, rng):
    x, out = rng.standard_normal(shape).astype(np.float32), rng.standard_normal(shape[1]).astype(np.float32)
    for layout in (Layout(), Layout(before=1, behind=2), Layout(by_columns=True)):
        added = device.asarray(out)
        ops.add_column_sums(layout.put(device, x), added)
        np.testing.assert_allclose(added.get(), out + x.sum(axis=0, dtype=float), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("mode", ["float32", "tf32"], indirect=True)
def test_a_packed_weight_is_the_weight_itself(mode, ops, device):
    part = device.zeros((4, 6), np.float32)[:, :3]
    assert ops.prepacked(part) is part


def test_the_same_bits_twice(mode, blas, device, rng):
    x, w = (
        device.asarray(rng.standard_normal(shape).astype(np.float32)) for shape in ((300, 500), (500, 70))
    )
    results = []
    for _ in range(3):
        blas.gemm(x, w, out := device.empty((300, 70), np.float32))
        results.append(out.get())
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_bfloat16_on_a_device_that_has_none(simulated, monkeypatch):
    blas = importlib.import_module("rnnlab.ops.cuda.cublas")
    monkeypatch.setattr(simulated.cuda.Device, "compute_capability", "75")
    x = simulated.ones((2, 2), np.float32)
    blas.gemm(x, x, x.copy())  # the handle is made, and fits float32
    message = (
        "matmul or RNNLAB_MATMUL is 'bfloat16', .* capability 8.0, and gpu:0 has 7.5: expected 'float32'"
    )
    with products_in("bfloat16"):
        with pytest.raises(InputError, match=message):
            blas.gemm(x, x, x.copy())
        blas.gemm(x.astype(float), x.astype(float), x.astype(float))


def test_a_graph_has_the_precision_of_its_capture(simulated):
    ops = importlib.import_module("rnnlab.ops.cuda")
    graphs = importlib.import_module("rnnlab.ops.cuda.graphs")
    x, one = simulated.full((1, 1), 1 + 2.0**-10, np.float32), simulated.ones((1, 1), np.float32)
    out = simulated.zeros((1, 1), np.float32)
    ops.matmul_into(x, one, out)
    with products_in("bfloat16"):
        ops.matmul_into(x, one, out)
        graph = graphs.Graph(lambda: ops.matmul_into(x, one, out), graphs.GraphMemory())
    out.fill(0)
    graph.launch(np.random.default_rng(0), lambda: None)
    assert out.get() == 1


# ---------------------------------------------------------------- handles


def test_a_handle_for_each_thread(simulated):
    blas, handles = importlib.import_module("rnnlab.ops.cuda.cublas"), cublas_library.load().shim_handles
    before, during, results = handles(), [], []

    def work(value: float) -> None:
        x = simulated.full((2, 2), value)
        for _ in range(3):
            blas.gemm(x, x, out := simulated.empty((2, 2)))
        results.append(out.get()[0, 0])
        during.append(handles())

    work(1.0)
    threads = [threading.Thread(target=work, args=(2.0,)) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    assert results == [2, 8, 8]
    assert during == [before + 1, before + 2, before + 2]
    assert handles() == before + 1, "a thread that has ended leaves its handle"


def test_the_stream_is_set_where_it_has_changed(simulated):
    blas, workspaces = (
        importlib.import_module("rnnlab.ops.cuda.cublas"),
        cublas_library.load().shim_workspaces_set,
    )
    x = simulated.ones((2, 2))
    before, counts = workspaces(), []

    def multiply(times: int) -> None:
        for _ in range(times):
            blas.gemm(x, x, simulated.empty((2, 2)))
        counts.append(workspaces() - before)

    multiply(3)
    with simulated.cuda.Stream():
        multiply(3)
    multiply(3)
    assert counts == [1, 2, 3]


def test_streams(blas, device):
    x = device.ones((2, 2))
    with device.cuda.Stream() as stream:
        blas.gemm(x, x, x2 := device.empty((2, 2)))
    stream.synchronize()
    blas.gemm(x2, x, x3 := device.empty((2, 2)))
    assert (x3.get() == 4).all()


def test_products_that_wait_for_a_graph(simulated):
    blas, shim = importlib.import_module("rnnlab.ops.cuda.cublas"), cublas_library.load()
    x, out, places = simulated.ones((2, 2)), simulated.zeros((2, 2)), []
    callback = cublas_library.CALLBACK(lambda place: places.append(place) or 0)
    shim.shim_on_call(callback)
    blas.gemm(x, x, out)
    blas.gemm(out, x, out2 := simulated.zeros((2, 2)), 1.0)
    shim.shim_on_call(cublas_library.CALLBACK())
    assert (out.get() == 0).all()
    for _ in range(2):
        for place in places:
            assert not shim.shim_replay(place)
    assert (out.get() == 2).all()
    assert (out2.get() == 8).all()


@pytest.mark.parametrize("package", ["layers", "models", "decoding", "training"])
def test_what_is_above_multiplies_by_primitives(package):
    for path in sorted(Path(rnnlab.__file__).parent.joinpath(package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not isinstance(node, ast.MatMult), f"{path.name}: a product that no graph can capture"


# ---------------------------------------------------------------- bad input


def test_strides_that_cublas_cannot_read(blas, device):
    wide, fine, out = device.zeros((6, 8)), device.zeros((3, 4)), device.zeros((3, 3))
    for wrong in (wide[::2, ::2], wide[::-1][:3, :4]):
        with pytest.raises(
            ValueError, match=r"x w: x has shape \(3, 4\) and strides .* expected contiguous rows or"
        ):
            blas.gemm(wrong, fine.T, out)
        with pytest.raises(ValueError, match=r"x w: w has shape \(4, 3\) and strides"):
            blas.gemm(fine, wrong.T, out)
    repeated = device.broadcast_to(device.zeros(4), (3, 4))
    with pytest.raises(ValueError, match=r"x w: x has shape \(3, 4\) and strides \(0, 8\)"):
        blas.gemm(repeated, fine.T, out)
    with pytest.raises(ValueError, match=r"x w: out has shape \(3, 3\) and strides"):
        blas.gemm(fine, fine.T, wide[::2, ::2][:, :3])
    with pytest.raises(ValueError, match=r"x w: x has shape \(2, 3, 4\) and strides"):
        blas.batched(device.zeros((2, 6, 8))[:, ::2, ::2], fine.T)


def test_shapes_that_do_not_fit(ops, device):
    x, w = device.zeros((3, 4)), device.zeros((4, 5))
    with pytest.raises(ValueError, match=r"x w: x has shape \(4, 5\), w \(3, 4\) and out \(4, 4\)"):
        ops.matmul(w, x)
    for out in (device.zeros((3, 4)), device.zeros((1, 3, 5))):
        with pytest.raises(ValueError, match=r"x w: x has shape \(3, 4\), w \(4, 5\) and out "):
            ops.matmul_into(x, w, out)
    with pytest.raises(ValueError, match=r"x w: x has shape \(2, 3, 4\) and w \(3, 4, 5\)"):
        ops.matmul(device.zeros((2, 3, 4)), device.zeros((3, 4, 5)))
    with pytest.raises(ValueError, match=r"x w: x has shape \(2, 3, 4\) and w \(5, 4\)"):
        ops.matmul(device.zeros((2, 3, 4)), device.zeros((5, 4)))
    with pytest.raises(ValueError, match=r"w \(4,\), expected two or three axes"):
        ops.matmul(x, device.zeros(4))


def test_dtypes_that_do_not_fit(ops, blas, factors, device):
    x, single = device.zeros((3, 3)), device.zeros((3, 3), np.float32)
    for wrong in ((x, single, x), (single, x, x), (x, x, single), [device.zeros((3, 3), np.int64)] * 3):
        with pytest.raises(TypeError, match="x w: the arrays are .*, expected all float32 or all float64"):
            blas.gemm(*wrong)
    with pytest.raises(TypeError, match="x w: the arrays are float32, float64, expected"):
        ops.matmul(single[None], x)
    with pytest.raises(TypeError, match="x w: the arrays are float64, float32, float64"):
        blas.gemm(x, factors.rounded(single), x)


def test_a_product_on_another_gpu(simulated, monkeypatch):
    blas, x = importlib.import_module("rnnlab.ops.cuda.cublas"), simulated.zeros((2, 2))
    monkeypatch.setattr(simulated.cuda.runtime, "getDevice", lambda: 1)
    with pytest.raises(RuntimeError, match="x w: the arrays are on gpu:0, but this thread uses gpu:1"):
        blas.gemm(x, x, x.copy())


def test_what_cublas_reports(simulated, monkeypatch):
    blas, x = importlib.import_module("rnnlab.ops.cuda.cublas"), simulated.zeros((2, 2))
    callback = cublas_library.CALLBACK(lambda place: 13)
    cublas_library.load().shim_on_call(callback)
    with pytest.raises(RuntimeError, match="cublasGemmEx: CUBLAS_STATUS_EXECUTION_FAILED"):
        blas.gemm(x, x, x.copy())
    with pytest.raises(RuntimeError, match="cublasGemmStridedBatchedEx: CUBLAS_STATUS_EXECUTION_FAILED"):
        blas.batched(x[None], x)


def test_a_library_that_cannot_be_loaded(simulated, monkeypatch):
    blas, x = importlib.import_module("rnnlab.ops.cuda.cublas"), simulated.zeros((2, 2))
    monkeypatch.setattr(simulated.cuda.runtime, "runtimeGetVersion", lambda: 98_000)
    with pytest.raises(ImportError, match=r"libcublas.so.98, which CuPy uses, cannot be loaded: lib"):
        blas.gemm(x, x, x.copy())


def test_a_program_ends_without_a_word():
    code = (
        "from tests.simulated_cupy.install import installed\n"
        "with installed() as cupy:\n"
        "    from rnnlab.ops import cuda as cuda_ops\n"
        "    x = cupy.ones((2, 2))\n"
        "    saved = cuda_ops.matmul(x, x)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
