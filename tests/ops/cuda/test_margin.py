"""The maximum over slots and the multi-label margin loss on CuPy against the reference."""

import numpy as np
import pytest

from .compare import assert_same, every_dtype, results


@pytest.mark.usefixtures("blocks")
@every_dtype
@pytest.mark.parametrize(
    "shape", [(5, 7, 3), (1, 1, 1), (3, 1000, 20), (64, 33, 4), (3, 4, 0), (0, 4, 2)], ids=str
)
def test_multilabel_margin(shape, ops, dtype, rng, normal):
    M, V, K = shape
    scores, words = normal(M, V), rng.integers(-1, V, (M, K))
    words[: M // 3] = -1  # rows without words
    words[-1:, 1:2] = words[-1:, :1]  # the same word twice
    assert_same(ops, "multilabel_margin", [scores, words, 0.25, np.empty_like(scores)])


@pytest.mark.usefixtures("blocks")
@every_dtype
@pytest.mark.parametrize("shape", [(5, 3, 7), (1, 1, 1), (4, 8, 600), (2, 1, 300), (0, 2, 4)], ids=str)
def test_max_pool(shape, ops, dtype, rng, normal):
    n, L, V = shape
    x = np.round(normal(*shape), 1)  # with equals
    x[rng.random(shape) < 0.05] = -np.inf
    assert_same(ops, "max_pool", [x, np.empty((n, V), dtype)])
    assert_same(ops, "max_pool_gradient", [normal(n, V), rng.integers(L, size=(n, V)), np.empty_like(x)])


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_propagate(bad, ops, dtype, normal):
    scores, words = normal(4, 40), np.array([[0, 17], [17, 3], [1, 2], [-1, -1]])
    scores[:, 17] = bad
    assert_same(ops, "multilabel_margin", [scores, words, 1.0, np.empty_like(scores)])
    x = normal(3, 4, 5)
    x[1, 2:], x[2, :, 3] = bad, bad
    assert_same(ops, "max_pool", [x, np.empty((3, 5), dtype)])


@every_dtype
def test_two_runs_are_identical_to_the_bit(ops, dtype, rng, normal):
    arguments = [normal(6, 700), rng.integers(-1, 700, (6, 15)), 0.3, np.empty((6, 700), dtype)]
    once, again = (results(ops, "multilabel_margin", arguments, {}) for _ in range(2))
    for one, other in zip(once, again, strict=True):
        np.testing.assert_array_equal(one, other)


@every_dtype
def test_a_repeated_word_at_the_end_is_seen_by_all_threads(ops, dtype):
    """The gradient of the word is -1, which also marks a word before its terms are counted."""
    scores = np.array([[0.0] * 40], dtype)
    scores[0, 1:] = -5
    scores[0, 39] = 0.5  # the only term above zero
    words = np.array([[0, 0]])
    assert_same(ops, "multilabel_margin", [scores, words, 1.0, np.empty_like(scores)])
