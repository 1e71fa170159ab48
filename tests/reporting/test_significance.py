import numpy as np

from rnnlab.metrics import CaptionScores
from rnnlab.reporting.results import Results
from rnnlab.reporting.significance import difference_rows
from rnnlab.tasks.captioning import CaptioningEvaluation
from rnnlab.tasks.classification import ClassificationEvaluation


def result(labels, predictions):
    labels, predictions = np.array(labels), np.array(predictions)
    accuracy = float((labels == predictions).mean())
    return Results(
        None, "val", ClassificationEvaluation("val", labels, predictions, 0.5, accuracy, np.eye(2, dtype=int))
    )


LABELS = [0, 1] * 20
WRONG = [1, 0] * 20


def test_differences_from_the_first_run():
    results = [result(LABELS, WRONG), result(LABELS, LABELS), result(LABELS, WRONG)]
    rows, notes = difference_rows(["one", "two", "three"], results, 999)
    assert rows == [
        (
            "accuracy",
            ["+1.0000 [+1.0000, +1.0000] p 0.002", "+0.0000 [+0.0000, +0.0000] p 1.000"],
        )
    ]
    (note,) = notes
    assert "paired bootstrap of 999 samples" in note


def test_a_small_p_value_is_not_printed_as_zero():
    rows, _ = difference_rows(["one", "two"], [result(LABELS, WRONG), result(LABELS, LABELS)], 9999)
    assert rows == [("accuracy", ["+1.0000 [+1.0000, +1.0000] p < 0.001"])]


def test_scores_without_statistics(monkeypatch):
    monkeypatch.setattr(ClassificationEvaluation, "statistics", lambda self: {})
    rows, notes = difference_rows(["one", "two"], [result(LABELS, WRONG)] * 2, 99)
    assert rows == []
    assert notes == ["two: no differences from one, because the bootstrap has none of the scores"]


def captions(tokenizer, names=("CIDEr",)):
    scores = CaptionScores(dict.fromkeys(names, 0.5), {name: [0.5, 0.5] for name in names}, [])
    evaluation = CaptioningEvaluation("val", ("a", "b"), [], [], [["x"], ["y"]], 2.0, scores, tokenizer)
    return Results(None, "val", evaluation)


def test_scores_that_only_one_run_has():
    both = [captions("simple", ("CIDEr", "ROUGE-L")), captions("simple")]
    for results in (both, both[::-1]):
        rows, _ = difference_rows(["one", "two"], results, 99)
        assert [name for name, _ in rows] == ["CIDEr"]


def test_captions_that_are_scored_by_different_tokenizers():
    rows, notes = difference_rows(["one", "two"], [captions("simple"), captions("ptb")], 99)
    assert rows == []
    assert notes == [
        "two: no differences from one, because the tokenizers are simple and ptb; --tokenizer sets one"
    ]


def test_runs_that_cannot_be_compared_in_pairs():
    results = [
        result(LABELS, LABELS),
        result(LABELS, WRONG),
        result(WRONG, WRONG),
        Results(None, "", None, ["no scores"]),
    ]
    rows, notes = difference_rows(["one", "two", "three", "four"], results, 99)
    assert rows == [("accuracy", ["-1.0000 [-1.0000, -1.0000] p 0.020", "-", "-"])]
    assert notes[1:] == [
        "three: no differences from one, because they scored other examples",
        "four: no differences from one, because one of them has no scores",
    ]
    rows, notes = difference_rows(["four", "two"], [results[3], results[1]], 99)
    assert rows == []
    assert notes == ["two: no differences from four, because one of them has no scores"]
