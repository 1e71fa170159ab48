"""Subclasses of the models: a loss of the hidden states, and parameters of their own."""

import numpy as np
import pytest

from rnnlab.gradcheck import check_model, projected_check
from rnnlab.models import CaptioningRNN, SequenceClassifier
from rnnlab.training import Solver, load_model, save_model

from ..training.trainings import ATTENTIVE, WORDS, Captions

CAPTIONS = np.array([[1, 4, 5, 3, 2], [1, 5, 2, 0, 0], [1, 2, 0, 0, 0]])


class Smooth(CaptioningRNN):
    """Penalises changes of the hidden states, each unit with a weight that is trained."""

    def __init__(self, *arguments, hidden_dim=5, smoothness=0.3, **options):
        self.hidden_dim = hidden_dim
        super().__init__(*arguments, hidden_dim=hidden_dim, **options)
        self.smoothness = smoothness

    def config(self):
        return {**super().config(), "smoothness": self.smoothness}

    def extra_shapes(self):
        return {"smooth_w": (self.hidden_dim,)}

    def hidden_loss(self, hidden, mask, share, grads):
        w, scale = self.params["smooth_w"], self.smoothness * share / len(hidden)
        change = (hidden[:, 1:] - hidden[:, :-1]) * mask[:, 1:, None]
        grads["smooth_w"] += scale * 2 * w * (change**2).sum(axis=(0, 1))
        dhidden = np.zeros_like(hidden)
        dhidden[:, 1:] += scale * 2 * w**2 * change
        dhidden[:, :-1] -= scale * 2 * w**2 * change
        return scale * (w**2 * change**2).sum(), dhidden


def smooth(**options):
    model = Smooth(WORDS, 4, 3, dtype=np.float64, rng=2, **options)
    model.params.flat[...] = np.random.default_rng(3).uniform(-0.7, 0.7, model.params.flat.size)
    return model


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cell_type": "lstm", "regularisation": {"zoneout_h": 0.2}, "output": "deep"},
        {"image_input": "first_input", "cell_type": "gru"},
        {"reconstruction": 0.2, "reconstructor_dim": 3, "loss_average": "token"},
    ],
    ids=str,
)
def test_gradients_of_a_loss_of_the_hidden_states(options, rng):
    model, batch = smooth(**options), (rng.standard_normal((3, 4)), CAPTIONS)
    (row,) = check_model(model, batch, seed=1, only="smooth_w", verbose=False)
    assert row.passed, row
    assert row.grad_norm > 1e-4

    def loss():
        return model.loss(*batch, rng=np.random.default_rng(1))

    for name, grad in loss()[1].items():
        assert projected_check(lambda: loss()[0], model.params[name], grad, rng=rng) < 1e-7, name
    plain = CaptioningRNN(WORDS, 4, 3, 5, dtype=np.float64, **options)
    for name in plain.params:
        plain.params[name] = model.params[name]
    assert model.loss(*batch)[0] > plain.loss(*batch)[0]
    assert model.nll(*batch) == plain.nll(*batch)
    padded = model.padded(*batch)
    grads = model.params.zeros_like()
    assert model.padded_loss(padded, grads=grads) == pytest.approx(model.loss(*batch)[0], rel=1e-12)
    np.testing.assert_allclose(grads.flat, model.loss(*batch)[1].flat, rtol=1e-9, atol=1e-12)


def test_parts_of_a_batch_add_up(tmp_path, no_pictures):
    losses = []
    for parts in (1, 3):
        model = smooth(**ATTENTIVE | {"word_dropout": 0.0, "output_dropout": 0.0})
        solver = Solver(
            model, Captions(), num_epochs=1, batch_size=6, accumulate=parts, verbose=False,
            run_dir=tmp_path / str(parts),
        )  # fmt: skip
        solver.train()
        losses.append(solver.loss_history)
    np.testing.assert_allclose(*losses, rtol=1e-9)
    found = load_model(tmp_path / "3", known={"Smooth": Smooth})
    np.testing.assert_array_equal(found.params.flat, model.params.flat)


class Own(SequenceClassifier):
    """Adds a parameter after the constructor of the model."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        shapes = dict(self.params.shapes) | {"W_own": (2, 2)}
        former, self.params = self.params, type(self.params)(shapes, self.params.dtype)
        for name, array in former.items():
            self.params[name] = array


class Loads(Own):
    @classmethod
    def from_config(cls, config):
        return cls(**config)


@pytest.mark.parametrize("made", [Own, Loads])
def test_parameters_that_are_added_later_are_loaded(made, tmp_path):
    model = made(3, 2, 4)
    model.params.flat[...] = np.arange(model.params.flat.size)
    save_model(tmp_path / "model.h5", model)
    found = load_model(tmp_path / "model.h5", known={made.__name__: made})
    np.testing.assert_array_equal(found.params.flat, model.params.flat)
    with pytest.raises(ValueError, match=r"parameters: found W_own, expected only"):
        load_model(tmp_path / "model.h5", known={made.__name__: SequenceClassifier})


def test_a_name_that_the_model_has():
    class Twice(SequenceClassifier):
        def extra_shapes(self):
            return {"W_class": (2, 2)}

    with pytest.raises(ValueError, match="W_class"):
        Twice(3, 2, 4)


class Wrapped(CaptioningRNN):
    def hidden_loss(self, hidden, mask, share, grads):
        return super().hidden_loss(hidden, mask, share, grads)


@pytest.mark.parametrize(
    ("found", "error", "message"),
    [
        (lambda hidden: 0.5, TypeError, "returned a float, expected two results: loss, gradient"),
        (lambda hidden: (None, hidden), TypeError, "its loss is None, expected a number"),
        (lambda hidden: (0.5, None), TypeError, "its gradient is None, expected float64 of shape"),
        (
            lambda hidden: (0.5, hidden[:, :1]),
            ValueError,
            r"its gradient is float64 of shape \(3, 1, 5\), ex",
        ),
        (lambda hidden: (0.5, np.float32(hidden)), ValueError, "its gradient is float32 of shape"),
    ],
)
def test_a_loss_of_hidden_states_with_a_wrong_gradient(rng, found, error, message):
    class Wrong(CaptioningRNN):
        def hidden_loss(self, hidden, mask, share, grads):
            return found(hidden)

    model = Wrong(WORDS, 4, 3, 5, dtype=np.float64)
    with pytest.raises(error, match=f"^Wrong.hidden_loss:? {message}"):
        model.loss(rng.standard_normal((3, 4)), CAPTIONS)


def test_the_models_own_loss_of_hidden_states_is_zero(rng):
    batch = rng.standard_normal((3, 4)), CAPTIONS
    plain, wrapped = (made(WORDS, 4, 3, 5, dtype=np.float64) for made in (CaptioningRNN, Wrapped))
    (loss, grads), (expected, expected_grads) = wrapped.loss(*batch), plain.loss(*batch)
    assert loss == expected
    np.testing.assert_array_equal(grads.flat, expected_grads.flat)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (None, ".extra_shapes: found a NoneType, expected shapes by name, a mapping"),
        ([("a", (2,))], ".extra_shapes: found a list, expected shapes by name, a mapping"),
        ({"a": 3}, ".extra_shapes: the shape of 'a' is 3, expected a tuple of integers"),
        ({"W_vocab": (3, 2)}, ": two parts have a parameter 'W_vocab', expected other names in extra_shapes"),
    ],
)
def test_extra_shapes_that_are_none(shapes, message):
    class Other(CaptioningRNN):
        def extra_shapes(self):
            return shapes

    with pytest.raises((TypeError, ValueError), match=f"^Other{message}"):
        Other({"<NULL>": 0, "a": 1}, 3)
