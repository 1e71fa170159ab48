"""The models with a reviewer compute the same on both sides."""

import numpy as np
import pytest

from benchmarks import attention, captioning, review, review_memory

torch = pytest.importorskip("torch")

CAPTIONS = captioning.Sizes(N=5, T=9, D=6, W=4, H=8, V=30, mean=5, spread=2, least=2, most=8)
MODEL = attention.Sizes("lstm", 7, 6, CAPTIONS)
SIZES = [review.Sizes(1, 3, False, MODEL), review.Sizes(3, 2, True, MODEL), review.Sizes(2, 3, True, MODEL)]
every_size = pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{sizes.blocks}x{sizes.steps}")
every_side = pytest.mark.parametrize("side", review.SIDES[1:])


@pytest.fixture(autouse=True)
def _comparable(monkeypatch):
    """Without dropout, because the masks of the two sides differ."""
    monkeypatch.setattr(review, "DROPOUT", dict.fromkeys(review.DROPOUT, 0.0))
    monkeypatch.setattr(review, "REVIEWER_DROPOUT", 0.0)


@pytest.mark.slow
@every_size
@every_side
def test_training_steps(sizes, side):
    ours, theirs = review.prepare("rnnlab", sizes), review.prepare(side, sizes)
    losses = [(ours(), theirs()) for _ in range(10)]  # the later ones depend on gradients and on Adam
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-4)
    assert losses[-1][0] < losses[0][0] - 0.005


@every_size
@every_side
def test_gradients(sizes, side):
    """The numbers of all gradients, sorted, because the two sides have them in different orders."""
    features, captions = attention.batch(sizes.model)
    longest_first = np.argsort(-(captions != 0).sum(axis=1))
    batch = features[longest_first], captions[longest_first]
    weights = review.weights(sizes)
    weights = {name: 4 * array for name, array in weights.items()}  # gradients of attentions are small
    loss, ours = review.model(sizes, weights).loss(*batch)
    rival = review.torch_model(sizes, weights, batched=side == "torch batched")
    found = rival.loss(*map(torch.from_numpy, batch))
    found.backward()
    assert found.item() == pytest.approx(loss, rel=1e-5)
    theirs = [parameter.grad.ravel() for parameter in rival.parameters() if parameter.grad is not None]
    np.testing.assert_allclose(np.sort(ours.flat), np.sort(np.concatenate(theirs)), rtol=1e-4, atol=1e-6)


def test_memory_is_that_of_the_same_cases():
    assert review_memory.CASES is review.CASES
    assert list(review_memory.TARGETS) == list(review_memory.CASES)
    losses = review_memory.prepare("rnnlab", SIZES[1])()
    assert len(losses) == review_memory.STEPS
    assert losses[-1] < losses[0]
