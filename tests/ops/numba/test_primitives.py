"""Every fused primitive against the reference, on arrays of every kind that layers pass."""

import inspect

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import rnnlab.ops
from rnnlab.gradcheck import run as gradcheck
from rnnlab.gradcheck.cases import layer_cases
from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import kernel

from ..cases import (
    CELLS,
    GATES,
    RULES,
    SCRATCH,
    SHAPES,
    TOLERANCE,
    cell_arguments,
    named,
    run_regularised,
    step_masks,
)

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def run(ops, name, arguments, options, view=np.copy):
    """The result and the arrays, which the primitive may have written."""
    arguments = [view(a) if isinstance(a, np.ndarray) else a for a in arguments]
    result = named(ops, name)(*arguments, **options)
    arrays = [a for k, a in enumerate(arguments) if isinstance(a, np.ndarray) and k != SCRATCH.get(name)]
    return [result, *arrays]


def assert_same(name, arguments, options=None, view=np.copy):
    options = options or {}
    dtype = next(a.dtype.type for a in arguments if isinstance(a, np.ndarray))
    with np.errstate(invalid="ignore", over="ignore"):
        expected = run(numpy_ops, name, arguments, options)
    actual = run(numba_ops, name, arguments, options, view)
    for a, e in zip(actual, expected, strict=True):
        if e is None:
            assert a is None
            continue
        assert np.shape(a) == np.shape(e)
        assert np.asarray(a).dtype == np.asarray(e).dtype
        np.testing.assert_allclose(a, e, **TOLERANCE.get(dtype, {"rtol": 1e-2}))


def strided(a):
    """The same numbers, every second column of a wider array."""
    wide = np.full((*a.shape[:-1], 2 * a.shape[-1]), 7, a.dtype)
    wide[..., ::2] = a
    return wide[..., ::2]


def read_only(a):
    copy = a.copy()
    copy.flags.writeable = False
    return copy


@pytest.fixture
def lenient(monkeypatch):
    """What no kernel takes goes to NumPy."""
    monkeypatch.delenv("RNNLAB_STRICT")


@pytest.fixture
def normal(rng, dtype):
    return lambda *shape: rng.standard_normal(shape).astype(dtype)


# ---------------------------------------------------------------- the same names, arguments and numbers


@pytest.mark.parametrize("name", [*CELLS, *RULES, "clip_values", "flush_subnormals", "log_softmax"])
def test_a_kernel_has_the_arguments_of_the_reference(name):
    fused = named(numba_ops, name).fused
    function = fused.function if isinstance(fused, kernel.Kernel) else fused
    assert list(inspect.signature(function).parameters) == list(
        inspect.signature(named(numpy_ops, name)).parameters
    )


@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CELLS)
def test_cells(name, shape, dtype, normal):
    assert_same(name, cell_arguments(name, *shape, normal))


@pytest.mark.usefixtures("lenient")
@every_dtype
@pytest.mark.parametrize("name", CELLS)
def test_cells_on_arrays_that_no_kernel_takes(name, dtype, normal):
    arguments = cell_arguments(name, 5, 7, normal)
    assert_same(name, arguments, view=strided)
    assert_same(name, arguments, view=lambda a: np.asfortranarray(a))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("dtype", [np.float16])
def test_cells_in_half_precision(name, dtype, normal):
    for ops in (numpy_ops, numba_ops):
        with pytest.raises(
            TypeError, match=f"{name}: [a-z_]* has dtype float16, expected float32 or float64"
        ):
            named(ops, name)(*cell_arguments(name, 3, 5, normal))


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", CELLS)
def test_cells_do_not_swallow_what_is_not_finite(name, bad, dtype, normal):
    arguments = cell_arguments(name, 4, 20, normal)
    for k, array in enumerate(arguments):
        spoilt = [a.copy() for a in arguments]
        spoilt[k][array.shape[0] // 2, :: array.shape[1] // 9 + 1] = bad
        assert_same(name, spoilt)


@every_dtype
def test_a_state_may_lie_in_one_array_with_the_next(dtype, normal):
    states, gates, tanh_c = normal(9, 6), normal(3, 24), normal(3, 6)
    expected = states.copy()
    numpy_ops.lstm_forward(gates.copy(), expected[:3], expected[3:6], tanh_c.copy(), expected[6:])
    numba_ops.lstm_forward(gates.copy(), states[:3], states[3:6], tanh_c, states[6:])
    np.testing.assert_allclose(states, expected, **TOLERANCE[dtype])


# ---------------------------------------------------------------- scores and words


@every_dtype
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (3, 1000), (64, 33), (0, 4)], ids=str)
@pytest.mark.parametrize("integer", [np.int64, np.int32])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax(smoothing, shape, dtype, integer, rng, normal):
    scores, targets = 10 * normal(*shape), rng.integers(shape[1], size=shape[0]).astype(integer)
    assert_same("softmax_cross_entropy", [scores, targets, 0.25, np.empty_like(scores), smoothing])
    assert_same("log_softmax", [scores])
    in_place, dscores = scores.copy(), np.empty_like(scores)
    losses = numba_ops.softmax_cross_entropy(scores, targets, 0.25, dscores, smoothing)
    np.testing.assert_allclose(
        numba_ops.softmax_cross_entropy(in_place, targets, 0.25, in_place, smoothing),
        losses,
        **TOLERANCE[dtype],
    )
    np.testing.assert_allclose(in_place, dscores, **TOLERANCE[dtype])


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax_does_not_swallow_what_is_not_finite(smoothing, bad, dtype, normal):
    scores = normal(3, 40)
    scores[1, 17] = bad
    assert_same("softmax_cross_entropy", [scores, np.array([0, 1, 2]), 1.0, np.empty_like(scores), smoothing])
    assert_same("log_softmax", [scores])


@pytest.mark.usefixtures("lenient")
@every_dtype
def test_softmax_of_strided_scores(dtype, normal):
    scores, targets = normal(4, 9), np.array([0, 8, 3, 3])
    assert_same("softmax_cross_entropy", [scores, targets, 1.0, np.empty_like(scores), 0.1], view=strided)
    assert_same("log_softmax", [scores], view=strided)
    assert_same("log_softmax", [scores], view=read_only)


@pytest.mark.parametrize("target", [-1, 9])
def test_a_target_out_of_range(target):
    scores = np.zeros((2, 9), np.float32)
    with pytest.raises(
        IndexError,
        match=r"softmax_cross_entropy: targets has indices from -?\d to \d, expected indices from 0 to 8",
    ):
        numba_ops.softmax_cross_entropy(scores, np.array([0, target]), 1.0, scores)


@every_dtype
@pytest.mark.parametrize("shape", [(50, 5), (1, 1), (300, 130), (0, 3)], ids=str)
def test_embedding_gradient(shape, dtype, rng, normal):
    tokens = rng.integers(11, size=shape[0])
    assert_same("embedding_gradient", [normal(*shape), tokens, normal(11, shape[1])])
    assert_same("embedding_gradient", [normal(*shape), strided(tokens), normal(11, shape[1])])


@pytest.mark.parametrize("token", [-1, 11])
def test_a_token_out_of_range(token):
    with pytest.raises(
        IndexError, match="embedding_gradient: tokens has indices .*, expected indices from 0 to 10"
    ):
        numba_ops.embedding_gradient(np.zeros((1, 3)), np.array([token]), np.zeros((11, 3)))


@every_dtype
@pytest.mark.parametrize("shape", [(30, 40), (3, 4, 5), (0, 3), (40, 1000)], ids=str)
@pytest.mark.parametrize("seed", [0, 12345678901234567, 2**63 - 1])
def test_dropout_of_the_same_places(seed, shape, dtype):
    x = np.random.default_rng(5).standard_normal(shape).astype(dtype)
    outs = np.empty(shape, dtype), np.empty(shape, dtype)
    for ops, out in zip((numba_ops, numpy_ops), outs, strict=True):
        ops.dropout(x, 0.3, seed, out)
    np.testing.assert_array_equal(*outs)
    out = strided(np.zeros(shape, dtype))  # and of one that is not contiguous
    numba_ops.dropout(strided(x), 0.3, seed, out)
    np.testing.assert_array_equal(out, outs[1])


@pytest.mark.usefixtures("lenient")
@every_dtype
@pytest.mark.parametrize("shape", [*SHAPES, (40, 1000)], ids=str)
@pytest.mark.parametrize("start", [0, 12345])
@pytest.mark.parametrize("view", [np.copy, strided])
def test_masks_from_a_start_on(view, start, shape, dtype):
    numbers = np.random.default_rng(5)
    a, b = (numbers.standard_normal(shape).astype(dtype) for _ in range(2))
    for name in ("zoneout_forward", "zoneout_backward"):
        actual, expected = (
            run(ops, name, [a, 0.15, 2**63 - 1, start, b], {}, how)
            for ops, how in ((numba_ops, view), (numpy_ops, np.copy))
        )
        np.testing.assert_array_equal(actual[1], expected[1])
        np.testing.assert_array_equal(actual[2], expected[2])
    masks = view(np.zeros(shape, dtype)), np.empty(shape, dtype)
    for ops, mask in zip((numba_ops, numpy_ops), masks, strict=True):
        ops.dropout_mask(0.15, 2**63 - 1, start, mask)
    np.testing.assert_array_equal(*masks)


@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("seeds", [None, [5, 2**63 - 1, 7]], ids=["inference", "seeds"])
def test_regularised_steps(seeds, cell, shape, dtype):
    for masks in step_masks(cell):
        masks = masks._replace(seeds=seeds, start=12345)
        actual, expected = (
            run_regularised(ops, cell, *shape, masks, np.random.default_rng(5), dtype)
            for ops in (numba_ops, numpy_ops)
        )
        for name, array in actual.items():
            np.testing.assert_allclose(array, expected[name], **TOLERANCE[dtype], err_msg=f"{name}, {masks}")


# ---------------------------------------------------------------- update rules


@pytest.mark.usefixtures("lenient")
@every_dtype
@pytest.mark.parametrize("size", [1, 1000, 100_003])
@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize("name", RULES)
def test_update_rules(name, size, scale, dtype, normal):
    slots, options = RULES[name]
    arrays = [normal(size), normal(size), *(abs(normal(size)) for _ in range(slots))]
    assert_same(name, arrays, {"learning_rate": 0.1, "scale": scale, **options})
    if size == 1000:
        assert_same(name, arrays, {"learning_rate": 0.1, "scale": scale, **options}, view=strided)


@every_dtype
@pytest.mark.parametrize("size", [0, 1, 70_001])
def test_what_the_solver_asks_of_a_gradient(size, dtype, normal):
    x = normal(size)
    assert_same("clip_values", [x, 0.5])
    assert_same("flush_subnormals", [x * np.finfo(dtype).tiny])
    assert numba_ops.sum_of_squares(x) == pytest.approx(float((x.astype(float) ** 2).sum()), rel=1e-6)
    assert numba_ops.sum_of_squares(x) == numba_ops.sum_of_squares(x.copy())


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_sums_and_clipping_show_what_is_not_finite(bad, dtype, normal):
    x = normal(50_000)
    x[33_333] = bad
    assert not np.isfinite(numba_ops.sum_of_squares(x))
    assert_same("clip_values", [x, 0.5])


# ---------------------------------------------------------------- as a whole


@pytest.mark.parametrize("ops", [numpy_ops, numba_ops], ids=["numpy", "fused"])
def test_every_layer_against_numeric_gradients(ops, monkeypatch):
    monkeypatch.setattr(rnnlab.ops, "_for_numpy", lambda: rnnlab.ops._Choice(ops, ""))
    rng = np.random.default_rng(0)
    rows = [gradcheck.check_case(case, tolerance=1e-7, rng=rng) for case in layer_cases(rng)]
    assert len(rows) > 20
    assert [row for row in rows if not row.error <= 1e-7] == []
