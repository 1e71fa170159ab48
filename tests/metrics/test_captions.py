import math
import sys

import numpy as np
import pytest

from rnnlab.metrics import CAPTION_SCORERS, METRICS, score_captions

pytest.importorskip("pycocoevalcap")

WITHOUT_JAVA = [metric for metric in METRICS if metric != "METEOR"]
CANDIDATES = ["a red circle above a blue square", "two dogs run on the beach", "the man"]
REFERENCES = [
    ["a red circle is above a blue square", "a blue square under a red circle"],
    ["two dogs are running on a beach", "dogs run", "two dogs run on the sand"],
    ["a man rides a horse", "the man is riding"],
]


def score(candidates, references, metrics=WITHOUT_JAVA):
    return score_captions(candidates, references, tokenize=str.split, metrics=metrics)


def test_identity_is_perfect():
    scores = score(CANDIDATES[:2], [[caption, "something else"] for caption in CANDIDATES[:2]])
    for name in ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L"):
        assert scores.corpus[name] == pytest.approx(1, abs=1e-6)
        assert scores.images[name] == pytest.approx([1, 1], abs=1e-6)


def test_cider_of_identity_is_ten():
    scores = score(CANDIDATES[:2], [[caption] for caption in CANDIDATES[:2]])
    assert scores.corpus["CIDEr"] == pytest.approx(10)


def test_bleu_by_hand():
    # 1-grams: "the" is clipped to 1 of 2, "cat", "sat": 3 of 5; 2-grams: "the cat", "cat sat": 2 of 4;
    # 3-grams: "the cat sat": 1 of 3. The closest reference has 6 words, the candidate 5.
    scores = score(["the the cat sat down"], [["the cat sat on a mat", "felines"]])
    brevity = math.exp(1 - 6 / 5)
    precisions = [3 / 5, 2 / 4, 1 / 3]
    for n in (1, 2, 3):
        expected = brevity * math.prod(precisions[:n]) ** (1 / n)
        assert scores.corpus[f"BLEU-{n}"] == pytest.approx(expected, rel=1e-6)
        assert scores.images[f"BLEU-{n}"] == pytest.approx([expected], rel=1e-6)
    assert scores.corpus["BLEU-4"] < 1e-3
    assert scores.brevity == pytest.approx(brevity)


def test_bleu_takes_the_closest_reference_length():
    # 4 words against references of 5 and 9: r = 5, not 9 (longest) and not 7 (mean).
    scores = score(["a b c d"], [["a b c d e", "a b c d e f g h i"]])
    assert scores.corpus["BLEU-1"] == pytest.approx(scores.brevity, rel=1e-6)
    assert scores.brevity == pytest.approx(math.exp(1 - 5 / 4), rel=1e-6)


def test_the_brevity_penalty_is_that_of_the_corpus():
    assert score(["a b c", "d"], [["a b"], ["d e"]]).brevity == 1
    assert score(["", ""], [["a b"], ["d e"]]).brevity == 0
    assert score(["a"], [["a"]], ["ROUGE-L"]).brevity is None


def test_corpus_bleu_sums_counts_over_images():
    # Image 1: 2 of 2 words right, image 2: 0 of 4. The corpus has 2 of 6, not the mean of 1 and 0.
    scores = score(["a b", "x x x x"], [["a b"], ["c d e f"]])
    assert scores.corpus["BLEU-1"] == pytest.approx(2 / 6, rel=1e-6)
    assert scores.images["BLEU-1"] == pytest.approx([1, 0], abs=1e-6)


def test_rouge_takes_best_precision_and_best_recall_independently():
    # LCS with the first reference: "a b c", P = 3/4, R = 3/6; with the second: "x", P = 1/4, R = 1/1.
    scores = score(["a b c x"], [["a b q c r s", "x"]])
    P, R, squared = 3 / 4, 1, 1.2**2
    assert scores.corpus["ROUGE-L"] == pytest.approx((1 + squared) * P * R / (R + squared * P))


def test_cider_by_hand():
    # Two images, so a word of one image weighs log 2. Unigrams: one of two agrees, cosine 1/2; no bigram.
    # The mean over n = 1 to 4, times 10.
    scores = score(["x y", "u v w"], [["x z"], ["u v w"]])
    assert scores.images["CIDEr"] == pytest.approx([10 * (1 / 2) / 4, 10 * 3 / 4])
    # A word in the references of every image weighs nothing.
    assert score(["x", "x"], [["x y"], ["x z"]]).corpus["CIDEr"] == 0


def test_corpus_is_mean_of_images_except_for_bleu():
    scores = score(CANDIDATES, REFERENCES)
    for name in ("ROUGE-L", "CIDEr"):
        assert scores.corpus[name] == pytest.approx(np.mean(scores.images[name]))
    assert all(len(images) == len(CANDIDATES) for images in scores.images.values())
    assert list(scores.corpus) == list(scores.images)
    assert not scores.notes


def test_single_image_has_no_cider():
    scores = score(CANDIDATES[:1], REFERENCES[:1])
    assert scores.corpus["CIDEr"] == 0
    assert any("single image" in note for note in scores.notes)
    assert not score(CANDIDATES[:1], REFERENCES[:1], ["BLEU"]).notes


def test_empty_candidate_scores_zero():
    scores = score(["", *CANDIDATES[1:]], REFERENCES)
    for name, images in scores.images.items():
        assert images[0] == pytest.approx(0, abs=1e-12), name
        assert math.isfinite(scores.corpus[name])
    everything = score(["", ""], REFERENCES[:2])
    assert max(everything.corpus.values()) == pytest.approx(0, abs=1e-12)


def test_tokenize_is_used_for_candidates_and_references():
    scores = score_captions(
        ["A dog!"],
        [["a  DOG", "?"]],
        tokenize=lambda text: text.lower().strip("!?").split(),
        metrics=["BLEU"],
    )
    assert scores.corpus["BLEU-2"] == pytest.approx(1, abs=1e-6)


def test_prints_nothing(capfd):
    score(CANDIDATES, REFERENCES)
    assert capfd.readouterr() == ("", "")


def test_scores_are_plain_floats_and_have_a_table():
    scores = score(CANDIDATES[:1], REFERENCES[:1])
    assert {type(value) for value in scores.corpus.values()} == {float}
    assert {type(value) for images in scores.images.values() for value in images} == {float}
    table = str(scores).splitlines()
    assert table[0].split()[0] == "BLEU-1"
    assert table[-1].startswith("note: CIDEr of a single image")


@pytest.mark.parametrize(
    ("candidates", "references", "metrics", "message"),
    [
        ([], [], METRICS, "candidates is empty"),
        (["a"], [["a"], ["b"]], METRICS, "references are of 2 images, expected as many as candidates, 1"),
        (["a", "b"], [["a"], [" "]], METRICS, r"references\[1\] has no sentence with words"),
        (["a"], [["a"]], ["SPICE"], "metrics has 'SPICE', expected some of BLEU, ROUGE-L, CIDEr, METEOR"),
    ],
)
def test_errors(candidates, references, metrics, message):
    with pytest.raises(ValueError, match=message):
        score(candidates, references, metrics)


def test_a_string_where_a_list_belongs():
    with pytest.raises(TypeError, match=r"references\[0\] is 'a b', expected a list of sentences"):
        score(["a b"], ["a b"])
    with pytest.raises(TypeError, match="metrics is 'BLEU', expected a list of names"):
        score(["a b"], [["a b"]], "BLEU")


def test_missing_extra_says_what_to_install(monkeypatch):
    assert CAPTION_SCORERS.installed
    monkeypatch.setitem(sys.modules, "pycocoevalcap", None)
    assert not CAPTION_SCORERS.installed
    with pytest.raises(
        ImportError, match=r'scoring captions needs pycocoevalcap: pip install "rnnlab\[eval\]"'
    ):
        score(CANDIDATES, REFERENCES)


@pytest.mark.parametrize("candidates", ["a dog", [["a", "dog"]]])
def test_candidates_are_sentences(candidates):
    pytest.importorskip("pycocoevalcap")
    with pytest.raises(TypeError, match="score_captions: candidates hold something else than sentences"):
        score_captions(candidates, [["a dog"]], tokenize=str.split)
