"""Each architecture of captioning models against PyTorch's autograd; tests/oracle draws random ones."""

import pytest

from .toys import ARCHITECTURES, DROPOUT, PENALISED, PLAIN, RECONSTRUCTING, batch, build, name_of

torch = pytest.importorskip("torch")

from ..oracle.compare import assert_as_autograd  # noqa: E402, which needs PyTorch
from ..oracle.configurations import Configuration  # noqa: E402

ARNET = RECONSTRUCTING[: len(PLAIN)]
DETACHED = [options | {"detach_target": True} for options in ARNET]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("options", ARCHITECTURES + PENALISED + ARNET + DETACHED, ids=name_of)
@pytest.mark.parametrize("dropout", [{}, DROPOUT], ids=["plain", "dropout"])
def test_loss_and_gradients(options, dropout, rng):
    model = build(**options, **dropout)
    assert_as_autograd(Configuration(model, batch(rng, **options), {}, seed=2 if dropout else None))
