"""The encoder of a language model: a state of zeros for each sentence, or the states that it is given."""

import numpy as np
import pytest

from rnnlab.models.parts.no_source import Beginning, NoSource
from rnnlab.parameters import Parameters

from .checks import H


@pytest.mark.parametrize("num_states", [1, 2])
def test_the_state_is_zero(num_states):
    part = NoSource(H, num_states)
    params = Parameters(part.shapes(), np.float32)
    source, cache = part.forward(params, Beginning(3))
    assert source.zero_state
    assert source.first_hidden() is source.memory is source.image is None
    assert [state.shape for state in source.state] == [(3, H)] * num_states
    assert all(state.dtype == np.float32 and not state.any() for state in source.state)
    assert part.backward(source, cache, params.zeros_like()) is None


@pytest.mark.parametrize("num_states", [1, 2])
def test_a_given_state_is_that_of_each_layer(num_states, rng):
    part = NoSource(H, num_states)
    given = tuple(rng.standard_normal((3, H)) for _ in range(3 * num_states))
    source, _ = part.forward(Parameters({}), Beginning(3, given))
    assert not source.zero_state
    assert source.state == given[:num_states]
    assert source.above == (given[num_states : 2 * num_states], given[2 * num_states :])
    assert source.first_hidden() is given[0]
