"""A model with one thing wrong, beside the library's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnnlab.course.model_check import loss_problems, sample_problems
from rnnlab.models import CaptioningRNN

CELLS = ("rnn", "lstm")


class Own:
    """The library's model with the interface of a student's."""

    def __init__(self, word_to_idx: Any, **options: Any) -> None:
        self.model = CaptioningRNN(word_to_idx, **options)
        self.params = {name: array.copy() for name, array in self.model.params.items()}

    def _updated(self) -> CaptioningRNN:
        for name, array in self.params.items():
            self.model.params[name] = array
        return self.model

    def loss(self, x: Any, y: Any) -> Any:  # students choose the names
        loss, gradients = self._updated().loss(x, y)
        return loss, dict(gradients.items())

    def sample(self, x: Any, max_length: int) -> Any:
        return self._updated().sample(x, max_length)


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
def test_a_right_model(cell: str) -> None:
    assert loss_problems(Own, cell) == []
    assert sample_problems(Own, cell) == []


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda loss, grads: loss, "loss returns a float, expected two results: loss, grads"),
        (lambda loss, grads: (np.float32(loss), grads), "loss has dtype float32, expected float64"),
        (lambda loss, grads: (None, grads), "loss is None, expected a number"),
        (lambda loss, grads: (np.array([loss]), grads), "loss is an array of shape (1,)"),
        (lambda loss, grads: (loss, [*grads]), "grads is a list, expected a dict"),
        (lambda loss, grads: (loss, {**grads, "b": grads["b"][None]}), "the gradient of b has shape (1, "),
        (lambda loss, grads: (loss, {**grads, "b": 0 * grads["b"]}), "the gradient of b is zero"),
        (lambda loss, grads: (loss, {**grads, "b": np.nan * grads["b"]}), "b has NaN or infinite elements"),
        (lambda loss, grads: (loss, {**grads, "b": grads["b"] / 4}), "b is 0.25 times what it should be"),
        (lambda loss, grads: (loss, {**grads, "b": grads["b"] + 1}), "b is wrong, relative error"),
        (lambda loss, grads: (loss, {**grads, "b": np.float32(grads["b"])}), "b has dtype float32"),
        (lambda loss, grads: (loss, {**grads, "c": 1}), "grads has c, which is not among params"),
    ],
)
def test_a_wrong_loss(cell: str, change: Any, message: str) -> None:
    class Wrong(Own):
        def loss(self, features: Any, captions: Any) -> Any:
            return change(*super().loss(features, captions))

    (problem,) = loss_problems(Wrong, cell)
    assert message in problem


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda captions: None, "sample returns None, expected integers (N, max_length)"),
        (lambda captions: captions[:, 1:], "sample returns an array of shape"),
        (lambda captions: captions.astype(float), "expected integers"),
        (lambda captions: captions[::-1], " as word "),
        (lambda captions: captions + 100, "caption 0 has token 10"),
    ],
)
def test_a_wrong_sample(cell: str, change: Any, message: str) -> None:
    class Wrong(Own):
        def sample(self, features: Any, max_length: int) -> Any:
            return change(super().sample(features, max_length))

    (problem,) = sample_problems(Wrong, cell)
    assert message in problem


def test_other_parameters() -> None:
    class Wrong(Own):
        def __init__(self, word_to_idx: Any, **options: Any) -> None:
            super().__init__(word_to_idx, **options)
            del self.params["b_vocab"]

    with pytest.raises(ValueError, match=r"params has W_proj, .*, expected W_proj \(6, 8\)"):
        loss_problems(Wrong, "rnn")


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"sentence_lengths": np.full(4, 4)}, "it counts padding"),
        ({"factor": 4}, "it is not divided by N"),
        ({"factor": 4 / 13}, "it is divided by the number of tokens, expected N"),
        ({"factor": 1 / 4}, "it is divided by N T, expected N"),
        ({"features": 0}, "h0 is zero, expected the projected features"),
        ({"factor": 1.5}, ""),
    ],
)
def test_the_cause_of_a_wrong_loss(change: Any, cause: str) -> None:
    class Wrong(Own):
        def loss(self, features: Any, captions: Any) -> Any:
            options, model = dict(change), self._updated()
            factor = options.pop("factor", 1)
            if "features" in options:
                features = features * options.pop("features")
                model.params["b_proj"][...] = 0
            loss, grads = model.loss(features, captions, **options)
            return factor * loss, dict(grads.items())

    wrong, note = loss_problems(Wrong, "lstm")
    assert wrong.startswith("loss is ")
    assert note == f"{cause}; the gradients are compared when the loss is right".removeprefix("; ")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("features", "writes into its argument features"),
        ("captions", "writes into its argument captions"),
        ("b", "changes b of params, which only an update may do"),
    ],
)
def test_side_effects(changed: str, message: str) -> None:
    class Wrong(Own):
        def loss(self, features: Any, captions: Any) -> Any:
            results = super().loss(features.copy(), captions.copy())
            {"features": features, "captions": captions, **self.params}[changed][...] += 1
            return results

        def sample(self, features: Any, max_length: int) -> Any:
            captions = super().sample(features.copy(), max_length)
            {"features": features, **self.params}[changed][...] += 1
            return captions

    (problem,) = loss_problems(Wrong, "rnn")
    assert problem.startswith(f"loss {message}")
    if changed != "captions":
        (problem,) = sample_problems(Wrong, "rnn")
        assert problem.startswith(f"sample {message}")
