import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import rnnlab
from rnnlab.metrics.translation import LengthScore
from rnnlab.reporting.scores import lengths_text, scores_table, write_scores
from rnnlab.tasks.classification import ClassificationEvaluation


def test_a_confusion_matrix_is_a_line_for_each_class():
    confusion = np.array([[1200, 0, 3], [0, 0, 0], [1, 0, 1]])
    labels = np.zeros(1, int)
    text = scores_table(ClassificationEvaluation("test", labels, labels, 0.5, 0.9967, confusion)).splitlines()
    assert [line.split() for line in text[:3]] == [
        ["images", "1"],
        ["loss", "0.5000"],
        ["accuracy", "0.9967"],
    ]
    assert [line.split() for line in text[5:]] == [
        ["0", "1,200", ".", "3", "99.8%"],
        ["1", ".", ".", ".", "-"],
        ["2", "1", ".", "1", "50.0%"],
    ]


def test_scores_are_written_with_their_run_and_split(tmp_path):
    labels = np.array([0, 1])
    remarks = ["the epoch was chosen on val"]
    evaluation = ClassificationEvaluation("val", labels, labels, 0.5, 1.0, np.eye(2, dtype=int), remarks)
    run = SimpleNamespace(directory=Path("runs") / "one", members=())
    write_scores(tmp_path / "scores.json", evaluation, run, "val")
    written = json.loads((tmp_path / "scores.json").read_text())
    assert (written["rnnlab_version"], written["run"], written["split"]) == (
        rnnlab.__version__,
        "runs/one",
        "val",
    )
    assert written["corpus"]["accuracy"] == 1.0
    assert "note: the epoch was chosen on val" in scores_table(evaluation)
    assert scores_table(evaluation, run) == scores_table(evaluation)


def test_scores_by_length(tmp_path):
    scores = [LengthScore(0, 9, 1200, 31.416), LengthScore(10, None, 0, None)]
    assert [line.split() for line in lengths_text(scores).splitlines()] == [
        ["source", "words", "sentences", "BLEU"],
        ["0", "to", "9", "1,200", "31.42"],
        ["10", "or", "more", "0", "-"],
    ]
    labels = np.array([0, 1])
    evaluation = ClassificationEvaluation("val", labels, labels, 0.5, 1.0, np.eye(2, dtype=int))
    run = SimpleNamespace(directory=Path("one"), members=())
    write_scores(tmp_path / "scores.json", evaluation, run, "val", scores)
    _, longer = json.loads((tmp_path / "scores.json").read_text())["by_length"]
    assert longer == {"least": 10, "most": None, "sentences": 0, "bleu": None}


def test_a_run_whose_name_is_not_utf_8(tmp_path):
    directory, labels = os.fsdecode(b"runs/\xffx"), np.array([0, 1])
    evaluation = ClassificationEvaluation("val", labels, labels, 0.5, 1.0, np.eye(2, dtype=int))
    run = SimpleNamespace(directory=Path(directory), members=())
    write_scores(tmp_path / "scores.json", evaluation, run, "val")
    assert json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["run"] == directory


def test_a_number_that_is_not_finite_is_null(tmp_path):
    labels = np.array([0, 1])
    evaluation = ClassificationEvaluation("val", labels, labels, float("inf"), 1.0, np.eye(2, dtype=int))
    write_scores(
        tmp_path / "scores.json", evaluation, SimpleNamespace(directory=Path("one"), members=()), "val"
    )
    assert json.loads((tmp_path / "scores.json").read_text())["corpus"] == {"loss": None, "accuracy": 1.0}


def test_the_scores_of_an_ensemble_name_its_runs(tmp_path):
    labels = np.array([0, 1])
    evaluation = ClassificationEvaluation("test", labels, labels, 0.5, 1.0, np.eye(2, dtype=int))
    directories = (Path("runs") / "one", Path("runs") / "two")
    model = SimpleNamespace(average="log_probabilities")
    run = SimpleNamespace(directory=directories[0], members=directories, model=model)
    write_scores(tmp_path / "scores.json", evaluation, run, "test")
    written = json.loads((tmp_path / "scores.json").read_text())
    assert (written["runs"], written["average"]) == (["runs/one", "runs/two"], "log_probabilities")
    assert "run" not in written
    note = "note: an ensemble of 2 runs, the mean of their log-probabilities"
    assert note in scores_table(evaluation, run).splitlines()
