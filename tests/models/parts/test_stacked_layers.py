"""Stacked layers: gradients in one direction and in both, and the names of their parameters."""

import numpy as np
import pytest

from rnnlab.layers import reversed_in_time
from rnnlab.layers.recurrent.reversal import reversed_rows
from rnnlab.models.parts.recurrent_layer import RecurrentLayer
from rnnlab.models.parts.stacked_layers import StackedLayers

from .checks import LENGTHS, D, H, N, T, assert_part, dropout_rng, random_parameters, recurrence


@pytest.mark.one_in(2)
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("both", [False, True], ids=["forward", "both directions"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_of_a_stack(num_layers, both, dropout, rng):
    part = StackedLayers(recurrence("gru"), D, 2, num_layers, bidirectional=both, dropout=dropout)
    x, reverse = rng.standard_normal((N, T, D)), reversed_rows(LENGTHS, T)

    def forward(params, x):
        return part.forward(params, x, LENGTHS, dropout_rng(), reverse=reverse)

    def backward(dh, cache, grads):
        return (part.backward(dh, cache, grads),)

    assert_part(part, forward, backward, {"x": x}, rng)


def test_the_whole_gradient_of_a_stack_is_that_of_its_last_layer(rng):
    part, x = StackedLayers(recurrence("gru"), D, H, 2), rng.standard_normal((N, T, D))
    params = random_parameters(part, rng)
    h, cache = part.forward(params, x, LENGTHS)
    found, expected = np.empty_like(h), np.empty_like(h)
    part.backward(h, cache, params.zeros_like(), total_dh=found)
    below, _ = RecurrentLayer(recurrence("gru"), D, H).forward(
        params.scope("layer1_"), x, (np.zeros((N, H)),), LENGTHS
    )
    layer, scope = RecurrentLayer(recurrence("gru"), H, H), params.scope("layer2_")
    _, last = layer.forward(scope, below, (np.zeros((N, H)),), LENGTHS)
    layer.backward(h, last, params.zeros_like().scope("layer2_"), total_dh=expected)
    np.testing.assert_array_equal(found, expected)


def test_the_whole_gradient_of_both_directions_is_that_of_each(rng):
    part, x = StackedLayers(recurrence("gru"), D, H, bidirectional=True), rng.standard_normal((N, T, D))
    params, reverse = random_parameters(part, rng), reversed_rows(LENGTHS, T)
    h, cache = part.forward(params, x, LENGTHS, reverse=reverse)
    found = np.empty_like(h)
    part.backward(h, cache, params.zeros_like(), total_dh=found)
    for direction, columns in (("forward", slice(0, H)), ("backward", slice(H, None))):
        turned = reversed_in_time if direction == "backward" else lambda array, lengths: array.copy()
        layer, scope = RecurrentLayer(recurrence("gru"), D, H), params.scope(f"{direction}_")
        states, own = layer.forward(scope, turned(x, LENGTHS), (np.zeros((N, H)),), LENGTHS)
        np.testing.assert_array_equal(h[:, :, columns], turned(states, LENGTHS))
        expected = np.empty_like(states)
        grads = params.zeros_like().scope(f"{direction}_")
        layer.backward(turned(h[:, :, columns], LENGTHS), own, grads, total_dh=expected)
        np.testing.assert_array_equal(found[:, :, columns], turned(expected, LENGTHS))


def test_names_and_layers_of_a_stack(rng):
    names = list(StackedLayers(recurrence("rnn"), D, H).shapes())
    assert names == ["Wx", "Wh", "b"]
    part = StackedLayers(recurrence("lstm"), D, H, 2)
    assert list(part.shapes()) == [f"layer{k}_{name}" for k in (1, 2) for name in names]
    params, x = random_parameters(part, rng), rng.standard_normal((N, T, D))
    expected = x
    for k, size in ((1, D), (2, H)):
        layer = RecurrentLayer(recurrence("lstm"), size, H)
        expected, _ = layer.forward(params.scope(f"layer{k}_"), expected, layer.zero_state(expected), LENGTHS)
    np.testing.assert_array_equal(part.forward(params, x, LENGTHS)[0], expected)
