import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from rnnlab.layers import word_embedding_backward, word_embedding_forward

from .reference import assert_gradients, assert_same, every_dtype, spoil


def test_each_token_is_a_row(rng):
    W = rng.standard_normal((5, 3))
    x = np.array([[0, 3, 1], [4, 4, 0]])
    out, _ = word_embedding_forward(x, W)
    for n, t in np.ndindex(2, 3):
        assert_same(out[n, t], W[x[n, t]])


def test_the_gradient_of_a_row_is_summed_over_its_places(rng):
    x = np.array([[0, 3, 1], [3, 3, 0]])
    dout = rng.standard_normal((2, 3, 4))
    dW = word_embedding_backward(dout, word_embedding_forward(x, np.zeros((6, 4)))[1])
    expected = np.zeros((6, 4))
    for n, t in np.ndindex(2, 3):
        expected[x[n, t]] += dout[n, t]
    np.testing.assert_allclose(dW, expected, rtol=1e-12)


def test_the_gradient_is_added_into_an_array_that_is_given(rng):
    out, cache = word_embedding_forward(np.array([[1, 4], [1, 0]]), rng.standard_normal((5, 3)))
    expected, into = word_embedding_backward(out, cache), np.ones((5, 3))
    assert word_embedding_backward(out, cache, into=into) is into
    np.testing.assert_allclose(into, 1 + expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (4,), (2, 2, 2), (0, 3), (2, 0)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint16])
def test_gradients(shape, dtype, rng):
    x = rng.integers(5, size=shape).astype(dtype)
    assert_gradients(
        lambda W: word_embedding_forward(x, W),
        word_embedding_backward,
        {"W": rng.standard_normal((5, 3))},
        rng,
    )


@given(
    shape=npst.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
    integer=st.sampled_from(["u1", "i2", "u4", "i8", ">i4"]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=40)
def test_the_gradient_counts_the_tokens(shape, integer, seed):
    """With a gradient of ones, each word's gradient is how many times it occurs, whatever the dtype."""
    x = np.random.default_rng(seed).integers(0, 7, shape).astype(integer)
    out, cache = word_embedding_forward(x, np.arange(14.0).reshape(7, 2))
    np.testing.assert_array_equal(out[..., 0], 2.0 * x)
    assert cache.x.dtype == np.int64
    counts = np.bincount(x.reshape(-1).astype(int), minlength=7)
    np.testing.assert_array_equal(word_embedding_backward(np.ones(out.shape), cache)[:, 1], counts)


@every_dtype
def test_dtype(dtype, rng):
    out, cache = word_embedding_forward(np.array([[1, 2]]), rng.standard_normal((5, 3)).astype(dtype))
    assert out.dtype == word_embedding_backward(out, cache).dtype == dtype


def test_outputs_may_be_overwritten(rng):
    """They share no memory with the cache or with the word vectors."""
    W = rng.standard_normal((5, 3))
    before = W.copy()
    out, cache = word_embedding_forward(np.array([[1, 2]]), W)
    spoil(out)
    assert_same(W, before)
    assert_same(word_embedding_backward(np.ones((1, 2, 3)), cache)[1], np.ones(3))


@pytest.mark.parametrize(("token", "named"), [([0, 5], 5), ([-1, 2], -1), ([-3, 7], 7)])
def test_a_token_out_of_range_is_named_with_the_vocabulary_size(token, named):
    message = f"word_embedding_forward: x holds the token {named}, the vocabulary has 5 words"
    with pytest.raises(IndexError, match=message):
        word_embedding_forward(np.array([token]), np.ones((5, 3)))


def test_what_does_not_fit():
    W = np.ones((5, 3))
    with pytest.raises(TypeError, match="word_embedding_forward: x has dtype float64, expected integers"):
        word_embedding_forward(np.zeros((1, 2)), W)
    with pytest.raises(
        ValueError, match=re.escape("word_embedding_forward: W has shape (5,), expected (V, D)")
    ):
        word_embedding_forward(np.array([0]), W[:, 0])
    with pytest.raises(
        TypeError, match="word_embedding_forward: x is a list, expected a NumPy or CuPy array"
    ):
        word_embedding_forward([0, 1], W)
    _, cache = word_embedding_forward(np.array([[0, 1]]), W)
    message = "word_embedding_backward: dout has shape (2, 1, 3), expected (1, 2, 3)"
    with pytest.raises(ValueError, match=re.escape(message)):
        word_embedding_backward(np.ones((2, 1, 3)), cache)
    with pytest.raises(TypeError, match="word_embedding_backward: dout has dtype float32, expected float64"):
        word_embedding_backward(np.ones((1, 2, 3), np.float32), cache)
