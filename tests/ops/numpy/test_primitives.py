"""The NumPy primitives against their formulas, written plainly."""

import numpy as np
import pytest

from rnnlab.ops import numpy as ops

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def logistic(a):
    return 1 / (1 + np.exp(-a))


def normal(rng, *shapes):
    return [rng.standard_normal(shape) for shape in shapes]


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def test_affine(rng):
    x, w, b = normal(rng, (3, 4), (4, 5), (5,))
    assert_close(ops.affine(x, w, b), x @ w + b)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_products_with_a_packed_weight(transposed, n, rng):
    """Into a part of the columns, as in the recurrent layers."""
    x, w, out = normal(rng, (n, 4), (5, 4) if transposed else (4, 5), (n, 8))
    w = w.T if transposed else w
    start = out.copy()
    ops.matmul_add(x, ops.prepacked(w), out[:, 2:7])
    assert_close(out[:, 2:7], start[:, 2:7] + x @ w)
    np.testing.assert_array_equal(out[:, [0, 1, 7]], start[:, [0, 1, 7]])
    ops.matmul_into(x, ops.prepacked(w), out[:, 2:7])
    assert_close(out[:, 2:7], x @ w)


@every_dtype
def test_sigmoid(dtype, rng):
    x = rng.standard_normal((4, 5)).astype(dtype)
    kept = x.copy()
    out = ops.sigmoid(x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, logistic(x), rtol=1e-6)
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(ops.sigmoid(x, out=x), out)
    np.testing.assert_array_equal(x, out)


@every_dtype
def test_sigmoid_of_large_numbers_does_not_overflow(dtype):
    np.testing.assert_array_equal(ops.sigmoid(np.array([-1e30, 0, 1e30], dtype)), [0, 0.5, 1])


# ---------------------------------------------------------------- words


@every_dtype
def test_embedding_gradient_adds_to_the_rows_of_the_tokens(dtype, rng):
    tokens = np.array([3, 0, 3, 5, 3])
    dout, start = (array.astype(dtype) for array in normal(rng, (5, 4), (6, 4)))
    dW, expected = start.copy(), start.astype(np.float64)
    for token, row in zip(tokens, dout, strict=True):
        expected[token] += row
    ops.embedding_gradient(dout, tokens, dW)
    assert dW.dtype == dtype
    np.testing.assert_allclose(dW, expected, rtol=1e-6)
    np.testing.assert_array_equal(dW[[1, 2, 4]], start[[1, 2, 4]])


def test_embedding_gradient_of_no_token():
    dW = np.ones((6, 4))
    ops.embedding_gradient(np.ones((0, 4)), np.ones(0, int), dW)
    np.testing.assert_array_equal(dW, 1)


# ---------------------------------------------------------------- scores


def plain_cross_entropy(scores, targets, smoothing=0.0):
    V = scores.shape[1]
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    q = (1 - smoothing) * np.eye(V)[targets] + smoothing / V
    return -(q * np.log(p)).sum(axis=1), p - q


@pytest.mark.parametrize("per_block", [0.5, 1, 3, 100], ids=lambda rows: f"{rows} rows a block")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax_cross_entropy_block_by_block(smoothing, per_block, rng, monkeypatch):
    monkeypatch.setattr(ops, "_BLOCK", int(per_block * 6))
    scores, targets = rng.standard_normal((10, 6)), rng.integers(6, size=10)
    kept, dscores = scores.copy(), np.full((10, 6), np.nan)
    losses = ops.softmax_cross_entropy(scores, targets, 0.5, dscores, smoothing)
    expected, d = plain_cross_entropy(scores, targets, smoothing)
    assert_close(losses, expected)
    assert_close(dscores, 0.5 * d)
    np.testing.assert_array_equal(scores, kept)
    np.testing.assert_array_equal(ops.softmax_cross_entropy(scores, targets, 0.5, scores, smoothing), losses)
    np.testing.assert_array_equal(scores, dscores)


def test_softmax_cross_entropy_of_more_rows_than_a_block(rng):
    V = 1000
    M = 2 * (ops._BLOCK // V) + 3
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
    kept = scores.copy()
    out = ops.log_softmax(scores)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, np.log(np.exp(scores) / np.exp(scores).sum(axis=1)[:, None]), rtol=1e-5)
    np.testing.assert_array_equal(scores, kept)
    assert ops.log_softmax(np.ones((0, 6))).shape == (0, 6)


def test_every_public_name_is_there():
    assert all(callable(getattr(ops, name)) for name in ops.__all__)
    assert ops.__all__ == sorted(set(ops.__all__))
