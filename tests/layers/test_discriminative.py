"""Discriminative supervision against its equations, numeric gradients and PyTorch, for any batch."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.data.vocabulary import UNK, Vocabulary
from rnnlab.layers import (
    discriminative,
    discriminative_backward,
    discriminative_forward,
    discriminative_shapes,
    frequent_words,
)
from rnnlab.plain import discriminative as plain

from .reference import CupyArray, assert_gradients, assert_same, every_dtype, spoil

WORDS = {
    "some": np.array([[2, -1, 4], [0, 5, 1], [-1, -1, 3]]),
    "twice": np.array([[2, 2, 4], [0, 0, 0], [5, -1, 5]]),
    "none in some samples": np.array([[-1, -1, -1], [1, -1, 2], [-1, -1, -1]]),
    "none": np.full((3, 4), -1),
    "all": np.tile(np.arange(6), (3, 1)),
    "no column": np.zeros((3, 0), int),
}
every_words = pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
N, L, H, K = 3, 4, 5, 6


def inputs(rng, n=N, slots=L, k=K):
    return {"thoughts": rng.standard_normal((n, slots, H)), "W": rng.standard_normal((H, k))}


def forward_of(words):
    return lambda thoughts, W: discriminative_forward(thoughts, words, {"W": W})


def backward(dloss, cache):
    """The gradients of all inputs, in their order."""
    dthoughts, dparams = discriminative_backward(dloss, cache)
    return dthoughts, dparams["W"]


def test_shapes_of_the_parameters():
    assert discriminative_shapes(5, 3) == {"W": (5, 3)}


@every_words
def test_it_is_the_equations(words, rng):
    a = inputs(rng)
    loss, cache = forward_of(words)(**a)
    expected, plain_cache = plain.discriminative_forward(a["thoughts"], words, {"W": a["W"]})
    assert isinstance(loss, float)
    assert loss == pytest.approx(expected, rel=1e-12)
    dthoughts, dparams = plain.discriminative_backward(0.7, plain_cache)
    for found, wanted in zip(backward(0.7, cache), (dthoughts, dparams["W"]), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_a_loss_by_hand():
    """Two vectors, three words: s = (3, 2.5, 0)."""
    thoughts, W = np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([[3.0, 0.5, -1.0], [1.0, 2.5, 0.0]])
    for words, loss in (([0], 0.5), ([1], 1.5), ([2], 4 + 3.5), ([0, 1], 0.0), ([1, 2], 1.5 + 4)):
        assert forward_of(np.array([words]))(thoughts, W)[0] == pytest.approx(loss)


@every_words
def test_gradients(words, rng):
    assert_gradients(forward_of(words), backward, inputs(rng), rng)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 1, 5), (1, 3, 2), (4, 1, 3), (0, 2, 3)], ids=str)
def test_gradients_of_small_sizes(sizes, rng):
    words = rng.integers(-1, sizes[2], (sizes[0], 3))
    assert_gradients(forward_of(words), backward, inputs(rng, *sizes), rng)


def test_there_is_no_loss_without_a_pair(rng):
    """All words are in the caption, or none, or there is one only."""
    for words, k in ((WORDS["all"], 6), (WORDS["none"], 6), (np.zeros((3, 2), int), 1)):
        loss, cache = forward_of(words)(**inputs(rng, k=k))
        assert loss == 0
        assert not any(grad.any() for grad in backward(1.0, cache))


def test_the_gradient_of_equal_maxima_goes_to_the_first_vector(rng):
    a = {name: np.round(2 * array) for name, array in inputs(rng).items()}  # products without rounding
    _, cache = forward_of(WORDS["some"])(a["thoughts"][:, :2], a["W"])
    expected = backward(1.0, cache)[0]
    a["thoughts"][:, 2:] = a["thoughts"][:, :2]
    _, cache = forward_of(WORDS["some"])(**a)
    dthoughts = backward(1.0, cache)[0]
    np.testing.assert_allclose(dthoughts[:, :2], expected, rtol=1e-12)
    assert not dthoughts[:, 2:].any()


def test_nan_reaches_the_loss(rng):
    a = inputs(rng)
    a["thoughts"][1, 0, 0] = np.nan
    assert np.isnan(forward_of(WORDS["some"])(**a)[0])


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("at_once", [1, L * K, 2 * L * K + 1])
def test_blocks_of_samples_change_nothing(at_once, rng, monkeypatch):
    a, words = inputs(rng, 7), rng.integers(-1, K, (7, 3))
    loss, cache = forward_of(words)(**a)
    grads = backward(0.5, cache)
    monkeypatch.setattr(discriminative, "_SCORES_AT_ONCE", at_once)
    assert [len(products) // L for _, products in discriminative._blocks(7, L, K, a["W"])] == {
        1: [1] * 7, L * K: [1] * 7, 2 * L * K + 1: [2, 2, 2, 1],
    }[at_once]  # fmt: skip
    again, blocks_cache = forward_of(words)(**a)
    assert again == pytest.approx(loss, rel=1e-14)
    np.testing.assert_array_equal(blocks_cache.slots, cache.slots)
    for one, other in zip(backward(0.5, blocks_cache), grads, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_the_scores_of_all_vectors_are_never_there_at_once():
    samples, k = 64, 40_000
    largest = max(products.size for _, products in discriminative._blocks(samples, 8, k, np.zeros(1)))
    assert largest == 3 * 8 * k <= discriminative._SCORES_AT_ONCE < samples * 8 * k


# ---------------------------------------------------------------- what every layer must do


@every_dtype
def test_dtypes(dtype, rng):
    a = {name: array.astype(dtype) for name, array in inputs(rng).items()}
    loss, cache = forward_of(WORDS["some"])(**a)
    assert {grad.dtype for grad in backward(np.float64(0.5), cache)} == {np.dtype(dtype)}
    expected, _ = plain.discriminative_forward(a["thoughts"], WORDS["some"], {"W": a["W"]})
    assert loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("integer", [np.int8, np.int32, np.int64])
def test_words_of_any_integer_dtype(integer, rng):
    a = inputs(rng)
    loss, cache = forward_of(WORDS["some"])(**a)
    again, narrow_cache = forward_of(WORDS["some"].astype(integer))(**a)
    assert again == loss
    assert_same(backward(1.0, narrow_cache), backward(1.0, cache))


def test_gradients_may_be_overwritten(rng):
    _, cache = forward_of(WORDS["some"])(**inputs(rng))
    first = backward(0.3, cache)
    saved = tuple(grad.copy() for grad in first)
    spoil(*first)
    assert_same(backward(0.3, cache), saved)


def test_gradients_are_added_into_arrays_that_are_given(rng):
    _, cache = forward_of(WORDS["some"])(**inputs(rng))
    expected = backward(0.5, cache)
    into = {"W": np.ones((H, K)), "other": np.ones(2)}
    dthoughts, grads = discriminative_backward(0.5, cache, into=into)
    assert grads["W"] is into["W"]
    np.testing.assert_array_equal(dthoughts, expected[0])
    np.testing.assert_allclose(grads["W"], 1 + expected[1])
    with pytest.raises(ValueError, match="discriminative_backward: into has W of shape"):
        discriminative_backward(0.5, cache, into={"W": np.ones((H, K + 1))})


def test_what_does_not_fit_is_named(rng):
    thoughts, W = inputs(rng).values()
    words = WORDS["some"]

    def refuses(error, message, thoughts=thoughts, words=words, **params):
        with pytest.raises(error, match=re.escape(f"discriminative_forward: {message}")):
            discriminative_forward(thoughts, words, {"W": W} | params)

    refuses(ValueError, "W has shape (4, 6), expected (H, k) = (5, 6)", W=W[:4])
    refuses(ValueError, "thoughts has shape (3, 5), expected (N, L, H)", thoughts[:, 0])
    refuses(ValueError, "thoughts has shape (3, 0, 5), expected L of at least 1", thoughts[:, :0])
    refuses(ValueError, "W has shape (5, 0), expected k of at least 1", W=W[:, :0])
    refuses(ValueError, "words has shape (2, 3), expected (N, P) with N = 3", words=words[:2])
    refuses(ValueError, "words has shape (3,), expected (N, P) with N = 3", words=words[0])
    refuses(TypeError, "words has dtype float64, expected integers", words=words / 1)
    refuses(TypeError, "words has dtype bool, expected integers", words=words > 0)
    refuses(TypeError, "words is a list, expected a NumPy or CuPy array", words=words.tolist())
    refuses(IndexError, "words holds 6, expected columns of W from 0 to 5, or -1", words=words + 1)
    refuses(IndexError, "words holds -2, expected columns of W from 0 to 5, or -1", words=words - 1)
    refuses(TypeError, "W has dtype float32, expected float64", W=W.astype(np.float32))
    refuses(TypeError, "expected arrays of one library", W=CupyArray())
    with pytest.raises(ValueError, match="discriminative_forward: params has no W, expected W"):
        discriminative_forward(thoughts, words, {})
    for sizes, name in (((0, 3), "hidden_dim"), ((3, 0), "num_words"), ((3, 1.5), "num_words")):
        with pytest.raises(ValueError, match=f"discriminative_shapes: {name} is .*, expected an integer"):
            discriminative_shapes(*sizes)


# ---------------------------------------------------------------- frequent words


def test_tokens_are_an_array_of_integers():
    with pytest.raises(TypeError, match="frequent_words: tokens is a list, expected a NumPy or CuPy array"):
        frequent_words([[1, 4]], 4, 5)
    with pytest.raises(TypeError, match="frequent_words: tokens has dtype float64, expected integers"):
        frequent_words(np.ones((1, 2)), 4, 5)


@pytest.mark.parametrize("integer", [np.uint8, np.int32, np.int64, np.uint64])
def test_frequent_words_are_columns_and_all_other_tokens_are_not(integer):
    tokens = np.array([[1, 4, 5, 4, 2, 0], [1, 3, 8, 7, 2, 0]], integer)
    words = frequent_words(tokens, first=4, num_words=4)
    np.testing.assert_array_equal(words, [[-1, 0, 1, 0, -1, -1], [-1, -1, -1, 3, -1, -1]])
    assert words.dtype == np.int64


def test_the_most_frequent_words_of_a_vocabulary_come_after_its_special_words():
    captions = [["a", "dog", "runs"], ["a", "dog"], ["a", "cat", "<UNK>"]]
    vocabulary = Vocabulary.build(captions)
    tokens = np.stack([vocabulary.encode(caption, 6) for caption in captions])
    words = frequent_words(tokens, UNK + 1, 2)
    frequent = [[vocabulary.idx_to_word[UNK + 1 + word] for word in row if word >= 0] for row in words]
    assert frequent == [["a", "dog"], ["a", "dog"], ["a"]]


def test_frequent_words_on_a_device(device, rng):
    import rnnlab.ops.cuda as ops

    tokens = rng.integers(12, size=(3, 5))
    words = frequent_words(ops.asarray(tokens), 4, 5)
    np.testing.assert_array_equal(ops.asnumpy(words), frequent_words(tokens, 4, 5))
    a = inputs(rng)
    arrays = {name: ops.asarray(array) for name, array in a.items()}
    on_device, _ = discriminative_forward(arrays["thoughts"], words, {"W": arrays["W"]})
    expected, _ = forward_of(frequent_words(tokens, 4, 5))(**a)
    assert float(on_device) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("samples", "at_once"), [(N, 1 << 20), (10, 1)], ids=["whole", "10 blocks"])
def test_a_graph_reads_the_tokens_of_each_launch(samples, at_once, device, rng, monkeypatch):
    import rnnlab.ops.cuda as ops
    from rnnlab.ops import gpu_training

    monkeypatch.setattr(discriminative, "_SCORES_AT_ONCE", at_once)
    a = inputs(rng, samples)
    arrays, tokens = (
        {name: ops.asarray(array) for name, array in a.items()},
        ops.indices(np.zeros((samples, 5))),
    )
    results = [ops.empty(()), ops.empty((samples, L, H)), ops.empty((H, K))]

    def work():
        words = frequent_words(tokens, 4, K)
        loss, cache = discriminative_forward(arrays["thoughts"], words, {"W": arrays["W"]})
        for result, array in zip(results, (loss, *backward(0.5, cache)), strict=True):
            result[...] = array

    work()  # compiles what is captured
    graph = gpu_training().Graph(work, gpu_training().GraphMemory())
    for _ in range(2):
        batch = rng.integers(12, size=(samples, 5))
        tokens[...] = ops.indices(batch)
        graph.launch(np.random.default_rng(0), lambda: None)
        loss, cache = forward_of(frequent_words(batch, 4, K))(**a)
        for found, expected in zip(results, (loss, *backward(0.5, cache)), strict=True):
            np.testing.assert_allclose(ops.asnumpy(found), expected, rtol=1e-12, atol=1e-14)


# ---------------------------------------------------------------- properties


@st.composite
def batches(draw):
    n, slots, k = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return inputs(rng, n, slots, k), rng.integers(-1, k, (n, draw(st.integers(0, 5)))), rng


@given(batches())
@settings(max_examples=30)
def test_neither_the_order_of_words_nor_how_many_times_they_occur_matters(batch):
    a, words, rng = batch
    loss, cache = forward_of(words)(**a)
    shuffled = rng.permuted(np.concatenate([words, words], axis=1), axis=1)
    again, other = forward_of(shuffled)(**a)
    assert again == pytest.approx(loss, rel=1e-12)
    for one, two in zip(backward(1.0, cache), backward(1.0, other), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-14)


@given(batches())
@settings(max_examples=30)
def test_a_batch_is_the_mean_of_its_samples(batch):
    a, words, _ = batch
    loss, cache = forward_of(words)(**a)
    dthoughts, dW = backward(1.0, cache)
    losses, total = [], np.zeros_like(dW)
    for n in range(len(words)):
        loss_n, cache_n = forward_of(words[n : n + 1])(a["thoughts"][n : n + 1], a["W"])
        dthoughts_n, dW_n = backward(1 / len(words), cache_n)
        losses.append(loss_n)
        total += dW_n
        np.testing.assert_allclose(dthoughts[n], dthoughts_n[0], rtol=1e-12, atol=1e-14)
    assert loss == pytest.approx(np.mean(losses), rel=1e-11)
    np.testing.assert_allclose(total, dW, rtol=1e-11, atol=1e-13)


@given(batches())
@settings(max_examples=30)
def test_the_gradients_of_the_scores_of_a_sample_sum_to_zero(batch):
    """A number that is added to all scores changes no difference."""
    a, words, _ = batch
    _, cache = forward_of(words)(**a)
    np.testing.assert_allclose(cache.dscores.sum(axis=1), 0, atol=1e-12)


# ---------------------------------------------------------------- PyTorch


@every_words
def test_pytorch_agrees(words, rng):
    """PyTorch divides a sample's loss by k, and expects the words first, each once, then -1."""
    torch = pytest.importorskip("torch")
    a = inputs(rng)
    loss, cache = forward_of(words)(**a)
    targets = np.full((N, K), -1)
    for row, present in zip(targets, words, strict=True):
        columns = np.unique(present[present >= 0])
        row[: len(columns)] = columns
    leaves = {name: torch.tensor(array, requires_grad=True) for name, array in a.items()}
    scores = (leaves["thoughts"] @ leaves["W"]).amax(dim=1)
    expected = K * torch.nn.functional.multilabel_margin_loss(scores, torch.tensor(targets))
    (0.7 * expected).backward()
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    for grad, leaf in zip(backward(0.7, cache), leaves.values(), strict=True):
        np.testing.assert_allclose(grad, leaf.grad, rtol=1e-10, atol=1e-13)
