import numpy as np
import pytest

from rnnlab.reporting.comparison import comparison_text, states_text
from rnnlab.reporting.record import read_records
from rnnlab.reporting.results import Results
from rnnlab.tasks.classification import ClassificationEvaluation

from .conftest import history


def test_runs_side_by_side(write_run):
    one, two = (
        write_run(name, changes={"model.hidden_dim": dim}) for name, dim in (("one", 512), ("two", 9))
    )
    labels = np.zeros(2, int)
    evaluation = ClassificationEvaluation("val", labels, labels, 0.5, 0.75, np.eye(2, dtype=int))
    results = [Results(None, "val", evaluation, ["seen"]), Results(None, "", None, ["no scores: why"])]
    text = comparison_text(read_records([one, two]), results)
    lines = text.splitlines()
    assert [line.split() for line in lines[:2]] == [["Runs", "one", "two"], ["task", "captions", "captions"]]
    assert ["Scores", "of", "val", "one", "two"] in [line.split() for line in lines]
    assert "accuracy" in text
    assert "  one  training            4 █▃▁ 1.333" in lines
    assert "  two  validation          3 ▅▃▄ 2.5   best 2 in epoch 2" in lines
    assert ["model.hidden_dim", "512", "9"] in [line.split() for line in lines]
    assert "note: one: seen" in lines
    assert "note: two: no scores: why" in lines


def test_equal_recipes_are_called_equal(write_run):
    assert "The recipes are equal." in comparison_text(read_records([write_run("one"), write_run("two")]))


def test_a_run_without_a_recipe_is_not_called_equal(write_run):
    paths = [write_run("one"), write_run("two"), write_run("solver", recipe=False)]
    first, *_ = records = read_records(paths)
    text = comparison_text(records)
    assert "Not trained by a recipe: solver. The other recipes are equal." in text
    assert "The recipes are equal." not in text
    text = comparison_text([first, records[2]])
    assert text.splitlines()[-1].startswith("note: ")
    assert "Not trained by a recipe: solver.\n" in text


def test_a_score_that_a_run_lacks_is_a_dash(write_run):
    labels = np.zeros(2, int)
    evaluation = ClassificationEvaluation("val", labels, labels, 0.5, 0.75, np.eye(2, dtype=int))
    records = read_records([write_run("one"), write_run("two")])
    text = comparison_text(records, [Results(None, "val", evaluation, []), Results(None, "", None, [])])
    assert ["accuracy", "0.7500", "-"] in [line.split() for line in text.splitlines()]


def test_the_default_metrics_are_not_shortened(write_run):
    one, two = write_run("one"), write_run("two", changes={"evaluation.metrics": ["CIDEr"]})
    assert '["BLEU", "ROUGE-L", "CIDEr", "METEOR"]' in comparison_text(read_records([one, two]))


def test_one_run_is_described_alone(write_run):
    text = comparison_text(read_records([write_run()]))
    assert "recipe" not in text.lower()
    assert "Loss (nats per token), by epoch" in text


@pytest.mark.parametrize(("encoding", "drawn"), [("ascii", "@-_"), ("no such encoding", "@-_")])
def test_terminals_without_blocks_get_plain_characters(write_run, encoding, drawn):
    assert drawn in comparison_text(read_records([write_run()]), encoding=encoding)


def test_long_curves_and_values_are_shortened(write_run):
    rows = history(90, CIDEr=[0.5] * 90)
    long = "/a/very/long/folder/of/data/that/would/make/the/table/too/wide"
    one, two = write_run("one", rows), write_run("two", rows, changes={"data.directory": long})
    text = comparison_text(read_records([one, two]))
    assert "  one        0.5 " + 40 * "▁" + " 0.5" in text
    (line,) = [line for line in text.splitlines() if line.startswith("data.directory")]
    assert line.endswith("...uld/make/the/table/too/wide")


def test_a_run_without_epochs_has_its_notes(write_run):
    assert "no epoch is finished" in comparison_text(read_records([write_run(rows=[])]))


def test_the_states_of_runs_beside_their_scores(write_run):
    labels = np.zeros(2, int)
    evaluation = ClassificationEvaluation("val", labels, labels, 0.5, 0.75, np.eye(2, dtype=int))
    states = {"one": "failed", "two": "finished"}
    results = [Results(None, "val", evaluation, ["seen"])]
    text = states_text(states, read_records([write_run("two")]), results, notes=["one: why"])
    lines = [line.split() for line in text.splitlines()]
    assert lines[0][:5] == ["Scores", "of", "val", "state", "images"]
    assert lines[1] == ["one", "failed"]
    assert lines[2][:2] == ["two", "finished"]
    assert len(lines[2]) == len(lines[0]) - 2
    assert text.endswith("\n\nnote: one: why\nnote: seen")


def test_means_over_seeds_are_below_the_scores(write_run):
    paths = [write_run(f"seed={seed}", changes={"training.seed": seed}) for seed in (0, 1)]
    labels = np.zeros(2, int)
    results = [
        Results(
            None, "val", ClassificationEvaluation("val", labels, labels, 0.5, accuracy, np.eye(2, dtype=int))
        )
        for accuracy in (0.25, 0.75)
    ]
    records = read_records(paths)
    states = dict.fromkeys((record.name for record in records), "finished")
    for text in (comparison_text(records, results), states_text(states, records, results)):
        (line,) = [line for line in text.splitlines() if line.startswith("all ")]
        assert line.split() == ["all", "0.5000", "±", "0.0000", "0.5000", "±", "0.3536", "2"]
        assert "Mean ± std over seeds" in text


def test_states_alone():
    text = states_text({"one": "interrupted", "another": "not started"})
    assert text == "Runs           state\none      interrupted\nanother  not started"
