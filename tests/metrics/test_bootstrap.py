import logging

import numpy as np
import pytest

from rnnlab.metrics import bleu_counts, bleu_of, corpus_bleu, mean_of, paired_bootstrap, score_captions

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


def test_the_interval_is_that_of_the_normal_distribution():
    first, gains = rng.standard_normal(400), 0.1 + 0.5 * rng.standard_normal(400)
    found = paired_bootstrap(mean_of(first), mean_of(first + gains), samples=5000)
    error = gains.std() / np.sqrt(400)
    assert found.value == pytest.approx(gains.mean())
    assert found.low == pytest.approx(gains.mean() - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(gains.mean() + 1.96 * error, abs=0.1 * error)
    assert found.p < 0.01


def test_p_is_uniform_for_models_that_do_not_differ():
    found = [
        paired_bootstrap(mean_of(rng.standard_normal(50)), mean_of(rng.standard_normal(50)), samples=200).p
        for _ in range(200)
    ]
    assert 0.02 < np.mean(np.array(found) < 0.1) < 0.2


def test_equal_models_do_not_differ():
    scores = mean_of([1.0, 0.0, 1.0])
    assert paired_bootstrap(scores, scores) == (0, 0, 0, 1)


def test_the_smallest_p_depends_on_the_number_of_samples():
    found = paired_bootstrap(mean_of([0.0] * 9), mean_of([1.0] * 9), samples=99)
    assert found == pytest.approx((1, 1, 1, 0.02))


def test_a_seed_repeats_the_samples():
    first, second = mean_of(rng.standard_normal(30)), mean_of(rng.standard_normal(30))
    assert paired_bootstrap(first, second, rng=3) == paired_bootstrap(first, second, rng=3)
    assert paired_bootstrap(first, second, rng=3) != paired_bootstrap(first, second, rng=4)


@pytest.mark.parametrize(
    ("first", "second", "samples", "message"),
    [
        ([], [], 9, "first has 0 examples and second 0, expected the same number"),
        ([1.0], [1.0, 2.0], 9, "first has 1 examples and second 2, expected the same number"),
        ([1.0], [1.0], 0, "samples is 0, expected an integer of at least 1"),
    ],
)
def test_errors(first, second, samples, message):
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(mean_of(first), mean_of(second), samples=samples)


def test_scores_without_their_statistics():
    with pytest.raises(TypeError, match=r"paired_bootstrap: second is a list, .*, such as mean_of\(scores\)"):
        paired_bootstrap(mean_of([0.5]), [0.5])


def test_bleu_needs_references():
    with pytest.raises(ValueError, match="bleu_counts: found no references"):
        bleu_counts(["a"], [])
