from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab import runs
from rnnlab.metrics import JavaError
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.reporting.record import read_records
from rnnlab.reporting.results import Results, comparability, notes_of, results_of, score_rows
from rnnlab.tasks.classification import ClassificationEvaluation


def evaluation(accuracy, split="val"):
    labels = np.zeros(2, int)
    return ClassificationEvaluation(split, labels, labels, 0.5, accuracy, np.eye(2, dtype=int))


@pytest.fixture
def opened(monkeypatch):
    """Runs whose data have the splits val and test; the arguments of their evaluations."""
    recipe = recipe_from_dict({"data": {"kind": "shapes"}, "evaluation": {"tokenizer": "ptb"}})
    run = SimpleNamespace(recipe=recipe, data=SimpleNamespace(splits={"val": 1, "test": 1}))
    calls = []

    def evaluate(run, split, **options):
        calls.append((split, options))
        return evaluation(0.9, split)

    monkeypatch.setattr(runs, "load_run", lambda directory, device: run)
    monkeypatch.setattr(runs, "evaluate", evaluate)
    return run, calls


def test_the_validation_split_is_scored_by_default(write_run, opened):
    (record,), (run, calls) = read_records([write_run()]), opened
    assert results_of(record, first=4).split == "val"
    assert results_of(record, "test").split == "test"
    del run.data.splits["val"]
    assert results_of(record).split == "test"
    assert [split for split, _ in calls] == ["val", "test", "test"]
    assert [options["evaluation"].max_images for _, options in calls] == [4, None, None]


def test_one_tokenizer_for_all_runs(write_run, opened):
    (record,), (_, calls) = read_records([write_run()]), opened
    for tokenizer in ("simple", "ptb", None):
        results_of(record, tokenizer=tokenizer)
    assert [options["evaluation"].tokenizer for _, options in calls] == ["simple", "ptb", "ptb"]


def test_without_java_the_simple_tokenizer_is_used(write_run, opened, monkeypatch):
    evaluated = runs.evaluate

    def evaluate(run, split, *, evaluation, **options):
        if evaluation.tokenizer == "ptb":
            raise JavaError("no Java")
        return evaluated(run, split, evaluation=evaluation, **options)

    monkeypatch.setattr(runs, "evaluate", evaluate)
    found = results_of(read_records([write_run()])[0])
    assert found.evaluation is not None
    assert found.notes[0] == "the simple tokenizer instead of the recipe's: no Java"


def test_without_java_there_is_no_other_tokenizer_of_classes(write_run, opened, monkeypatch):
    opened[0].recipe = recipe_from_dict({"data": {"kind": "digits"}})

    def evaluate(*arguments, **options):
        raise JavaError("no Java")

    monkeypatch.setattr(runs, "evaluate", evaluate)
    assert results_of(read_records([write_run()])[0]).notes == ["no scores: no Java"]


def test_metrics_of_other_tasks_are_left_out(write_run, opened):
    (record,), (_, calls) = read_records([write_run()]), opened
    results_of(record, metrics=["CS-k", "CIDEr"])
    assert [list(options["evaluation"].metrics) for _, options in calls] == [["CIDEr"]]
    found = results_of(record, metrics=["CS-k"])
    assert (found.evaluation, found.notes) == (None, ["no scores: CS-k cannot score captions"])


def test_notes_that_all_runs_have_name_no_run():
    results = [Results(None, "val", None, notes) for notes in (["a", "both"], ["both", "b", "b"])]
    assert notes_of(["one", "two"], results) == ["both", "one: a", "two: b"]
    assert notes_of(["one"], results[:1]) == ["a", "both"]
    assert notes_of([], []) == []


@pytest.mark.parametrize("error", [ImportError("needs an extra"), ValueError("split is empty")])
def test_what_cannot_be_scored_is_named(write_run, opened, monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(runs, "evaluate", fail)
    found = results_of(read_records([write_run()])[0])
    assert found.run is not None
    assert (found.evaluation, found.notes) == (None, [f"no scores: {error}"])


def test_a_run_that_cannot_be_opened_is_a_note(write_run, opened):
    (record,) = read_records([write_run()])
    found = results_of(record, "dev")
    assert found.run is None
    assert found.notes == ["neither scores nor examples: no split 'dev', only val, test"]


def test_a_checkpoint_without_a_model_is_a_note(write_run):
    found = results_of(read_records([write_run()])[0])  # its model's config is empty
    assert found.run is None
    assert found.notes[0].startswith("neither scores nor examples: ")


def test_scores_are_side_by_side():
    rows = score_rows([Results(None, "val", evaluation(0.9)), Results(None, "", None)])
    assert rows == [("images", ["2", ""]), ("loss", ["0.5000", ""]), ("accuracy", ["0.9000", ""])]


def test_what_makes_runs_incomparable_is_named(write_run):
    same = read_records([write_run("one"), write_run("two")])
    results = [Results(None, "val", evaluation(0.9)), Results(None, "val", evaluation(0.8))]
    assert comparability(same, results) == []
    tasks = read_records([write_run("three"), write_run("four", model="SequenceClassifier")])
    assert "different tasks (captions, classes)" in comparability(tasks, results)[0]
    data = read_records([write_run("five"), write_run("six", changes={"data.max_train": 7})])
    assert "the tables [data] differ" in comparability(data, results)[0]
    damaged = [replace(data[0], recipe={"data": 3}), data[1]]
    assert len(comparability(damaged, results)) == 1
    attends = {"data.features": "local", "model.attention": "dot"}
    features = read_records([write_run("seven"), write_run("eight", changes=attends)])
    assert comparability(features, results) == []  # the captions and references are the same
    results[1] = Results(None, "test", evaluation(0.8))
    assert comparability(same, results) == ["the scores are of different splits: val, test"]
    rows = results[0].evaluation.rows
    results = [Results(None, "val", SimpleNamespace(tokenizer=name, rows=rows)) for name in ("ptb", "simple")]
    assert "different tokenizers" in comparability(same, results)[0]


def test_runs_scored_on_different_numbers_of_images_are_incomparable(write_run):
    records = read_records([write_run("one"), write_run("two")])

    def results(*scored, splits=("val", "val")):
        rows = [[("images", count), ("CIDEr", "0.5")] for count in scored]
        return [
            Results(None, split, SimpleNamespace(rows=lambda each=each: each))
            for split, each in zip(splits, rows, strict=True)
        ]

    assert comparability(records, results("500", "500")) == []
    assert comparability(records, results("500", "50")) == [
        "the runs are scored on 500 and 50 images, so their scores are not comparable; give --max-images"
    ]
    (note,) = comparability(records, results("500", "50", splits=("val", "test")))
    assert "different splits" in note
    texts, different = results("50", "80"), "so their scores are not comparable"
    for unit, scored in (("lines", "50 and 80 lines"), ("sentences", "50 sentences and 80 lines")):
        units = unit, "lines"
        for each, name, count in zip(texts, units, ("50", "80"), strict=True):
            each.evaluation.rows = lambda row=(name, count): [row]
        assert comparability(records, texts) == [f"the runs are scored on {scored}, {different}"]
