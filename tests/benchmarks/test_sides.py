"""Both sides of a suite compute the same."""

import numpy as np
import pytest

from benchmarks import captioning, cells, decoding, language, lstm, pmnist, products, small, stacked

pytest.importorskip("torch")

LAYER = lstm.Sizes(N=3, T=5, D=4, H=6)
CAPTIONER = captioning.Sizes(N=5, T=9, D=6, W=4, H=8, V=30, mean=5, spread=2, least=2, most=8)


def assert_same_gradients(ours, theirs, *, time_first=False):
    """Those of x and h0 element by element; those of the weights, which lie differently, by their norms."""
    dx, dh0, *others = (np.asarray(gradient) for gradient in theirs)
    np.testing.assert_allclose(ours[0], dx.swapaxes(0, 1) if time_first else dx, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours[1], dh0.reshape(ours[1].shape), rtol=1e-4, atol=1e-5)
    for gradient, other in zip(ours[2:], others[:3], strict=True):  # nn.RNN has a second bias
        np.testing.assert_allclose(np.linalg.norm(gradient), np.linalg.norm(other), rtol=1e-4)


@pytest.mark.parametrize("side", [side for side in lstm.SIDES if side.startswith("torch")])
def test_lstm(side):
    ours, theirs = lstm.prepare("rnnlab", LAYER)(), lstm.prepare(side, LAYER)()
    assert_same_gradients(ours, theirs, time_first=side.endswith("time-first"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "side"),
    [(cell, side) for cell in cells.GATES for side in ("torch", "torch time-first")]
    + [("RNN", "nn.RNN"), ("RNN", "nn.RNN time-first")],
)
def test_cells(cell, side):
    ours, theirs = cells.prepare("rnnlab", (cell, LAYER))(), cells.prepare(side, (cell, LAYER))()
    assert_same_gradients(ours, theirs, time_first=side.endswith("time-first"))


@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_small(cell):
    ours, theirs = (small.prepare(side, (cell, LAYER))() for side in ("rnnlab", "torch"))
    assert_same_gradients(ours, theirs)


@pytest.mark.parametrize("side", ["torch", "torch packed"])
def test_captioning(side, monkeypatch):
    monkeypatch.setattr(captioning, "DROPOUT", dict.fromkeys(captioning.DROPOUT, 0.0))  # its noise differs
    ours, theirs = captioning.prepare("rnnlab", CAPTIONER), captioning.prepare(side, CAPTIONER)
    losses = [(ours(), theirs()) for _ in range(20)]  # the later ones depend on gradients and on Adam
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-4)
    assert losses[-1][0] < losses[0][0] - 0.05


@pytest.mark.parametrize("side", ["torch", "torch packed"])
@pytest.mark.parametrize(("layers", "tied"), [(1, True), (2, False), (3, True)])
def test_stacked(layers, tied, side, monkeypatch):
    monkeypatch.setattr(captioning, "DROPOUT", dict.fromkeys(captioning.DROPOUT, 0.0))
    sizes = stacked.Sizes(layers, tied, CAPTIONER._replace(W=CAPTIONER.H))
    ours, theirs = stacked.prepare("rnnlab", sizes), stacked.prepare(side, sizes)
    losses = [(ours(), theirs()) for _ in range(20)]
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-4)
    assert losses[-1][0] < losses[0][0] - 0.05


@pytest.mark.parametrize("side", language.SIDES[1:])
@pytest.mark.parametrize("layers", [1, 2])
def test_language(layers, side, monkeypatch):
    monkeypatch.setattr(language, "DROPOUT", 0.0)
    sizes = language.Sizes(N=5, T=6, W=4, H=8, V=30, layers=layers)
    ours, theirs = language.prepare("rnnlab", sizes), language.prepare(side, sizes)
    losses = [(ours(), theirs()) for _ in range(20)]  # each begins at the state of the one before
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-4)
    assert losses[-1][0] < losses[0][0] - 0.01


@pytest.mark.parametrize("side", pmnist.SIDES[1:])
def test_pmnist(side):
    sizes = pmnist.Sizes(batches=3, N=4, T=7, H=6, classes=5)
    ours, theirs = pmnist.prepare("rnnlab", sizes), pmnist.prepare(side, sizes)
    for _ in range(3):
        np.testing.assert_allclose(ours(), theirs(), rtol=1e-4)


@pytest.mark.parametrize("beam", [1, 2, 3])
@pytest.mark.parametrize("words", [1, 6])
def test_decoding(beam, words, monkeypatch):
    monkeypatch.setattr(decoding, "END_BIAS", 1)
    model = captioning.Sizes(N=40, T=21, D=64, W=64, H=64, V=200)
    sizes = decoding.Sizes(images=40, beam=beam, words=words, model=model)
    ours, theirs = decoding.prepare("rnnlab 40", sizes)(), decoding.prepare("torch 15", sizes)()
    assert len(ours) == len(theirs) == 40
    assert sum(a != b for a, b in zip(ours, theirs, strict=True)) <= 1  # but for a tie in float32
    assert len(set(ours)) > 1


def test_the_products_of_a_step_are_all_counted():
    sizes = captioning.Sizes(N=2, T=4, D=3, W=5, H=7, V=11)
    captions = np.array([[1, 4, 5, 2, 0], [1, 4, 2, 0, 0]])  # 3 and 2 tokens to predict
    image = 2 * (2 * 2 * 3 * 7) * 2  # h0 and c0; forward, and the gradient of the weights
    lstm_products = 2 * 5 * (5 + 7) * 28 * 3  # forward, the gradient of the weights, that of the inputs
    output = 2 * 5 * 7 * 11 * 3
    assert captioning.flops(sizes, captions) == image + lstm_products + output


@pytest.mark.parametrize("sizes", captioning.CASES.values(), ids=captioning.CASES)
def test_captions_fit(sizes):
    _, captions = captioning.batch(sizes)
    lengths = (captions != 0).sum(axis=1)
    assert captions.shape == (sizes.N, sizes.T + 1)
    assert (captions[np.arange(sizes.N), lengths - 1] == decoding.END).all()
    assert lengths.max() <= sizes.T + 1


@pytest.mark.parametrize("side", products.SIDES)
def test_products(side):
    sizes = products.Sizes(7, 40, 70)
    np.testing.assert_allclose(products.prepare(side, sizes)(), products.prepare("numpy", sizes)(), atol=1e-4)
