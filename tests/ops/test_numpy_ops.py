"""The NumPy primitives against their formulas, written plainly."""

import numpy as np
import pytest

from rnnlab.ops import numpy_ops as ops

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
    ops.matmul_add(x, ops.packed(w), out[:, 2:7])
    assert_close(out[:, 2:7], start[:, 2:7] + x @ w)
    np.testing.assert_array_equal(out[:, [0, 1, 7]], start[:, [0, 1, 7]])
    ops.matmul_into(x, ops.packed(w), out[:, 2:7])
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


# ---------------------------------------------------------------- recurrent cells


def test_rnn(rng):
    a, dh = normal(rng, (3, 4), (3, 4))
    h, da = np.full((3, 4), np.nan), np.full((3, 4), np.nan)
    ops.rnn_forward(a, h)
    assert_close(h, np.tanh(a))
    ops.rnn_backward(dh, h, da)
    assert_close(da, dh * (1 - h**2))


def test_lstm(rng):
    a, prev_c, dh, dc = normal(rng, (3, 16), (3, 4), (3, 4), (3, 4))
    gates = a.copy()
    c, tanh_c, h, da = (np.full(shape, np.nan) for shape in ((3, 4), (3, 4), (3, 4), (3, 16)))
    ops.lstm_forward(gates, prev_c, c, tanh_c, h)
    a_i, a_f, a_o, a_g = np.split(a, 4, axis=1)
    i, f, o, g = logistic(a_i), logistic(a_f), logistic(a_o), np.tanh(a_g)
    assert_close(gates, np.concatenate([i, f, o, g], axis=1))
    assert_close(c, f * prev_c + i * g)
    assert_close(tanh_c, np.tanh(c))
    assert_close(h, o * np.tanh(c))

    whole_dc = dc + dh * o * (1 - np.tanh(c) ** 2)
    expected = [whole_dc * g * i * (1 - i), whole_dc * prev_c * f * (1 - f)]
    expected += [dh * np.tanh(c) * o * (1 - o), whole_dc * i * (1 - g**2)]
    ops.lstm_backward(dh, dc, gates, prev_c, tanh_c, da)
    assert_close(da, np.concatenate(expected, axis=1))
    assert_close(dc, whole_dc * f)


def test_gru(rng):
    a, prev_h, dh, dreset_h = normal(rng, (3, 12), (3, 4), (3, 4), (3, 4))
    gates = a.copy()
    reset_h, h, da = (np.full(shape, np.nan) for shape in ((3, 4), (3, 4), (3, 12)))
    ops.gru_gates_forward(gates, prev_h, reset_h)
    z, r, g = logistic(a[:, :4]), logistic(a[:, 4:8]), np.tanh(a[:, 8:])
    assert_close(gates, np.concatenate([z, r, a[:, 8:]], axis=1))
    assert_close(reset_h, r * prev_h)
    ops.gru_candidate_forward(gates, prev_h, h)
    assert_close(gates, np.concatenate([z, r, g], axis=1))
    assert_close(h, (1 - z) * g + z * prev_h)

    dprev_h = dh.copy()
    ops.gru_candidate_backward(dprev_h, gates, prev_h, da)
    assert_close(da[:, :4], dh * (prev_h - g) * z * (1 - z))
    assert_close(da[:, 8:], dh * (1 - z) * (1 - g**2))
    assert_close(dprev_h, dh * z)
    ops.gru_gates_backward(dreset_h.copy(), dprev_h, gates, prev_h, da)
    assert_close(da[:, 4:8], dreset_h * prev_h * r * (1 - r))
    assert_close(dprev_h, dh * z + dreset_h * r)


def test_simplified_gru(rng):
    a, prev_h, dh = normal(rng, (3, 8), (3, 4), (3, 4))
    gates = a.copy()
    h, da = np.full((3, 4), np.nan), np.full((3, 8), np.nan)
    ops.simplified_gru_forward(gates, prev_h, h)
    z, g = logistic(a[:, :4]), np.tanh(a[:, 4:])
    assert_close(gates, np.concatenate([z, g], axis=1))
    assert_close(h, (1 - z) * g + z * prev_h)
    dprev_h = dh.copy()
    ops.simplified_gru_backward(dprev_h, gates, prev_h, da)
    assert_close(da, np.concatenate([dh * (prev_h - g) * z * (1 - z), dh * (1 - z) * (1 - g**2)], axis=1))
    assert_close(dprev_h, dh * z)


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


@every_dtype
@pytest.mark.parametrize("key", [0, 1, 2**63 - 1])
def test_dropout(key, dtype):
    x, out = np.ones((1000, 200), dtype), np.empty((1000, 200), dtype)
    ops.dropout(x, 0.25, key, out)
    np.testing.assert_allclose(np.unique(out), [0, 4 / 3], rtol=1e-6)
    assert (out == 0).mean() == pytest.approx(0.25, abs=0.005)  # five standard deviations
    ops.dropout(x, 0.25, key, x)
    np.testing.assert_array_equal(x, out)


def test_dropout_of_neighbouring_keys_and_places_is_independent():
    """Correlations of 40,000 places with those beside them, and with those of the next key."""
    signs = []
    for key in (7, 8, 9):
        out = np.empty((200, 200))
        ops.dropout(np.ones((200, 200)), 0.5, key, out)
        signs.append(out - 1)
    first = signs[0]
    for other in (*signs[1:], np.roll(first, 1, axis=0), np.roll(first, 1, axis=1)):
        assert abs((first * other).mean()) < 5 / 200


def test_dropout_by_hand():
    """splitmix64 from the state 1234567: its published first outputs."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    out = np.empty(4)
    ops.dropout(np.ones(4), 0.4, 1234567, out)
    np.testing.assert_array_equal(out > 0, np.array(published) / 2**64 >= 0.4)


# ---------------------------------------------------------------- scores


def plain_cross_entropy(scores, targets):
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    chosen = np.arange(len(targets)), targets
    d = p.copy()
    d[chosen] -= 1
    return -np.log(p[chosen]), d


@pytest.mark.parametrize("per_block", [0.5, 1, 3, 100], ids=lambda rows: f"{rows} rows a block")
def test_softmax_cross_entropy_block_by_block(per_block, rng, monkeypatch):
    monkeypatch.setattr(ops, "_BLOCK", int(per_block * 6))
    scores, targets = rng.standard_normal((10, 6)), rng.integers(6, size=10)
    kept, dscores = scores.copy(), np.full((10, 6), np.nan)
    losses = ops.softmax_cross_entropy(scores, targets, 0.5, dscores)
    expected, d = plain_cross_entropy(scores, targets)
    assert_close(losses, expected)
    assert_close(dscores, 0.5 * d)
    np.testing.assert_array_equal(scores, kept)
    np.testing.assert_array_equal(ops.softmax_cross_entropy(scores, targets, 0.5, scores), losses)
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
