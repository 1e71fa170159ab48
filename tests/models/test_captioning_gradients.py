"""Gradients of every combination of cell, image input and options."""

import numpy as np
import pytest

from rnnlab.gradcheck import check_model, projected_check

from .toys import (
    ARCHITECTURES,
    DROPOUT,
    PENALISED,
    RECONSTRUCTING,
    REGULARISED,
    D,
    G,
    W,
    batch,
    build,
    name_of,
)

ARNET = {"reconstruction": 0.3, "reconstructor_dim": 3}
# every kind of part at least once; all combinations are checked along a random direction
NUMBER_BY_NUMBER = [
    {"cell_type": "rnn", "image_input": "first_input"},
    {"cell_type": "lstm", "image_input": "second_layer"} | ARNET,
    {"cell_type": "gru", "image_input": "every_step", "output": "deep"},
    {"cell_type": "lstm", "attention": "additive", "decoder_layers": 3, "layer_dropout": 0.3} | ARNET,
    {"cell_type": "lstm", "project_cell": True, "state_activation": "tanh"},
    {"cell_type": "simplified_gru", "target_attention": True, "output": "deep"},
    {"cell_type": "rnn", "hidden_dim": W, "tied_embeddings": True},
    {"cell_type": "gru", "attention": "dot", "hidden_dim": D, "output": "deep", "tied_embeddings": True},
    {"cell_type": "lstm", "attention": "bilinear", "selector": True, "output": "deep"} | ARNET,
    {"cell_type": "gru", "attention": "additive", "global_dim": G, "target_attention": True},
    {"cell_type": "rnn", "attention": "dot", "hidden_dim": D},
    {"cell_type": "gru", "target_attention": True, "target_delay": 2, "output": "deep"},
    *REGULARISED[:4],
    *PENALISED,
]


@pytest.mark.slow
@pytest.mark.parametrize("options", NUMBER_BY_NUMBER, ids=name_of)
def test_every_parameter(options, rng):
    """Each number of each parameter, with dropout."""
    # 2 units make it fast, and larger weights let attention differ between slots
    model = build(**{"hidden_dim": 2} | options, **DROPOUT, loss_average="token")
    model.params.flat[...] *= 2
    rows = check_model(model, batch(rng, **options), seed=3, verbose=False)
    assert [row.name for row in rows] == list(model.params)
    for row in rows:
        assert row.error < 1e-7 or row.error * row.grad_norm < 1e-10, row  # relative, or absolute where tiny
        assert row.grad_norm > 1e-6, f"{row.name} has no gradient: a vacuous check"


@pytest.mark.parametrize("options", ARCHITECTURES + PENALISED, ids=name_of)
def test_along_a_random_direction(options, rng):
    check_direction(options | DROPOUT | {"loss_average": "token"}, rng)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("options", ARCHITECTURES + PENALISED, ids=name_of)
def test_along_a_random_direction_without_dropout(options, rng):
    check_direction(options | {"loss_average": "batch"}, rng)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("options", RECONSTRUCTING, ids=name_of)
def test_along_a_random_direction_with_reconstruction(options, rng):
    check_direction(options | DROPOUT, rng)


def check_direction(options, rng):
    model, given = build(**options), batch(rng, **options)

    def loss():
        return model.loss(*given, rng=np.random.default_rng(3) if "word_dropout" in options else None)

    _, grads = loss()
    assert all(grad.any() for grad in grads.values())
    assert projected_check(lambda: loss()[0], model.params.flat, grads.flat, rng=rng) < 1e-7
