"""Compiled softmax, its losses and the largest scores against the reference."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops

from ..cases import TOLERANCE, assert_drawn
from .compare import assert_same, assert_same_arguments, every_dtype, read_only, strided


def test_a_kernel_has_the_arguments_of_the_reference():
    assert_same_arguments("log_softmax")
    assert_same_arguments("top")
    assert_same_arguments("draw")


@every_dtype
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (3, 1000), (64, 33), (0, 4)], ids=str)
@pytest.mark.parametrize("integer", [np.int64, np.int32])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax(smoothing, shape, dtype, integer, rng, normal):
    scores, targets = 10 * normal(*shape), rng.integers(shape[1], size=shape[0]).astype(integer)
    assert_same("softmax_cross_entropy", [scores, targets, 0.25, np.empty_like(scores), smoothing])
    assert_same("log_softmax", [scores])
    assert_same("log_softmax", [scores, np.empty_like(scores)])
    in_place = scores.copy()
    assert numba_ops.log_softmax(in_place, out=in_place) is in_place
    np.testing.assert_allclose(in_place, numba_ops.log_softmax(scores), **TOLERANCE[dtype])
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
def test_nan_and_infinity_propagate(smoothing, bad, dtype, normal):
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


@every_dtype
@pytest.mark.parametrize(
    "shape", [(5, 7, 3), (1, 1, 1), (2, 3, 4), (4, 600, 6), (40, 2541, 4), (0, 4, 2), (3, 64, 64)], ids=str
)
def test_top(shape, dtype, rng, normal):
    n, V, count = shape
    scores = normal(n, V)
    scores[rng.random((n, V)) < 0.3] = 0.5  # equals
    scores[rng.random((n, V)) < 0.1] = -np.inf
    scores[1:2] = -np.inf
    assert_same_top(scores, count)
    scores[: n // 2, V // 2 :: 5] = np.nan
    assert_same_top(scores, count)
    assert_same_top(np.sort(scores, axis=1), count)


@every_dtype
@pytest.mark.parametrize("temperature", [1.0, 0.3, 1e-320, 1e38, 1e308])
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (400, 2541), (3, 64), (3, 65), (0, 4)], ids=str)
def test_draws(shape, temperature, dtype, rng, normal):
    n, V = shape
    scores = 3 * normal(n, V)
    scores[rng.random((n, V)) < 0.3] = -np.inf
    scores[1:2] = -np.inf
    uniform = rng.random(n)
    uniform[::3], uniform[1::3] = 0.0, np.nextafter(1.0, 0)
    columns = numba_ops.draw(scores, uniform, temperature)
    assert columns.shape == (n,)
    assert_drawn(scores, uniform, temperature, columns)


@every_dtype
def test_draws_of_nan(dtype, normal):
    scores, uniform = normal(3, 300), np.array([0.1, 0.5, 0.9])
    scores[1, [70, 299]] = np.nan
    assert numba_ops.draw(scores, uniform)[1] == 70


@pytest.mark.usefixtures("lenient")
@every_dtype
def test_draws_of_scores_in_any_layout(dtype, rng, normal):
    scores, uniform = normal(4, 9), rng.random(4)
    expected = numba_ops.draw(scores, uniform)
    for view in (strided, read_only):
        np.testing.assert_array_equal(numba_ops.draw(view(scores), view(uniform)), expected)


@pytest.mark.usefixtures("lenient")
@every_dtype
def test_top_of_strided_scores(dtype, normal):
    assert_same_top(normal(4, 9), 3, view=strided)


@pytest.mark.usefixtures("lenient")
@every_dtype
def test_top_of_scores_that_are_read_only(dtype, normal):
    assert_same_top(normal(4, 9), 3, view=read_only)


def test_strided_scores_are_refused_where_layouts_are_strict():
    scores = strided(np.ones((4, 9)))
    for call in (lambda: numba_ops.top(scores, 2), lambda: numba_ops.draw(scores, np.full(4, 0.5))):
        with pytest.raises(TypeError, match="scores strided"):
            call()


def assert_same_top(scores, count, view=np.asarray):
    saved = scores.copy()
    expected = numpy_ops.top(scores, count)
    for found, right in zip(numba_ops.top(view(scores), count), expected, strict=True):
        assert found.dtype == right.dtype
        np.testing.assert_array_equal(found, right)
    np.testing.assert_array_equal(scores, saved)


@pytest.mark.parametrize("target", [-1, 9])
def test_a_target_out_of_range(target):
    scores = np.zeros((2, 9), np.float32)
    with pytest.raises(
        IndexError,
        match=r"softmax_cross_entropy: targets has indices from -?\d to \d, expected indices from 0 to 8",
    ):
        numba_ops.softmax_cross_entropy(scores, np.array([0, target]), 1.0, scores)
