from __future__ import annotations

import math

import numpy as np
import pytest

from rnnlab.training.validation import metrics_of, validation_loss


@pytest.mark.parametrize("batch_size", [0, 2.5, "64"])
def test_a_batch_size_that_is_no_count(model, data, batch_size):
    with pytest.raises(ValueError, match="^validation_loss: batch_size is .*, expected an integer of at l"):
        validation_loss(model, data, batch_size)


def test_a_likelihood_without_its_number_of_tokens(model, data):
    model.nll = lambda *batch: 1.0
    with pytest.raises(TypeError, match="^LinearModel.nll returned a float, expected two results: total, to"):
        validation_loss(model, data, 64)


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


def test_metrics_are_floats(model):
    found = metrics_of(lambda _: {"val_loss": np.float32(0.5), "BLEU": 1}, model)
    assert found == {"val_loss": 0.5, "BLEU": 1.0}
    assert {type(value) for value in found.values()} == {float}


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([0.5], r"^evaluate returned \[0.5\], expected a mapping of names to numbers$"),
        ({"val_loss": "a"}, "^evaluate returned val_loss = 'a', expected a number$"),
    ],
)
def test_metrics_are_numbers_by_name(returned, message, model):
    with pytest.raises(TypeError, match=message):
        metrics_of(lambda _: returned, model)
