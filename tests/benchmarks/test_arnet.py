"""The two sides have the same model, and the lone LSTM is as large as ARNet."""

import numpy as np
import pytest

from benchmarks import arnet, captioning
from rnnlab.layers import arnet_shapes

SIZES = arnet.Sizes(3, captioning.Sizes(4, 7, 5, 6, 8, 20, mean=4, spread=2, least=2, most=6))


@pytest.mark.slow
def test_the_sides_differ_by_the_reconstruction():
    ours, predicted = (arnet.prepare(side, SIZES)() for side in arnet.SIDES)
    options = {"reconstruction": arnet.RECONSTRUCTION, "reconstructor_dim": SIZES.R}
    model = captioning.model(SIZES.captions, captioning.weights(SIZES.captions), **options)
    batch = captioning.batch(SIZES.captions)
    noise = [np.random.default_rng(0) for _ in range(2)]
    assert model.loss(*batch, rng=noise[0])[0] == ours
    model.reconstruction = 0.0
    assert model.loss(*batch, rng=noise[1])[0] == pytest.approx(predicted, rel=1e-6)
    assert ours > predicted


def test_the_lone_lstm_has_the_shapes_of_arnet():
    _, captions = captioning.batch(SIZES.captions)
    grads = arnet.lstm_with_projection(SIZES, captions)()
    lengths = (captions[:, 1:] != 0).sum(axis=1)
    assert grads["x"].shape == (4, lengths.max(), SIZES.captions.H)
    shapes = {name.removeprefix("arnet_"): shape for name, shape in arnet_shapes(8, 3).items()}
    assert {name: grad.shape for name, grad in grads.items() if name != "x"} == shapes
    assert all(grad.any() for grad in grads.values())
