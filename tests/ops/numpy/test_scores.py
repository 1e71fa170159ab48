"""Softmax and the largest scores on NumPy against their formulas."""

import numpy as np
import pytest

from rnnlab.ops import numpy as ops
from rnnlab.ops.numpy import scores as module

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def plain_cross_entropy(scores, targets, smoothing=0.0):
    V = scores.shape[1]
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    q = (1 - smoothing) * np.eye(V)[targets] + smoothing / V
    return -(q * np.log(p)).sum(axis=1), p - q


@pytest.mark.parametrize("per_block", [0.5, 1, 3, 100], ids=lambda rows: f"{rows} rows a block")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax_cross_entropy_block_by_block(smoothing, per_block, rng, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", int(per_block * 6))
    scores, targets = rng.standard_normal((10, 6)), rng.integers(6, size=10)
    saved, dscores = scores.copy(), np.full((10, 6), np.nan)
    losses = ops.softmax_cross_entropy(scores, targets, 0.5, dscores, smoothing)
    expected, d = plain_cross_entropy(scores, targets, smoothing)
    assert_close(losses, expected)
    assert_close(dscores, 0.5 * d)
    np.testing.assert_array_equal(scores, saved)
    np.testing.assert_array_equal(ops.softmax_cross_entropy(scores, targets, 0.5, scores, smoothing), losses)
    np.testing.assert_array_equal(scores, dscores)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_scale_for_each_row(backend, rng):
    """It may be in the memory of the result; a wrong one leaves the result as it was."""
    primitive = pytest.importorskip(f"rnnlab.ops.{backend}").softmax_cross_entropy
    scores, targets = rng.standard_normal((3, 4)), np.array([0, 1, 2])
    expected, found = np.empty((3, 4)), np.full((3, 4), 0.5)
    primitive(scores, targets, np.full(3, 0.5), expected)
    primitive(scores, targets, found[:, 3], found)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    for scale, message in (
        (np.ones(2), r"scale has shape \(2,\), expected a number or \(M,\) = \(3,\)"),
        (np.ones((3, 1)), r"scale has shape \(3, 1\)"),
        (np.ones(3, complex), "scale has dtype complex128, expected float32 or float64"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"softmax_cross_entropy: {message}"):
            primitive(scores, targets, scale, found)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_softmax_cross_entropy_of_more_rows_than_a_block(rng):
    V = 1000
    M = 2 * (module._BLOCK // V) + 3
    scores, targets = rng.standard_normal((M, V)), rng.integers(V, size=M)
    dscores = np.empty_like(scores)
    losses = ops.softmax_cross_entropy(scores, targets, 1.0, dscores)
    expected, d = plain_cross_entropy(scores, targets)
    assert_close(losses, expected)
    assert_close(dscores, d)


@every_dtype
def test_large_scores(dtype):
    scores = np.array([[3e4, 0, -3e4], [0, 3e4, 3e4]], dtype)
    dscores = np.empty_like(scores)
    losses = ops.softmax_cross_entropy(scores, np.array([2, 1]), 1.0, dscores)
    np.testing.assert_allclose(losses, [6e4, np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(dscores, [[1, 0, -1], [0, -0.5, 0.5]])
    np.testing.assert_allclose(
        ops.log_softmax(scores), [[0, -3e4, -6e4], [-3e4 - np.log(2), -np.log(2), -np.log(2)]], rtol=1e-6
    )


@every_dtype
def test_log_softmax(dtype, rng):
    scores = rng.standard_normal((4, 6)).astype(dtype)
    saved = scores.copy()
    out = ops.log_softmax(scores)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, np.log(np.exp(scores) / np.exp(scores).sum(axis=1)[:, None]), rtol=1e-5)
    np.testing.assert_array_equal(scores, saved)
    assert ops.log_softmax(np.ones((0, 6))).shape == (0, 6)
    assert ops.log_softmax(scores, out=scores) is scores
    np.testing.assert_array_equal(scores, out)
    with pytest.raises(ValueError, match="log_softmax: .*overlap"):
        ops.log_softmax(scores[1:], out=scores[:-1])


def test_draws_by_hand():
    scores, nothing = np.log([[0.2, 0.5, 0.3]]), -np.inf
    for uniform, column in ((0.0, 0), (0.19, 0), (0.21, 1), (0.69, 1), (0.71, 2), (1 - 1e-16, 2)):
        assert ops.draw(scores, np.array([uniform])) == [column]
        assert ops.draw(scores + 1e4, np.array([uniform])) == [column]
    squares = np.array([0.04, 0.25, 0.09]) / 0.38
    for uniform, column in ((squares[0] + 0.01, 1), (1 - squares[2] - 0.01, 1), (1 - squares[2] + 0.01, 2)):
        assert ops.draw(scores, np.array([uniform]), 0.5) == [column]
    rare = np.array([[nothing, 0.0, nothing], [nothing] * 3, [0.0, np.nan, 1.0]])
    for uniform in (0.0, 0.5, 1 - 1e-16):
        np.testing.assert_array_equal(ops.draw(rare, np.full(3, uniform)), [1, 2, 1])
    assert ops.draw(np.zeros((0, 3)), np.zeros(0)).shape == (0,)


def test_draws_of_many_rare_columns():
    """Each adds less to the sum of probabilities than float32 can hold."""
    scores = np.full((1, 10_001), np.log(5e-8), np.float32)
    scores[0, 0] = 0
    assert ops.draw(scores, np.array([0.9999])) == pytest.approx(8000, abs=5)


def test_top_of_ties_nan_and_few_columns():
    scores = np.array([[1.0, 3.0, 3.0, np.nan], [0.0, -1.0, -2.0, -3.0]])
    saved = scores.copy()
    columns, values = ops.top(scores, 3)
    np.testing.assert_array_equal(scores, saved)
    np.testing.assert_array_equal(columns, [[3, 1, 2], [0, 1, 2]])
    np.testing.assert_array_equal(values, [[np.nan, 3, 3], [0, -1, -2]])
    _, values = ops.top(scores[1:, :2], 3)
    np.testing.assert_array_equal(values, [[0, -1, -np.inf]])
