import math
import sys

import pytest

from rnnlab.metrics import corpus_bleu

sacrebleu = pytest.importorskip("sacrebleu")


def words(*sentences):
    return [sentence.split() for sentence in sentences]


def test_identity_is_perfect():
    sentences = words("ein mann fährt rad .", "zwei hunde laufen am strand .")
    scores = corpus_bleu(sentences, [[sentence] for sentence in sentences])
    assert scores.corpus["BLEU"] == pytest.approx(100)
    assert scores.corpus["brevity"] == scores.corpus["length"] == 100


def test_bleu_by_hand():
    # sums over both sentences: 1-grams 4 + 4 of 5 + 4, 2-grams 2 + 3 of 4 + 3, 3-grams 1 + 2 of 3 + 2,
    # 4-grams 0 + 1 of 2 + 1; 9 words against 6 + 4
    candidates = words("the the cat sat mat", "a b c d")
    references = [words("the cat sat on a mat"), words("a b c d")]
    precisions = [8 / 9, 5 / 7, 3 / 5, 1 / 3]
    scores = corpus_bleu(candidates, references)
    expected = math.exp(1 - 10 / 9) * math.prod(precisions) ** 0.25
    assert scores.corpus["BLEU"] == pytest.approx(100 * expected)
    for n, precision in enumerate(precisions, 1):
        assert scores.corpus[f"precision-{n}"] == pytest.approx(100 * precision)
    assert scores.corpus["brevity"] == pytest.approx(100 * math.exp(1 - 10 / 9))
    assert scores.corpus["length"] == pytest.approx(90)


def test_scores_by_length():
    candidates = words("a b c d", "a b c d x", "u v w x y z", "a b c d e f g")
    references = [[each] for each in words("a b c d", "a b c d e", "u v w x y z q r", "a b c d e f g")]
    scores = corpus_bleu(candidates, references)
    short, none, middle, long = scores.by_length([1, 4, 9, 30], [5, 6, 10])
    ranges = ["0 to 4", "5 to 5", "6 to 9", "10 or more"]
    assert [each.range() for each in (short, none, middle, long)] == ranges
    assert [each.sentences for each in (short, none, middle, long)] == [2, 0, 1, 1]
    assert none.bleu is None
    assert short.bleu == pytest.approx(corpus_bleu(candidates[:2], references[:2]).corpus["BLEU"])
    assert middle.bleu == pytest.approx(100 * math.exp(1 - 8 / 6))
    assert long.bleu == pytest.approx(100)
    whole = scores.by_length([1, 4, 9, 30], [])
    assert whole == [(0, None, 4, pytest.approx(scores.corpus["BLEU"]))]


@pytest.mark.parametrize(
    ("lengths", "starts", "message"),
    [
        ([1], [5], "by_length: found 1 lengths, expected one per sentence, 2"),
        ([1, 2], [5, 5], r"by_length: starts is \[5, 5\], expected positive, increasing integers"),
        ([1, 2], [0], r"by_length: starts is \[0\], expected positive, increasing integers"),
    ],
)
def test_lengths_are_checked(lengths, starts, message):
    with pytest.raises(ValueError, match=message):
        corpus_bleu(words("a", "b"), [words("a"), words("b")]).by_length(lengths, starts)


def test_several_references():
    scores = corpus_bleu(words("a b c d"), [words("a b x y", "z b c d e f")])
    assert scores.corpus["precision-1"] == 100
    assert scores.corpus["brevity"] == 100  # the closest length is 4


def test_words_are_compared_as_they_are():
    assert corpus_bleu(words("A b c d"), [words("a b c d")]).corpus["precision-1"] == 75
    # a mark inside a word is no word of its own
    assert corpus_bleu(words("a-b c,d e f"), [words("a-b c,d e f")]).corpus["BLEU"] == pytest.approx(100)


def test_the_length_is_relative_to_the_reference():
    assert corpus_bleu([["a"]], [[["a"]]]).corpus["length"] == 100
    assert corpus_bleu([["a"]], [[[]]]).corpus["length"] == 100  # of no words, as if it had one


def test_nothing_right_is_zero():
    assert corpus_bleu(words("a b c d e"), [words("a x c y e")]).corpus["BLEU"] == 0
    assert corpus_bleu([[]], [words("a b c d")]).corpus["BLEU"] == 0


def test_the_signature_tells_what_was_computed():
    signature = corpus_bleu(words("a"), [words("a")]).signature
    for part in ("nrefs:1", "case:mixed", "tok:none", "smooth:none", f"version:{sacrebleu.__version__}"):
        assert part in signature


@pytest.mark.parametrize(
    ("candidates", "references", "message"),
    [
        ([], [], "candidates is empty"),
        ([["a"]], [], "references are of 0 sentences, expected as many as candidates, 1"),
        ([["a"]], [[]], r"references\[0\] has 0 sentences, expected at least 1"),
        ([["a"], ["b"]], [[["a"]], [["b"], ["c"]]], r"references\[1\] has 2 sentences, expected 1"),
    ],
)
def test_bad_arguments(candidates, references, message):
    with pytest.raises(ValueError, match=message):
        corpus_bleu(candidates, references)


def test_sentences_are_lists_of_words():
    for candidates, references in ((["a b"], [[["a", "b"]]]), ([["a", "b"]], [["a b"]])):
        with pytest.raises(TypeError, match="corpus_bleu: .* has 'a b', expected a list of its words"):
            corpus_bleu(candidates, references)


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"scoring translations needs sacrebleu: .*rnnlab\[translation\]"):
        corpus_bleu([["a"]], [[["a"]]])
