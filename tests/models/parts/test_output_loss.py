"""The loss of hidden states in chunks of rows: the same as at once."""

import numpy as np
import pytest

from rnnlab.layers import affine_forward, softmax_loss
from rnnlab.models.parts import output
from rnnlab.models.parts.embedding import LinearOutput, Readout
from rnnlab.models.parts.output import output_loss, output_nll
from rnnlab.parameters import Parameters

from ..toys import batch, build


@pytest.fixture(params=[1, 3, 100])
def chunk(request, monkeypatch):
    """How many rows are scored at once."""
    monkeypatch.setattr(output, "SCORES_AT_ONCE", 0)
    monkeypatch.setattr(output, "_ROWS_AT_LEAST", request.param)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("rows", [0, 1, 3, 10])
def test_chunks_change_nothing(rows, rng):
    output = LinearOutput(4, 6)
    params = Parameters(output.shapes(), np.float64)
    params.flat[...] = rng.standard_normal(params.flat.size)
    hidden, targets, grads = rng.standard_normal((rows, 4)), rng.integers(6, size=rows), params.zeros_like()
    loss, (dhidden, _, _) = output_loss(output, params, Readout(hidden), targets, weights=1 / 7, grads=grads)

    scores, _ = affine_forward(hidden, params["W_vocab"], params["b_vocab"])
    expected, dscores = softmax_loss(scores, targets, divisor=7.0)
    assert loss == pytest.approx(expected, rel=1e-12)
    assert output_nll(output, params, Readout(hidden), targets) == pytest.approx(7 * expected, rel=1e-12)
    np.testing.assert_allclose(dhidden, dscores @ params["W_vocab"].T, atol=1e-12)
    np.testing.assert_allclose(grads["W_vocab"], hidden.T @ dscores, atol=1e-12)
    np.testing.assert_allclose(grads["b_vocab"], dscores.sum(axis=0), atol=1e-12)


@pytest.mark.usefixtures("chunk")
def test_a_model_whose_scores_come_in_chunks(rng):
    features, captions = batch(rng)
    model, whole = build(), build()
    loss, grads = model.loss(features, captions)
    output._ROWS_AT_LEAST = 10_000
    expected, gradients = whole.loss(features, captions)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grads.flat, gradients.flat, atol=1e-12)
