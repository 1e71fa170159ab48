"""Every regulariser of recurrence and every loss at once, in every model: gradients under fixed noise."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.gradcheck import check_model, projected_check
from rnnlab.gradcheck.cases import CELLS
from rnnlab.models import Seq2Seq, SequenceClassifier

from .parts.test_scheduled_sampling import Sampling, pairs
from .toys import DROPOUT, WORD_TO_IDX, D, G, H, W, batch, build

ARNET = {"reconstruction": 0.3, "reconstructor_dim": 3}
DROPPED = ["state", "candidate"]


def noise(cell, dropped):
    """Zoneout, recurrent dropout and DropConnect."""
    rates = {"zoneout_h": 0.2, "recurrent_dropout": 0.3, "weight_dropout": 0.2}
    return rates | {"recurrent_dropout_on": dropped} | ({"zoneout_c": 0.4} if cell == "lstm" else {})


def combinations():
    return [
        (cell, dropped) for cell in CELLS for dropped in DROPPED if (cell, dropped) != ("rnn", "candidate")
    ]


every_combination = pytest.mark.parametrize(("cell", "dropped"), combinations())


def perturbed(model):
    model.params.flat[...] = np.random.default_rng(5).uniform(-0.8, 0.8, model.params.flat.size)
    return model


def assert_gradient(model, given, rng, seed=3):
    def loss():
        return model.loss(*given, rng=np.random.default_rng(seed))

    _, grads = loss()
    flat = model.params.flat
    assert (
        projected_check(lambda: loss()[0], flat, grads.flat, rng=rng) < 1e-6
    )  # the slope along it may be small


@pytest.mark.one_in(2)
@every_combination
@pytest.mark.parametrize("attention", [None, "additive", "with a global vector"])
def test_captions(cell, dropped, attention, rng):
    options = {"cell_type": cell, "regularisation": noise(cell, dropped), "label_smoothing": 0.1}
    options |= ARNET | DROPOUT | {"loss_average": "token"}
    if attention:
        options |= {"attention": "additive", "target_attention": True, "output": "deep"}
        options |= {"tied_embeddings": True, "selector": True, "doubly_stochastic": 0.5}
    if attention == "with a global vector":
        options["global_dim"] = G
    assert_gradient(Sampling(build(**options), 0.5), batch(rng, **options), rng)


@pytest.mark.one_in(2)
@every_combination
@pytest.mark.parametrize("attention", [None, "additive"])
def test_translations(cell, dropped, attention, rng):
    model = Seq2Seq(
        WORD_TO_IDX,
        WORD_TO_IDX,
        W,
        H,
        cell,
        np.float64,
        num_layers=2,
        decoder_layers=2,
        attention=attention,
        target_attention=attention is not None,
        word_dropout=0.2,
        layer_dropout=0.2,
        output_dropout=0.3,
        label_smoothing=0.1,
        encoder_reconstruction=0.2,
        encoder_reconstructor_dim=3,
        regularisation=noise(cell, dropped),
        **ARNET,
    )
    assert_gradient(Sampling(perturbed(model), 0.5), pairs(), rng)


@pytest.mark.one_in(2)
@every_combination
@pytest.mark.parametrize("readout", ["last", "mean"])
def test_classes(cell, dropped, readout, rng):
    model = SequenceClassifier(
        3,
        D,
        H,
        cell,
        np.float64,
        readout=readout,
        num_layers=2,
        output_dropout=0.3,
        label_smoothing=0.1,
        regularisation=noise(cell, dropped),
        **ARNET,
    )
    given = rng.standard_normal((4, 5, D)), np.array([0, 2, 1, 1]), np.array([5, 2, 0, 1])
    assert_gradient(perturbed(model), given, rng)


@pytest.mark.slow
def test_number_by_number(rng):
    options = {"cell_type": "lstm", "attention": "additive", "target_attention": True, "output": "deep"}
    options |= {
        "regularisation": noise("lstm", "candidate"),
        "label_smoothing": 0.1,
        "doubly_stochastic": 0.5,
    }
    model = build(**options, **ARNET, **DROPOUT)
    for row in check_model(Sampling(model, 0.5), batch(rng, **options), seed=3, verbose=False):
        assert row.error < 1e-7 or row.error * row.grad_norm < 1e-10, row  # relative, or absolute where tiny
        assert row.grad_norm > 1e-6, f"{row.name} has no gradient: a vacuous check"


def test_a_configuration_has_the_weights_of_now():
    model = build(reconstructor_dim=3)
    model.reconstruction, model.label_smoothing = 0.5, 0.1
    config = model.config()
    assert (config["reconstruction"], config["label_smoothing"]) == (0.5, 0.1)
    again = type(model).from_config(config)
    assert (again.reconstruction, again.label_smoothing) == (0.5, 0.1)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("label_smoothing", 2, "loss: label_smoothing is 2, expected a probability"),
        ("reconstruction", -0.1, "loss: reconstruction is -0.1, expected a finite number"),
    ],
)
def test_weights_that_were_set_are_checked(name, value, message, rng):
    model = build(reconstructor_dim=3)
    setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        model.loss(*batch(rng))


def test_seeds_are_no_generators(rng):
    with pytest.raises(TypeError, match="CaptioningRNN.loss: rng is 0, expected a numpy Generator or None"):
        build().loss(*batch(rng), rng=0)
    classifier = SequenceClassifier(3, D, H, regularisation={"zoneout_h": 0.5})
    with pytest.raises(TypeError, match="SequenceClassifier.loss: rng is 0, expected a numpy Generator"):
        classifier.loss(np.zeros((1, 2, D)), np.array([0]), rng=0)
