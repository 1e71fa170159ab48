from __future__ import annotations

import math

import pytest

from rnnlab.metrics import METRICS
from rnnlab.training import Solver
from rnnlab.training.monitor import MODES, Monitor, constant_monitor, mode_of
from rnnlab.training.nonfinite import NonFiniteError


def test_a_metric_that_is_the_same_in_all_epochs_is_noted():
    monitor = Monitor("BLEU")
    rows = [{"epoch": epoch, "BLEU": 0.0} for epoch in (1, 2, 3)]
    assert constant_monitor(monitor, rows) == (
        "note: BLEU is 0 in all 3 epochs, so the first one counts as the best; "
        "set training.monitor = 'val_loss' to choose by the loss"
    )
    assert constant_monitor(monitor, rows[:1]) == ""
    assert constant_monitor(monitor, [*rows, {"epoch": 4, "BLEU": 0.1}]) == ""
    assert constant_monitor(Monitor("CIDEr"), rows) == ""


@pytest.mark.parametrize(
    ("name", "mode", "values"),
    [
        ("val_loss", None, [3, 2, 2, 4, 1]),
        ("val_perplexity", None, [3, 2, 2, 4, 1]),
        ("CIDEr", None, [0.1, 0.3, 0.3, 0.2, 0.4]),
        ("word_error_rate", "min", [3, 2, 2, 4, 1]),
        ("lossless", "max", [0.1, 0.3, 0.3, 0.2, 0.4]),
        ("CIDEr", "max", [0.1, 0.3, 0.3, 0.2, 0.4]),
    ],
)
def test_monitor_knows_better_from_worse(name, mode, values):
    monitor, improved = Monitor(name, mode=mode), [True, True, False, False, True]
    assert [monitor.update({name: value}, epoch) for epoch, value in enumerate(values, 1)] == improved
    assert (monitor.best, monitor.best_epoch) == (values[-1], 5)
    assert not monitor.exhausted


def test_a_mode_that_contradicts_a_known_metric():
    with pytest.raises(ValueError, match="monitor_mode is 'max', but a smaller val_loss is better"):
        Monitor("val_loss", mode="max")
    with pytest.raises(ValueError, match="monitor_mode is 'min', but a larger CIDEr is better"):
        Monitor("CIDEr", mode="min")


def test_monitor_loses_patience():
    monitor = Monitor("val_loss", patience=2)
    exhausted = []
    for epoch, value in enumerate([3, 4, 2, 2, 5], 1):
        monitor.update({"val_loss": value}, epoch)
        exhausted.append(monitor.exhausted)
    assert exhausted == [False, False, False, False, True]
    assert monitor.best_epoch == 3


def test_monitor_state_continues():
    one, other = Monitor("val_loss", patience=2), Monitor("val_loss", patience=2)
    one.update({"val_loss": 1.0}, 1)
    one.update({"val_loss": 2.0}, 2)
    other.load_state(one.state())
    assert (other.best, other.best_epoch, other.exhausted) == (1.0, 1, False)
    other.update({"val_loss": 1.5}, 3)
    assert other.exhausted


def test_monitor_needs_its_metric():
    with pytest.raises(ValueError, match="monitor is 'CIDEr', but .* returned val_loss, val_perplexity"):
        Monitor("CIDEr").update({"val_loss": 1, "val_perplexity": 2}, 1)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_monitor_refuses_what_is_not_finite(value):
    with pytest.raises(NonFiniteError, match=f"epoch 4: val_loss is {value}"):
        Monitor("val_loss").update({"val_loss": value}, 4)


def test_every_metric_of_the_library_has_a_mode():
    scores = {score for of_metric in METRICS.values() for score in of_metric}
    assert set(MODES) == {"val_loss", "val_perplexity", "val_accuracy", "BLEU", *scores}


def test_a_metric_of_one_s_own_needs_a_mode(model, data):
    message = (
        "monitor is 'val_lossless', expected one of val_loss, .*, or another metric that evaluate returns"
    )
    with pytest.raises(ValueError, match=message):
        mode_of("val_lossless")
    evaluate = iter([0.2, 0.4, 0.3])
    options = {
        "monitor": "val_lossless",
        "evaluate": lambda model: {"val_lossless": next(evaluate)},
        "num_epochs": 3,
        "verbose": False,
    }
    with pytest.raises(ValueError, match=message):
        Solver(model, data, **options)
    solver = Solver(model, data, **options, monitor_mode="max")
    solver.train()
    assert (solver.monitor.best, solver.monitor.best_epoch) == (0.4, 2)
    assert solver.options.monitor_mode == "max"
    with pytest.raises(
        ValueError, match="Solver: monitor_mode is 'most', expected one of 'min', 'max' or None"
    ):
        Solver(model, data, **options, monitor_mode="most")
