"""The encoder of a language model: a state of zeros for each sentence."""

import numpy as np
import pytest

from rnnlab.models.parts.no_source import NoSource
from rnnlab.parameters import Parameters

from .checks import H


@pytest.mark.parametrize("num_states", [1, 2])
def test_the_state_is_zero(num_states):
    part = NoSource(H, num_states)
    params = Parameters(part.shapes(), np.float32)
    source, cache = part.forward(params, np.ones((3, 5), int))
    assert source.zero_state
    assert source.first_hidden() is source.memory is source.image is None
    assert [state.shape for state in source.state] == [(3, H)] * num_states
    assert all(state.dtype == np.float32 and not state.any() for state in source.state)
    assert part.backward(source, cache, params.zeros_like()) is None
