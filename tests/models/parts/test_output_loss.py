"""The loss of hidden states in chunks of rows: the same as at once."""

import numpy as np
import pytest

from rnnlab.layers import affine_forward, softmax_loss
from rnnlab.models.parts import output_loss as module
from rnnlab.models.parts.output import ConcatOutput, DeepOutput, LinearOutput, OutputInputs
from rnnlab.models.parts.output_loss import OutputLoss, output_loss, output_nll
from rnnlab.models.parts.teacher_forcing import TeacherForced
from rnnlab.models.parts.values import Decoded
from rnnlab.parameters import Parameters

from ..toys import batch, build


@pytest.fixture(params=[1, 3, 100])
def chunk(request, monkeypatch):
    """The number of rows of a chunk."""
    monkeypatch.setattr(module, "SCORES_AT_ONCE", 0)
    monkeypatch.setattr(module, "_ROWS_AT_LEAST", request.param)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("rows", [0, 1, 3, 10])
def test_chunks_change_nothing(rows, rng):
    output = LinearOutput(4, 6)
    params = Parameters(output.shapes(), np.float64)
    params.flat[...] = rng.standard_normal(params.flat.size)
    hidden, targets, grads = rng.standard_normal((rows, 4)), rng.integers(6, size=rows), params.zeros_like()
    inputs = OutputInputs(hidden)
    loss, (dhidden, _, _) = output_loss(output, params, inputs, targets, weights=1 / 7, grads=grads)

    scores, _ = affine_forward(hidden, params["W_vocab"], params["b_vocab"])
    expected, dscores = softmax_loss(scores, targets, divisor=7.0)
    assert loss == pytest.approx(expected, rel=1e-12)
    assert output_nll(output, params, inputs, targets) == pytest.approx(7 * expected, rel=1e-12)
    np.testing.assert_allclose(dhidden, dscores @ params["W_vocab"].T, atol=1e-12)
    np.testing.assert_allclose(grads["W_vocab"], hidden.T @ dscores, atol=1e-12)
    np.testing.assert_allclose(grads["b_vocab"], dscores.sum(axis=0), atol=1e-12)


@pytest.mark.usefixtures("chunk")
def test_a_model_with_scores_in_chunks(rng):
    features, captions = batch(rng)
    model, whole = build(), build()
    loss, grads = model.loss(features, captions)
    module._ROWS_AT_LEAST = 10_000
    expected, gradients = whole.loss(features, captions)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grads.flat, gradients.flat, atol=1e-12)


def test_weights_of_rows(rng):
    """One weight for each row: the same as the weighted sum of the losses of single rows."""
    output = DeepOutput(LinearOutput(3, 6), 4, 0)
    params = Parameters(output.shapes(), np.float64)
    params.flat[...] = rng.standard_normal(params.flat.size)
    inputs = OutputInputs(rng.standard_normal((5, 4)), words=rng.standard_normal((5, 3)))
    targets, weights = rng.integers(6, size=5), np.array([0.5, 0.0, 2.0, 1.0, 0.1])
    grads, expected_grads = params.zeros_like(), params.zeros_like()
    loss, dinputs = output_loss(output, params, inputs, targets, weights=weights, grads=grads)
    expected = 0.0
    for row, weight in enumerate(weights.tolist()):
        alone = OutputInputs(inputs.hidden[row : row + 1], words=inputs.words[row : row + 1])
        term, dalone = output_loss(
            output, params, alone, targets[row : row + 1], weights=weight, grads=expected_grads
        )
        expected += term
        np.testing.assert_allclose(dinputs.hidden[row], dalone.hidden[0], atol=1e-12)
        np.testing.assert_allclose(dinputs.words[row], dalone.words[0], atol=1e-12)
    assert dinputs.contexts is None
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grads.flat, expected_grads.flat, atol=1e-12)


@pytest.mark.parametrize(
    "output",
    [LinearOutput(4, 6), ConcatOutput(4, 3, 2, 6), DeepOutput(LinearOutput(3, 6), 4, 2)],
    ids=["linear", "concat", "deep"],
)
def test_the_loss_of_sentences_is_that_of_their_real_targets(output, rng):
    """The inputs are (N, T, ...); steps without a target are not read, and their gradient is zero."""
    params = Parameters(output.shapes(), np.float64)
    params.flat[...] = rng.standard_normal(params.flat.size)
    forced = TeacherForced.of(np.array([[1, 3, 0, 5, 2], [1, 4, 2, 0, 0]]), 0)
    hidden, contexts, words = (rng.standard_normal((2, 4, size)) for size in (4, 2, 3))
    real = np.array([[1, 0, 1, 1], [1, 1, 0, 0]], bool)
    for array in (hidden, contexts, words):
        array[~real] = np.nan
    rows = OutputInputs(hidden[real])
    if output.reads_contexts:
        rows = OutputInputs(hidden[real], contexts[real], words[real])
    grads, expected_grads = params.zeros_like(), params.zeros_like()
    expected, drows = output_loss(output, params, rows, forced.targets, weights=0.5, grads=expected_grads)

    part, decoded = OutputLoss(output), Decoded(hidden, contexts)
    loss, dinputs = part.loss(params, decoded, words, forced, weights=0.5, grads=grads)
    assert loss == expected
    np.testing.assert_array_equal(grads.flat, expected_grads.flat)
    for found, right in zip(dinputs, drows, strict=True):
        assert (found is None) == (right is None)
        if found is not None:
            np.testing.assert_array_equal(found[real], right)
            assert not found[~real].any()
    assert part.nll(params, decoded, words, forced) == pytest.approx(2 * loss, rel=1e-12)
