"""CIDEr-D against the implementation of the COCO evaluation, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.metrics import CiderD


def padded(sentences):
    lengths = np.array([len(sentence) for sentence in sentences], int)
    tokens = np.full((len(sentences), max(lengths, default=0) + 1), 99)  # padding is not read
    for row, sentence in zip(tokens, sentences, strict=True):
        row[: len(sentence)] = sentence
    return tokens, lengths


def score(scorer, images, candidates):
    return scorer.scores(np.array(images, int), *padded(candidates))


def by_the_library(references, candidates):
    """One candidate for each image."""
    scorer = pytest.importorskip("pycocoevalcap.cider.cider_scorer").CiderScorer()
    for candidate, sentences in zip(candidates, references, strict=True):
        scorer.cook_append(" ".join(map(str, candidate)), [" ".join(map(str, each)) for each in sentences])
    scorer.compute_doc_freq()
    return np.array(scorer.compute_cider())


sentence = st.lists(st.integers(0, 4), max_size=9)
image = st.tuples(st.lists(st.lists(st.integers(0, 3), max_size=9), min_size=1, max_size=4), sentence)


@given(st.lists(image, min_size=1, max_size=6))
@settings(max_examples=50)
def test_the_same_as_the_library(images):
    """With words that no reference has, repeated words, empty sentences, and images of one reference."""
    references, candidates = zip(*images, strict=True)
    expected = by_the_library(references, candidates)
    scorer = CiderD(references, 5)
    np.testing.assert_allclose(score(scorer, range(len(images)), candidates), expected, rtol=0, atol=1e-9)
    # in any order and number: a score does not depend on the other candidates
    order = [*reversed(range(len(images))), 0, 0]
    again = score(scorer, order, [candidates[k] for k in order])
    np.testing.assert_allclose(again, expected[order], rtol=0, atol=1e-9)


@pytest.mark.slow
@given(st.lists(image, min_size=2, max_size=4), st.lists(st.lists(sentence, min_size=4), min_size=1))
def test_several_candidates_of_an_image(images, samples):
    references = [sentences for sentences, _ in images]
    rows = [k for _ in samples for k in range(len(images))]
    candidates = [each for drawn in samples for each in (drawn * 4)[: len(images)]]
    expected = [by_the_library(references, (drawn * 4)[: len(images)]) for drawn in samples]
    found = score(CiderD(references, 5), rows, candidates)
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=0, atol=1e-9)


def test_identity_is_perfect():
    references = [[[1, 2, 3, 4]], [[5, 6, 7, 8]]]
    np.testing.assert_allclose(score(CiderD(references, 9), [0, 1], [[1, 2, 3, 4], [5, 6, 7, 8]]), 10)


def test_by_hand():
    """Words 1 and 2; 1 is in both images, so its weight is 0, and 2 in one of two: log 2."""
    scorer = CiderD([[[1, 2]], [[1]]], 3)
    # unigrams: (2) in common, cosine 1; bigrams: (1, 2) against (2, 1), none; lengths are equal
    assert score(scorer, [0], [[2, 1]])[0] == pytest.approx(10 / 4)
    # (2, 2): the count 2 is clipped to 1, so 1 * 1 / (2 * 1); bigrams: none in common
    assert score(scorer, [0], [[2, 2]])[0] == pytest.approx(10 / 4 / 2)
    # one word: cosine 1, and one bigram fewer
    assert score(scorer, [0], [[2]])[0] == pytest.approx(10 / 4 * math.exp(-1 / 72))


def test_the_end_counts_if_it_is_a_token():
    """A caption that stops too early scores less than the whole only if <END> is among the words."""
    END, whole, early = 0, [1, 2, 3, 4, 5], [1, 2, 3, 4]
    scorer = CiderD([[[*whole, END]], [[6, 7, 8, 9, END]]], 10)
    full, ended, cut = score(scorer, [0, 0, 0], [[*whole, END], [*early, END], early])
    assert full == pytest.approx(10)
    assert ended < full
    assert cut < full


def test_no_candidates():
    assert score(CiderD([[[1]]], 2), [], []).shape == (0,)


@pytest.mark.parametrize(
    ("references", "error", "match"),
    [
        ([], ValueError, "CiderD: references is empty"),
        ([[[1]], []], ValueError, r"CiderD: references\[1\] is empty, expected at least one sentence"),
        ([[[1, 3]]], IndexError, "CiderD: references has a token outside the 3 words"),
    ],
)
def test_bad_references(references, error, match):
    with pytest.raises(error, match=match):
        CiderD(references, 3)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", ">i8"])
def test_the_dtype_of_integers_changes_nothing(dtype):
    many = [[[0, 1, 2], [0, 1]], [[2, 1, 0, 3]]] * 128
    scorer, images = CiderD(many, 4), np.array([0, 127, 0])
    tokens, lengths = np.array([[0, 1, 2, 0], [2, 1, 0, 3], [0, 0, 0, 0]]), np.array([3, 4, 0])
    expected = scorer.scores(images, tokens, lengths)
    np.testing.assert_array_equal(
        scorer.scores(*(x.astype(dtype) for x in (images, tokens, lengths))), expected
    )
    if dtype == "u1":  # images + 1 does not wrap
        last = np.full(3, 255)
        found = scorer.scores(last.astype(dtype), tokens, lengths)
        np.testing.assert_array_equal(found, scorer.scores(last, tokens, lengths))


def test_bad_candidates():
    scorer = CiderD([[[1]], [[2]]], 3)
    with pytest.raises(IndexError, match="CiderD.scores: images has a number outside the 2 images"):
        score(scorer, [2], [[1]])
    with pytest.raises(IndexError, match="CiderD.scores: candidates has a token outside the 3 words"):
        score(scorer, [0], [[3]])
    with pytest.raises(ValueError, match=r"have the shapes \(2,\), \(1, 2\) and \(1,\), expected \(N,\)"):
        score(scorer, [0, 1], [[1]])
    for length in (-1, 3):
        with pytest.raises(
            IndexError, match=rf"lengths are {length} to {length}, expected 0 to 2, the width"
        ):
            scorer.scores(np.array([0]), np.array([[1, 2]]), np.array([length]))
    with pytest.raises(TypeError, match="CiderD.scores: candidates have dtype float64, expected integers"):
        scorer.scores(np.array([0]), np.array([[1.0, 2.0]]), np.array([2]))
    with pytest.raises(TypeError, match="CiderD: references have dtype float64, expected integers"):
        CiderD([[[1.5]]], 3)
    with pytest.raises(TypeError, match="CiderD.scores: images have dtype float64, expected integers"):
        scorer.scores(np.array([0.0]), np.array([[1, 2]]), np.array([2]))
