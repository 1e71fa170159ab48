"""BLEU from counts, and the statistics of scores."""

import logging

import numpy as np
import pytest

from rnnlab.metrics import bleu_counts, bleu_of, corpus_bleu, score_captions

rng = np.random.default_rng(0)


def sentences(count):
    return [rng.choice(list("abcdef"), size=rng.integers(3, 9)).tolist() for _ in range(count)]


def corpus(statistics):
    """The score of all examples."""
    return statistics.score(statistics.examples.mean(axis=0, keepdims=True))[0]


REFERENCES = [sentences(3) for _ in range(40)]
CANDIDATES = [[], list("abcdef"), *sentences(38)]
REFERENCES[1][0] = list("abcdef")


def test_the_counts_of_a_sentence():
    references = [["a", "b"], ["a", "a", "b", "c"]]
    # "a" is correct at most twice, "a b" is correct, "b a" is not; a reference of 4 words is the closest
    assert bleu_counts(["a", "b", "a", "a"], references) == [3, 2, 0, 0, 4, 3, 2, 1, 4, 4]
    assert bleu_counts(["a"] * 3, [["b"] * 4, ["b"] * 2])[-2:] == [3, 2]  # the shorter of two
    assert bleu_counts([], [["a"]]) == [0] * 9 + [1]


@pytest.mark.parametrize("candidates", [["", "a red car"], ["a dog", "a red car"], ["", ""], ["x", "red"]])
def test_the_statistics_give_bleu_of_captions_without_correct_n_grams(candidates):
    pytest.importorskip("pycocoevalcap")
    references = [["a dog runs"], ["a red car", "a car"]]
    scores = score_captions(candidates, references, tokenize=str.split, metrics=["BLEU"])
    for name, statistics in scores.statistics().items():
        assert corpus(statistics) == pytest.approx(scores.corpus[name], rel=1e-12, abs=1e-300), name


def test_a_penalty_may_be_rounded_to_zero():
    counts = bleu_counts(["a"], [["a"] * 1000])
    with np.errstate(all="raise"):
        assert corpus(bleu_of([counts], order=1)) == 0


def test_the_statistics_give_the_scores_of_captions():
    pytest.importorskip("pycocoevalcap")
    references = [[" ".join(words) for words in some] for some in REFERENCES]
    candidates = list(map(" ".join, CANDIDATES))
    scores = score_captions(candidates, references, tokenize=str.split, metrics=["BLEU", "CIDEr", "ROUGE-L"])
    found = scores.statistics()
    assert found.keys() == scores.corpus.keys()
    for name, statistics in found.items():
        assert corpus(statistics) == pytest.approx(scores.corpus[name], rel=1e-9), name
    scores = score_captions(candidates, references, tokenize=str.split, metrics=["CIDEr"])
    assert list(scores.statistics()) == ["CIDEr"]


@pytest.mark.parametrize("tokenize", ["none", "13a"])
def test_the_statistics_give_bleu_of_translations(tokenize, monkeypatch):
    pytest.importorskip("sacrebleu")
    logged = []
    monkeypatch.setattr(logging.Logger, "handle", lambda self, record: logged.append(record))
    scores = corpus_bleu(CANDIDATES, REFERENCES, tokenize=tokenize)
    assert corpus(scores.statistics()["BLEU"]) == pytest.approx(scores.corpus["BLEU"], abs=1e-6)
    assert scores.bleu_counts == list(map(bleu_counts, CANDIDATES, REFERENCES))
    scores = corpus_bleu([["a,b", *"cdefg"]], [[["a", ",", "b", *"cdefg"]]], tokenize=tokenize)
    assert (scores.corpus["BLEU"] > 99) == (tokenize == "13a")  # which splits at the comma
    assert corpus(scores.statistics()["BLEU"]) == pytest.approx(scores.corpus["BLEU"], abs=1e-6)
    assert not logged


def test_a_corpus_without_a_correct_n_gram_has_bleu_0():
    assert corpus(bleu_of(np.array([bleu_counts(["a"], [["a", "b"]])]))) == 0
    assert corpus(bleu_of(np.array([bleu_counts([], [["a", "b"]])]))) == 0


def test_samples_of_a_corpus_are_scored_one_by_one():
    counts = [bleu_counts(list("abcd"), [list("abcd")]), bleu_counts(list("wxyz"), [list("abcd")])]
    assert bleu_of(counts).score(np.array(counts)).tolist() == [1, 0]


def test_bleu_needs_references():
    with pytest.raises(ValueError, match="bleu_counts: found no references"):
        bleu_counts(["a"], [])


@pytest.mark.parametrize(("counts", "order"), [(np.ones((2, 9)), 4), (np.ones(10), 4), (np.ones((2, 10)), 5)])
def test_what_is_no_bleu(counts, order):
    with pytest.raises(ValueError, match=r"bleu_of: (counts have shape|order is 5, expected an integer in)"):
        bleu_of(counts, order)


@pytest.mark.parametrize(
    ("candidate", "references"), [("a b", [["a"]]), (["a"], ["a b"]), (["a"], "a b"), (["a"], ["a", "b"])]
)
def test_sentences_that_are_strings(candidate, references):
    with pytest.raises(TypeError, match="bleu_counts: found '.*', expected a list of words"):
        bleu_counts(candidate, references)
