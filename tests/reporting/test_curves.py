import numpy as np
import pytest

from rnnlab.reporting.curves import charts
from rnnlab.reporting.record import read_records

from .conftest import history


def by_heading(*paths):
    return {chart.heading: chart for chart in charts(read_records(paths))}


def test_both_losses_are_per_token_on_one_pair_of_axes(write_run):
    chart = by_heading(write_run())["Loss (nats per token)"]
    training, validation = chart.curves
    assert (training.label, validation.label) == ("training", "validation")
    # 40 / epoch per caption of 10 tokens
    assert training.values == pytest.approx({1: 4.0, 2: 2.0, 3: 4 / 3})
    assert {round(value, 6) for _, value in training.points} == {4.0, 2.0, round(4 / 3, 6)}
    assert training.points[0][0] < 0.1
    assert training.points[-1][0] == 3.0
    assert validation.points == [(1, 3.0), (2, 2.0), (3, 2.5)]
    assert (training.best, validation.best) == (None, 2)
    assert "nats per token (words, or characters, and the ends of sentences or lines" in chart.notes[-1]


def test_many_iterations_are_drawn_as_means(write_run):
    rows = [row | {"iteration": 20 * row["epoch"]} for row in history(30, val_loss=[1.0] * 30)]
    training = by_heading(write_run(rows=rows))["Loss (nats per token)"].curves[0]
    assert len(training.points) == 60
    assert len(training.values) == 30


def test_without_iterations_the_means_of_epochs_are_drawn(write_run):
    path = write_run()
    (path / "last.h5").unlink()
    training = by_heading(path)["Loss (nats per token)"].curves[0]
    assert training.points == [(0.5, 4.0), (1.5, 2.0), (2.5, pytest.approx(4 / 3))]


def test_losses_of_different_units_are_in_different_charts(write_run):
    rows = history(3, tokens=1.0, val_loss=[3.0, 2.0, 2.5])
    found = by_heading(write_run("one"), write_run("two", rows, model="SequenceClassifier"))
    assert [curve.run for curve in found["Loss (nats per token)"].curves] == [0, 0]
    training, validation = found["Loss (nats per sequence)"].curves
    assert (training.run, validation.run) == (1, 1)
    assert training.values[1] == 40.0


def test_other_columns_have_a_chart_each(write_run):
    rows = history(3, val_loss=[3.0, 2.0, 2.5], val_perplexity=[20.0, np.inf, 12.0], CIDEr=[0.1, 0.2, 0.3])
    found = by_heading(write_run(rows=rows))
    assert list(found) == [
        "Loss (nats per token)",
        "Validation perplexity",
        "Validation CIDEr",
        "Norm of the gradient before clipping",
        "Speed of training (tokens per second)",
        "Learning rate",
    ]
    assert [chart.is_validation for chart in found.values()] == [True, True, True, False, False, False]
    (perplexity,) = found["Validation perplexity"].curves
    assert perplexity.values == {1: 20.0, 3: 12.0}  # what is not finite is not drawn


def test_a_metric_that_only_one_run_has(write_run):
    rows = history(3, val_loss=[3.0, 2.0, 2.5], CIDEr=[0.1, 0.2, 0.3])
    found = by_heading(write_run("one"), write_run("two", rows))
    assert [curve.run for curve in found["Validation CIDEr"].curves] == [1]


def test_epochs_of_stages_are_counted_through_and_a_reward_is_no_loss(write_run):
    path = write_run("run", history(2, val_loss=[1.0, 0.5], reward=[0.1, 0.2]), objective={"samples": 5})
    write_run("run/stage1", history(3, val_loss=[3.0, 2.0, 2.5]))
    found = by_heading(path)
    training, validation = found["Loss (nats per token)"].curves
    assert list(training.values) == [1, 2, 3]
    assert validation.values == {1: 3.0, 2: 2.0, 3: 2.5, 4: 1.0, 5: 0.5}
    assert validation.best == 5
    assert any("epochs 4 to 5: trained for a reward" in note for note in found["Loss (nats per token)"].notes)


def test_without_epochs_there_are_no_charts(write_run):
    assert charts(read_records([write_run(rows=[])])) == []
