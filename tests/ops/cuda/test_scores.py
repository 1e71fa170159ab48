"""Softmax and the largest scores on CuPy against the reference."""

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops

from ..cases import assert_drawn
from .compare import assert_same, every_dtype


@pytest.mark.usefixtures("blocks")
@every_dtype
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (3, 1000), (64, 33), (0, 4)], ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax(smoothing, shape, ops, dtype, rng, normal):
    scores, targets = 10 * normal(*shape), rng.integers(shape[1], size=shape[0])
    assert_same(ops, "softmax_cross_entropy", [scores, targets, 0.25, np.empty_like(scores), smoothing])
    assert_same(ops, "log_softmax", [scores])
    assert_same(ops, "log_softmax", [scores, np.empty_like(scores)])
    in_place = ops.asarray(scores)
    assert ops.log_softmax(in_place, out=in_place) is in_place
    np.testing.assert_array_equal(ops.asnumpy(in_place), ops.asnumpy(ops.log_softmax(ops.asarray(scores))))
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


def test_a_scale_of_a_wrong_shape_or_dtype(ops):
    """The kernel would read past its end."""
    scores, targets = ops.asarray(np.zeros((3, 4), np.float32)), ops.asarray(np.array([0, 1, 2]))
    for scale, message in (
        (np.ones(2, np.float32), r"scale has shape \(2,\), expected a number or \(M,\) = \(3,\)"),
        (np.ones(3), "scale has dtype float64, expected float32 as scores has"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"softmax_cross_entropy: {message}"):
            ops.softmax_cross_entropy(scores, targets, ops.asarray(scale), scores)


@pytest.mark.usefixtures("blocks")
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
def test_top_of_strided_scores(ops, dtype, normal):
    scores = normal(9, 4)
    for found, right in zip(ops.top(ops.asarray(scores).T, 3), numpy_ops.top(scores.T, 3), strict=True):
        np.testing.assert_array_equal(ops.asnumpy(found), right)


@pytest.mark.usefixtures("blocks")
@every_dtype
@pytest.mark.parametrize("temperature", [1.0, 0.3, 1e-320])
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (4, 600), (3, 64), (3, 65), (0, 4)], ids=str)
def test_draws(shape, temperature, ops, dtype, rng, normal):
    n, V = shape
    scores = 3 * normal(n, V)
    scores[rng.random((n, V)) < 0.3] = -np.inf
    scores[1:2] = -np.inf
    uniform = rng.random(n)
    uniform[::3], uniform[1::3] = 0.0, np.nextafter(1.0, 0)
    columns = ops.asnumpy(ops.draw(ops.asarray(scores), ops.asarray(uniform), temperature))
    assert columns.shape == (n,)
    assert_drawn(scores, uniform, temperature, columns)


@every_dtype
def test_draws_of_nan(ops, dtype, normal):
    scores, uniform = normal(3, 300), np.array([0.1, 0.5, 0.9])
    scores[1, [70, 299]] = np.nan
    assert ops.asnumpy(ops.draw(ops.asarray(scores), ops.asarray(uniform)))[1] == 70
