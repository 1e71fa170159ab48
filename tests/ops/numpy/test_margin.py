"""The maximum over slots and the multi-label margin loss on NumPy against their definitions."""

import itertools

import numpy as np
import pytest

from rnnlab.ops import numpy as ops

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def plain_margin(scores, words):
    """The loss of each row and its gradient, pair by pair."""
    losses, dscores = np.zeros(len(scores)), np.zeros(scores.shape)
    for n, row in enumerate(words):
        present = {int(word) for word in row if word >= 0}
        others = set(range(scores.shape[1])) - present
        for j, i in itertools.product(present, others):
            term = 1 - (scores[n, j] - scores[n, i])
            if term > 0:
                losses[n] += term
                dscores[n, j] -= 1
                dscores[n, i] += 1
    return losses, dscores


@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 1, 1), (4, 9, 12), (3, 4, 0), (0, 4, 2)], ids=str)
def test_multilabel_margin(shape, rng):
    M, V, K = shape
    scores, words = rng.standard_normal((M, V)), rng.integers(-1, V, (M, K))
    saved, dscores = scores.copy(), np.full((M, V), np.nan)
    losses = ops.multilabel_margin(scores, words, 0.5, dscores)
    expected, d = plain_margin(scores, words)
    np.testing.assert_allclose(losses, expected, rtol=1e-12)
    np.testing.assert_array_equal(dscores, 0.5 * d)
    np.testing.assert_array_equal(scores, saved)


def test_every_number_below_0_is_no_word(rng):
    scores, words = rng.standard_normal((2, 3)), np.array([[1, -1, -1], [-1, 0, -1]])
    expected, found = np.empty((2, 3)), np.empty((2, 3))
    losses = ops.multilabel_margin(scores, words, 1.0, expected)
    same = ops.multilabel_margin(scores, np.where(words < 0, -9, words), 1.0, found)
    np.testing.assert_array_equal(same, losses)
    np.testing.assert_array_equal(found, expected)


def test_a_term_of_exactly_zero_has_no_gradient():
    dscores = np.empty((1, 3))
    losses = ops.multilabel_margin(np.array([[2.0, 1.0, 1.5]]), np.array([[0]]), 1.0, dscores)
    assert losses[0] == 0.5
    np.testing.assert_array_equal(dscores, [[-1, 0, 1]])


@every_dtype
@pytest.mark.parametrize("column", [0, 1], ids=["word", "other"])
def test_nan_reaches_the_loss(column, dtype):
    scores = np.zeros((2, 3), dtype)
    scores[1, column] = np.nan
    losses = ops.multilabel_margin(scores, np.array([[0], [0]]), 1.0, np.empty_like(scores))
    assert losses.dtype == dtype
    np.testing.assert_array_equal(losses, [2, np.nan])


def test_max_pool_takes_the_first_of_equals_and_nan_before_all():
    x = np.array([[[1.0, 2.0, 0.0], [1.0, np.nan, 3.0], [0.0, np.nan, 3.0]]])
    values = np.empty((1, 3))
    slots = ops.max_pool(x, values)
    np.testing.assert_array_equal(slots, [[0, 1, 1]])
    assert slots.dtype == np.int64
    np.testing.assert_array_equal(values, [[1, np.nan, 3]])


def test_the_gradient_of_max_pool_goes_to_its_slots(rng):
    x, dvalues = rng.standard_normal((4, 3, 5)), rng.standard_normal((4, 5))
    values, dx = np.empty((4, 5)), np.full(x.shape, np.nan)
    slots = ops.max_pool(x, values)
    np.testing.assert_array_equal(values, x.max(axis=1))
    ops.max_pool_gradient(dvalues, slots, dx)
    np.testing.assert_array_equal(dx, np.where(x == values[:, None], dvalues[:, None], 0))
