from __future__ import annotations

import math

import pytest

from rnnlab.training.nonfinite import NonFiniteError
from rnnlab.training.validation import Monitor, validation_loss


@pytest.mark.parametrize("batch_size", [3, 20, 64])
def test_validation_loss_is_per_token(model, data, batch_size):
    nats, tokens = model.nll(*data.splits["val"])
    found = validation_loss(model, data, batch_size)
    assert found == pytest.approx(
        {"val_loss": nats / tokens, "val_perplexity": math.exp(nats / tokens)}, rel=1e-12
    )
    assert set(validation_loss(model, data, batch_size, split="train")) == {"train_loss", "train_perplexity"}


def test_validation_of_an_enormous_loss(model, data):
    model.params["W"] *= 1e6
    assert validation_loss(model, data, 64)["val_perplexity"] == math.inf


def test_validation_of_nothing(model, data):
    data.splits["val"] = tuple(array[:0] for array in data.splits["val"])
    with pytest.raises(ValueError, match="split 'val' has no tokens"):
        validation_loss(model, data, 64)


@pytest.mark.parametrize(
    ("name", "values", "improved"),
    [
        ("val_loss", [3, 2, 2, 4, 1], [True, True, False, False, True]),
        ("val_perplexity", [3, 2, 2, 4, 1], [True, True, False, False, True]),
        ("CIDEr", [0.1, 0.3, 0.3, 0.2, 0.4], [True, True, False, False, True]),
    ],
)
def test_monitor_knows_better_from_worse(name, values, improved):
    monitor = Monitor(name)
    assert [monitor.update({name: value}, epoch) for epoch, value in enumerate(values, 1)] == improved
    assert (monitor.best, monitor.best_epoch) == (values[-1], 5)
    assert not monitor.exhausted


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
