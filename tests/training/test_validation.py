from __future__ import annotations

import math

import pytest

from rnnlab.training.validation import validation_loss


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
