"""Every primitive on CuPy against the reference: on the stand-in everywhere, on a GPU where there is one."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

from rnnlab.ops import gpu_training
from rnnlab.ops import numpy as numpy_ops

from .. import test_attention as attention
from ..cases import (
    GATES,
    RULES,
    SCRATCH,
    SHAPES,
    TOLERANCE,
    WITHOUT_MASKS,
    cell_arguments,
    run_regularised,
    step_masks,
)

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture
def ops(device):
    """The primitives, with the device that they work on."""
    return importlib.import_module("rnnlab.ops.cuda")


@pytest.fixture
def normal(rng, dtype):
    return lambda *shape: rng.standard_normal(shape).astype(dtype)


def results(ops, name, arguments, options, captured=False):
    """What a primitive returns, and its arrays afterwards, as NumPy's; done at once, or by a graph."""
    arguments = [ops.asarray(a.copy()) if isinstance(a, np.ndarray) else a for a in arguments]
    made = []

    def work():
        made.append(getattr(ops, name)(*arguments, **options))

    if captured:
        training = gpu_training()
        training.Graph(work, training.GraphMemory()).launch(np.random.default_rng(0), work)
    else:
        work()
    (returned,) = made
    returned = returned if isinstance(returned, tuple) else (returned,)
    arrays = [a for k, a in enumerate(arguments) if hasattr(a, "shape") and k != SCRATCH.get(name)]
    return [ops.asnumpy(a) if hasattr(a, "shape") else a for a in (*returned, *arrays)]


def assert_same(ops, name, arguments, **options):
    dtype = next(a.dtype.type for a in arguments if isinstance(a, np.ndarray) and a.dtype.kind == "f")
    with np.errstate(invalid="ignore", over="ignore"):
        expected = results(numpy_ops, name, arguments, options)
    for captured in (False, True):  # in this order: the first compiles what the second needs
        for a, e in zip(results(ops, name, arguments, options, captured), expected, strict=True):
            if e is None:
                assert a is None
                continue
            assert np.shape(a) == np.shape(e)
            assert np.asarray(a).dtype == np.asarray(e).dtype
            np.testing.assert_allclose(a, e, **TOLERANCE[dtype])


def test_nobody_imports_cupy_before_it_is_needed():
    code = "import sys, rnnlab.models, rnnlab.training; assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ---------------------------------------------------------------- numbers


@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", WITHOUT_MASKS)
def test_cells(name, shape, ops, dtype, normal):
    assert_same(ops, name, cell_arguments(name, *shape, normal))


@every_dtype
@pytest.mark.parametrize("name", WITHOUT_MASKS)
def test_cells_do_not_swallow_what_is_not_finite(name, ops, dtype, normal):
    arguments = cell_arguments(name, 4, 20, normal)
    for k, array in enumerate(arguments):
        spoilt = [a.copy() for a in arguments]
        spoilt[k][array.shape[0] // 2, ::3] = np.nan
        assert_same(ops, name, spoilt)


@every_dtype
@pytest.mark.parametrize("shape", attention.SHAPES, ids=str)
@pytest.mark.parametrize("name", attention.NAMES)
def test_attention(name, shape, ops, dtype, rng):
    arguments = attention.arguments_of(name, shape, rng, dtype)
    expected = attention.run(numpy_ops, name, arguments)
    given = {key: ops.asarray(array.copy()) for key, array in arguments.items()}
    getattr(ops, name)(**given)
    tolerance = attention.TOLERANCE[dtype]
    for key, array in given.items():
        np.testing.assert_allclose(ops.asnumpy(array), expected[key], **tolerance, err_msg=key)


@every_dtype
@pytest.mark.parametrize("name", attention.NAMES)
def test_attention_to_the_first_slots_of_wider_arrays(name, ops, dtype, rng):
    arguments = attention.arguments_of(name, (3, 5, 4, 6), rng, dtype)
    narrow = {"slots", "weights", "dscores"}
    cut = {key: array[:, :2] if key in narrow else array for key, array in arguments.items()}
    expected = attention.run(numpy_ops, name, cut)
    given = {key: ops.asarray(array.copy()) for key, array in arguments.items()}
    views = {key: array[:, :2] if key in narrow else array for key, array in given.items()}
    getattr(ops, name)(**views)
    for key, array in views.items():
        actual = ops.asnumpy(array)
        np.testing.assert_allclose(actual, expected[key], **attention.TOLERANCE[dtype], err_msg=key)
    for key in narrow & set(given):
        np.testing.assert_array_equal(ops.asnumpy(given[key])[:, 2:], arguments[key][:, 2:])


@every_dtype
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (3, 1000), (64, 33), (0, 4)], ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax(smoothing, shape, ops, dtype, rng, normal):
    scores, targets = 10 * normal(*shape), rng.integers(shape[1], size=shape[0])
    assert_same(ops, "softmax_cross_entropy", [scores, targets, 0.25, np.empty_like(scores), smoothing])
    assert_same(ops, "log_softmax", [scores])
    apart, in_place = ops.empty(shape, dtype), ops.asarray(scores)
    ops.softmax_cross_entropy(in_place, ops.asarray(targets), 0.25, apart, smoothing)
    ops.softmax_cross_entropy(in_place, ops.asarray(targets), 0.25, in_place, smoothing)
    np.testing.assert_array_equal(ops.asnumpy(in_place), ops.asnumpy(apart))


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_softmax_does_not_swallow_what_is_not_finite(bad, ops, dtype, normal):
    scores = normal(3, 40)
    scores[1, 17] = bad
    assert_same(ops, "softmax_cross_entropy", [scores, np.array([0, 1, 2]), 1.0, np.empty_like(scores), 0.1])
    assert_same(ops, "log_softmax", [scores])


@every_dtype
@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 1, 1), (2, 3, 4), (4, 600, 6), (0, 4, 2)], ids=str)
def test_top(shape, ops, dtype, rng, normal):
    n, V, count = shape
    scores = normal(n, V)
    scores[rng.random((n, V)) < 0.3] = 0.5  # equals
    scores[rng.random((n, V)) < 0.1] = -np.inf
    assert_same(ops, "top", [scores, count])
    scores[: n // 2, V // 2] = np.nan
    assert_same(ops, "top", [scores, count])


@every_dtype
@pytest.mark.parametrize("shape", [(50, 5), (1, 1), (300, 130), (0, 3)], ids=str)
def test_rows(shape, ops, dtype, rng, normal):
    M, W = shape
    assert_same(ops, "embedding_gradient", [normal(M, W), rng.integers(11, size=M), normal(11, W)])
    assert_same(ops, "take", [normal(7, W), rng.integers(7, size=M), normal(M, W)])
    assert_same(ops, "put", [normal(M, W), rng.permutation(2 * M)[:M], normal(2 * M, W)])
    x, left = normal(M, W), W // 2
    out = ops.asarray(normal(M, W))
    expected = ops.asnumpy(out).copy()
    ops.take(ops.asarray(x)[:, left:], ops.asarray(np.arange(M)[::-1].copy()), out[:, left:])
    expected[:, left:] = x[::-1, left:]
    np.testing.assert_array_equal(ops.asnumpy(out), expected)


@every_dtype
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (0, 4, 5), (3, 0, 5), (3, 4, 0)], ids=str)
def test_products(shape, ops, dtype, normal):
    M, K, N = shape
    x, w, out = normal(M, K), normal(K, N), normal(M, N)
    assert_same(ops, "matmul", [x, w])
    assert_same(ops, "affine", [x, w, normal(N)])
    assert_same(ops, "affine_into", [x, w, normal(N), out])
    assert_same(ops, "matmul_into", [x, w, out])
    assert_same(ops, "matmul_add", [x, w, out])
    assert_same(ops, "add_column_sums", [x, normal(K)])
    if x.size and w.size:
        transposed = ops.asarray(normal(K, M)).T
        added = ops.asarray(out)
        ops.matmul_add(transposed, ops.asarray(w), added)
        expected = out + ops.asnumpy(transposed) @ w
        np.testing.assert_allclose(ops.asnumpy(added), expected, **TOLERANCE[dtype])


@every_dtype
@pytest.mark.parametrize("shape", [*SHAPES, (40, 1000)], ids=str)
@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_masks_in_the_same_places(seed, shape, ops, dtype, normal):
    x, other = normal(*shape), normal(*shape)
    for name, arguments in (
        ("dropout", [x, 0.3, seed, other]),
        ("dropout_mask", [0.15, seed, 12345, other]),
    ):
        for a, e in zip(
            results(ops, name, arguments, {}), results(numpy_ops, name, arguments, {}), strict=True
        ):
            np.testing.assert_array_equal(a, e, err_msg=name)


@every_dtype
def test_masks_of_an_out_that_is_not_contiguous(ops, dtype, normal):
    x, wide = normal(3, 8), ops.zeros((3, 8), dtype)
    expected = np.empty((3, 4), dtype)
    numpy_ops.dropout(x[:, ::2], 0.3, 5, expected)
    ops.dropout(ops.asarray(x)[:, ::2], 0.3, 5, wide[:, ::2])
    np.testing.assert_array_equal(ops.asnumpy(wide[:, ::2]), expected)
    numpy_ops.dropout_mask(0.3, 5, 7, expected)
    ops.dropout_mask(0.3, 5, 7, wide[:, ::2])
    np.testing.assert_array_equal(ops.asnumpy(wide[:, ::2]), expected)
    assert not ops.asnumpy(wide)[:, 1::2].any()


SEEDS = [11, 2**63 - 1, (5 << 32) + 7]


def placed(seeds):
    """Seeds that kernels must read from memory, since the numbers that they are passed are others."""
    graphs = importlib.import_module("rnnlab.ops.cuda.graphs")
    graph = graphs.Parameters()
    others = [graphs.Seed(seed ^ 1) for seed in seeds]
    for other, seed in zip(others, graph.seeds(seeds), strict=True):
        other.address = seed.address
    graph.send()
    return others


@every_dtype
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (130, 70), (0, 4)], ids=str)
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("seeds", ["numbers", "addresses", "inference"])
def test_regularised_steps(seeds, cell, shape, ops, dtype):
    for masks in step_masks(cell):
        drawn = masks._replace(seeds=None if seeds == "inference" else SEEDS, start=12345)
        given = drawn._replace(seeds=placed(SEEDS)) if seeds == "addresses" else drawn
        expected = run_regularised(numpy_ops, cell, *shape, drawn, np.random.default_rng(3), dtype)
        found = run_regularised(ops, cell, *shape, given, np.random.default_rng(3), dtype)
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], **TOLERANCE[dtype], err_msg=f"{name}, {masks}")


@every_dtype
@pytest.mark.parametrize("cell", GATES)
def test_one_launch_for_a_regularised_step(cell, simulated, dtype):
    ops, masks = importlib.import_module("rnnlab.ops.cuda"), step_masks(cell)[-1]._replace(seeds=SEEDS)
    simulated.launches.clear()
    run_regularised(ops, cell, 5, 3, masks, np.random.default_rng(3), dtype)
    assert simulated.launches == {f"{cell}_regularised_forward": 1, f"{cell}_regularised_backward": 1}


@every_dtype
@pytest.mark.parametrize("size", [1, 1000, 70_003])
@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize("name", RULES)
def test_update_rules(name, size, scale, ops, dtype, normal):
    slots, options = RULES[name]
    arrays = [normal(size), normal(size), *(abs(normal(size)) for _ in range(slots))]
    assert_same(ops, name, arrays, learning_rate=0.1, scale=scale, **options)


@every_dtype
@pytest.mark.parametrize("size", [0, 1, 70_001])
def test_what_the_solver_asks_of_a_gradient(size, ops, dtype, normal):
    x = normal(size)
    assert_same(ops, "clip_values", [x, 0.5])
    squares = float(ops.sum_of_squares(ops.asarray(x)))
    assert squares == pytest.approx(float((x.astype(float) ** 2).sum()), rel=1e-12)
    assert squares == float(ops.sum_of_squares(ops.asarray(x)))
    assert ops.first_non_finite(ops.asarray(x)) is None
    if size:
        x[size // 2] = np.nan
        assert not np.isfinite(float(ops.sum_of_squares(ops.asarray(x))))
        assert ops.first_non_finite(ops.asarray(x)) == size // 2
        assert_same(ops, "clip_values", [x, 0.5])


def test_the_rest(ops):
    x = ops.asarray(np.array([-2.0, 0.0, 3.0]))
    np.testing.assert_allclose(ops.asnumpy(ops.sigmoid(x)), numpy_ops.sigmoid(ops.asnumpy(x)))
    np.testing.assert_allclose(ops.asnumpy(ops.tanh(x)), np.tanh([-2.0, 0.0, 3.0]))
    np.testing.assert_array_equal(ops.asnumpy(ops.zeros((2, 1), np.float32)), [[0], [0]])


# ---------------------------------------------------------------- bad input


def test_an_array_of_another_gpu_than_the_one_in_use(simulated, monkeypatch):
    ops = importlib.import_module("rnnlab.ops.cuda")
    x = ops.zeros((2, 3))
    monkeypatch.setattr(simulated.cuda.runtime, "getDevice", lambda: 1)
    with pytest.raises(RuntimeError, match="rnn_forward: the arrays are on gpu:0, but this thread"):
        ops.rnn_forward(x, x)


def test_an_array_that_no_kernel_takes(ops):
    wide = ops.zeros((3, 8))
    with pytest.raises(ValueError, match="expected a C-contiguous array, got strides"):
        ops.rnn_forward(wide[:, ::2], ops.zeros((3, 4)))
    with pytest.raises(ValueError, match="expected rows with contiguous columns, got strides"):
        ops.take(wide[:, ::2], ops.asarray(np.zeros(3, np.int64)), ops.zeros((3, 4)))
