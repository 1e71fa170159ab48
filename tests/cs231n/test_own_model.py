"""A model that a student wrote, trained by the course's solver."""

import re

import numpy as np
import pytest

from rnnlab.cs231n.captioning_solver import CaptioningSolver
from rnnlab.cs231n.own_model import OwnModel
from rnnlab.layers import affine_backward, affine_forward, temporal_softmax_loss
from rnnlab.training import NonFiniteError

V, D = 6, 3


class Bag:
    """Scores of all words from the features alone, with the course's interface."""

    def __init__(self, dtype=np.float64, change=None):
        rng = np.random.default_rng(0)
        self.params = {"W": rng.standard_normal((D, V)).astype(dtype), "b": np.zeros(V, dtype)}
        self.change = change or (lambda loss, grads: (loss, grads))

    def loss(self, features, captions):
        T = captions.shape[1]
        scores, cache = affine_forward(
            features.astype(self.params["W"].dtype), self.params["W"], self.params["b"]
        )
        repeated = np.repeat(scores[:, None], T - 1, axis=1)
        loss, dscores = temporal_softmax_loss(repeated, captions[:, 1:], captions[:, 1:] != 0)
        _, dW, db = affine_backward(dscores.sum(axis=1), cache)
        return self.change(loss, {"b": db, "W": dW})


def data():
    words = ["<NULL>", "<START>", "<END>", "<UNK>", "a", "b"]
    return {
        "train_captions": np.array([[1, 4, 5, 2], [1, 5, 2, 0], [1, 4, 2, 0]], np.int32),
        "train_image_idxs": np.arange(3),
        "train_features": np.random.default_rng(1).standard_normal((3, D)).astype(np.float32),
        "train_urls": ["a", "b", "c"],
        "idx_to_word": words,
        "word_to_idx": {word: token for token, word in enumerate(words)},
    }


def solver_of(model, **options):
    return CaptioningSolver(
        model, data(), update_rule="sgd", optim_config={"learning_rate": 0.1}, verbose=False, **options
    )


def batch():
    given = data()
    return given["train_features"], given["train_captions"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_is_that_of_the_gradients(dtype):
    """The parameters in the model's dict are those of the update rule, at each iteration."""
    model, by_hand, losses = Bag(dtype), Bag(dtype), []
    solver = solver_of(model, num_epochs=4, batch_size=3)
    solver.train()
    for _ in range(4):
        loss, grads = by_hand.loss(*batch())
        losses.append(loss)
        for name, array in by_hand.params.items():
            array -= 0.1 * grads[name]
    np.testing.assert_allclose(solver.loss_history, losses, rtol=1e-5)
    assert losses[-1] < losses[0]
    for name, array in by_hand.params.items():
        assert model.params[name].dtype == dtype
        np.testing.assert_allclose(model.params[name], array, rtol=1e-5, atol=1e-6)


def test_arrays_that_are_put_into_the_dict_count():
    """As the course's notebooks do between two trainings."""
    model = Bag()
    solver = solver_of(model, num_epochs=1, batch_size=3)
    fixed = np.linspace(-1, 1, D * V).reshape(D, V)
    model.params["W"] = fixed.copy()
    expected = Bag()
    expected.params["W"] = fixed
    solver.train()
    assert solver.loss_history == [pytest.approx(expected.loss(*batch())[0])]
    assert np.abs(model.params["W"] - fixed).max() > 1e-3
    assert solver.model.model is model


def test_a_second_solver_goes_on_with_the_same_model():
    model, whole = Bag(), Bag()
    first, second = solver_of(model, num_epochs=2, batch_size=3), solver_of(model, num_epochs=2, batch_size=3)
    first.train()
    second.train()
    both = solver_of(whole, num_epochs=4, batch_size=3)
    both.train()
    np.testing.assert_allclose(first.loss_history + second.loss_history, both.loss_history, rtol=1e-12)


def test_a_run_directory_holds_the_parameters(tmp_path):
    model = Bag()
    solver_of(model, num_epochs=1, batch_size=3, run_dir=tmp_path / "run").train()
    assert OwnModel(model).config() == {"model": "Bag", "params": {"W": [D, V], "b": [V]}}
    assert (tmp_path / "run" / "last.h5").exists()


def test_gradients_of_the_workspace_are_overwritten():
    model = OwnModel(Bag())
    loss, grads = model.loss(*batch())
    workspace = model.params.zeros_like()
    workspace.flat[...] = 7
    again, found = model.loss(*batch(), rng=np.random.default_rng(0), grads=workspace)
    assert found is workspace
    assert again == loss
    np.testing.assert_array_equal(found.flat, grads.flat)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda loss, grads: None, ValueError, "returned None, expected loss and grads, a dict"),
        (lambda loss, grads: loss, ValueError, "returned a float64, expected loss and grads, a dict"),
        (
            lambda loss, grads: (loss, grads, 1),
            ValueError,
            "returned a tuple of float64, dict, int, expected loss",
        ),
        (lambda loss, grads: (loss, [grads]), ValueError, "returned a tuple of float64, list, expected loss"),
        (lambda loss, grads: (None, grads), TypeError, "loss is None, expected a number"),
        (
            lambda loss, grads: (np.ones(2), grads),
            TypeError,
            "loss is an array of shape (2,) and dtype float64, expected a number",
        ),
        (
            lambda loss, grads: (loss, {"b": grads["b"]}),
            ValueError,
            "grads has b, expected the names of params, W, b",
        ),
        (
            lambda loss, grads: (loss, {}),
            ValueError,
            "grads has no names, expected the names of params, W, b",
        ),
        (
            lambda loss, grads: (loss, grads | {"dW": grads["W"]}),
            ValueError,
            "grads has b, W, dW, expected the names of params, W, b",
        ),
        (
            lambda loss, grads: (loss, grads | {"W": grads["W"].T}),
            ValueError,
            "grads has W of shape (6, 3), expected (3, 6) as params",
        ),
        (
            lambda loss, grads: (loss, grads | {"W": grads["W"].astype(int)}),
            TypeError,
            "grads has an array of shape (3, 6) and dtype int64 for W, expected an array of",
        ),
        (
            lambda loss, grads: (loss, grads | {"W": None}),
            TypeError,
            "grads has None for W, expected an array of floating-point numbers",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_results_of_the_loss(change, error, message):
    with pytest.raises(error, match=f"^Bag.loss: {re.escape(message)}"):
        solver_of(Bag(change=change)).train()


def test_gradients_that_are_not_finite():
    model = Bag(change=lambda loss, grads: (loss, grads | {"b": grads["b"] * np.nan}))
    with pytest.raises(NonFiniteError, match="b"):
        solver_of(model).train()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([np.ones(2)], "Bag: params is .*, expected a dict of arrays"),
        ({}, "Bag: params is {}, expected a dict of arrays"),
        ({"W": [1.0]}, "Bag.params has a list for W, expected an array of floating-point numbers"),
        (
            {"W": np.ones(2, int)},
            r"Bag.params has an array of shape \(2,\) and dtype int64 for W, expected an array of",
        ),
        (
            {"W": np.ones(2, np.float32), "b": np.ones(2)},
            "Bag: params has W float32, b float64, expected all float32 or all float64",
        ),
        ({"W": np.ones(2, np.float16)}, "Bag: params has W float16, expected all float32 or all float64"),
    ],
)
def test_wrong_parameters(params, message):
    model = Bag()
    model.params = params
    with pytest.raises(TypeError, match=message):
        solver_of(model)


def test_what_is_no_model():
    with pytest.raises(TypeError, match="Solver: model is a int without params, loss, config"):
        solver_of(3)


def test_options_that_the_course_interface_does_not_have():
    with pytest.raises(TypeError, match="accumulate is 2, but the loss of this OwnModel takes no part_of"):
        solver_of(Bag(), accumulate=2)
    with pytest.raises(TypeError, match="Solver: model is a OwnModel without to"):
        solver_of(Bag(), device="cpu")
