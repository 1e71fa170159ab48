"""Every regulariser of recurrence and every loss at once, in every model: gradients under fixed noise."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.gradient_check import check_model, projected_check
from rnnlab.models import Seq2Seq, SequenceClassifier
from rnnlab.models.cells import CELLS

from .test_scheduled_sampling import Sampling, pairs
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


@every_combination
@pytest.mark.parametrize("attention", [None, "additive", "with a global vector"])
def test_captions(cell, dropped, attention, rng):
    options = {"cell_type": cell, "regularisation": noise(cell, dropped), "label_smoothing": 0.1}
    options |= ARNET | DROPOUT | {"loss_average": "token"}
    if attention:
        options |= {"attention": "additive", "target_attention": True, "output": "deep"}
        options |= {"selector": True, "doubly_stochastic": 0.5}
    if attention == "with a global vector":
        options["global_dim"] = G
    assert_gradient(Sampling(build(**options), 0.5), batch(rng, **options), rng)


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
