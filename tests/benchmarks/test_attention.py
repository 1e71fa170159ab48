"""The attentive models compute the same on both sides."""

import numpy as np
import pytest

from benchmarks import attention, attentive_decoding, captioning, translation

torch = pytest.importorskip("torch")

CAPTIONS = captioning.Sizes(N=5, T=9, D=6, W=4, H=8, V=30, mean=5, spread=2, least=2, most=8)
LSTM, GRU = (attention.Sizes(cell, 7, 6, CAPTIONS) for cell in ("lstm", "gru"))
PAIRS = translation.Sizes(6, 4, 5, 8, 6, 20, 30, mean=5, spread=2, least=2, most=9)
# nn.GRUCell and nn.GRU are another cell than ours
SAME = [(attention, LSTM, "torch"), (attention, LSTM, "torch nn"), (attention, GRU, "torch")]
SAME += [(translation, PAIRS, "torch")]


@pytest.fixture(autouse=True)
def _comparable(monkeypatch):
    """No noise, which differs; enough of the doubly stochastic loss to see it; sentences of a few words."""
    for suite in (attention, translation):
        monkeypatch.setattr(suite, "DROPOUT", dict.fromkeys(suite.DROPOUT, 0.0))
    monkeypatch.setattr(attention, "DOUBLY_STOCHASTIC", 0.5)
    monkeypatch.setattr(attentive_decoding, "END_BIAS", 1)


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "sizes", "side"), SAME)
def test_training_steps(suite, sizes, side):
    ours, theirs = suite.prepare("rnnlab", sizes), suite.prepare(side, sizes)
    losses = [(ours(), theirs()) for _ in range(10)]  # the later ones depend on gradients and on Adam
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-4)
    assert losses[-1][0] < losses[0][0] - 0.005


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "sizes", "side"), SAME)
def test_gradients(suite, sizes, side):
    """All numbers of all gradients, whose order differs."""
    source, sentences = suite.batch(sizes)
    longest_first = np.argsort(-(sentences != 0).sum(axis=1))
    batch = source[longest_first], sentences[longest_first]
    _, ours = suite.model(sizes, suite.weights(sizes)).loss(*batch)
    rival = suite.torch_model(sizes, suite.weights(sizes), in_operations=side == "torch")
    rival.loss(*map(torch.from_numpy, batch)).backward()
    theirs = [parameter.grad.ravel() for parameter in rival.parameters() if parameter.grad is not None]
    np.testing.assert_allclose(np.sort(ours.flat), np.sort(np.concatenate(theirs)), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "sizes"), [(attention, GRU), (translation, PAIRS)])
def test_the_other_cells_learn_as_well(suite, sizes):
    step = suite.prepare("torch nn", sizes)
    losses = [step() for _ in range(5)]
    assert losses[-1] < losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize(("least", "most"), [(0, 1), (3, 9)])
@pytest.mark.parametrize(
    "model",
    [
        attention.Sizes("lstm", 7, 32, captioning.Sizes(N=40, T=21, D=64, W=64, H=64, V=200)),
        translation.Sizes(40, 64, 32, 64, 32, 200, 200, mean=5, spread=2, least=2, most=9),
    ],
)
def test_decoding(beam, least, most, model):
    sizes = attentive_decoding.Sizes(beam, least, most, model)
    ours = attentive_decoding.prepare("rnnlab 40", sizes)()
    theirs = attentive_decoding.prepare("torch 15", sizes)()
    assert len(ours) == len(theirs) == 40
    assert sum(a != b for a, b in zip(ours, theirs, strict=True)) <= 1  # but for a tie in float32
    assert len(set(ours)) > 1
    assert min(map(len, ours)) >= least
