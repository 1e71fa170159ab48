"""Every combination of cell, image input and options against numeric gradients."""

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import check_model, projected_check

from .toys import ARCHITECTURES, DROPOUT, PENALISED, RECONSTRUCTING, batch, build, name_of

every_average = pytest.mark.parametrize("average", ["batch", "token"])


@pytest.mark.parametrize(
    "options",
    [options for options in ARCHITECTURES + PENALISED if options.get("state_activation") != "tanh"]
    + [options for options in RECONSTRUCTING if options.get("cell_type") == "lstm"],
    ids=name_of,
)
def test_every_parameter(options, rng):
    """Number by number, with noise."""
    # few units have few numbers, and need larger ones to attend
    model = build(**{"hidden_dim": 2} | options, **DROPOUT, loss_average="token")
    model.params.flat[...] *= 2
    rows = check_model(model, batch(rng, **options), seed=3, verbose=False)
    assert [row.name for row in rows] == list(model.params)
    for row in rows:
        assert row.error < 1e-7 or row.error * row.grad_norm < 1e-10, row  # relative, or absolute where tiny
        assert row.grad_norm > 1e-6, f"{row.name} has no gradient: a vacuous check"


@pytest.mark.parametrize("options", ARCHITECTURES + PENALISED, ids=name_of)
@every_average
@pytest.mark.parametrize("noise", [{}, DROPOUT], ids=["plain", "dropout"])
def test_along_a_random_direction(options, average, noise, rng):
    check_direction(options | noise | {"loss_average": average}, rng)


@pytest.mark.parametrize("options", RECONSTRUCTING, ids=name_of)
@pytest.mark.parametrize("noise", [{}, DROPOUT], ids=["plain", "dropout"])
def test_along_a_random_direction_with_reconstruction(options, noise, rng):
    check_direction(options | noise, rng)


def check_direction(options, rng):
    model, given = build(**options), batch(rng, **options)

    def loss():
        return model.loss(*given, rng=np.random.default_rng(3) if "word_dropout" in options else None)

    _, grads = loss()
    assert projected_check(lambda: loss()[0], model.params.flat, grads.flat, rng=rng) < 1e-7
