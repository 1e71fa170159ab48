"""The states of a search: the rows that were appended, and their keys."""

import numpy as np
import pytest

from rnnlab.layers.attention.query import attention_shapes
from rnnlab.layers.attention.scores import SCORES, Keys
from rnnlab.layers.attention.state_memory import StateMemory

H = 3


@pytest.mark.parametrize("score", SCORES)
def test_a_memory_of_states_only_grows(score, rng):
    """However often it moves to more room, rows that were appended keep their numbers and their place."""
    shapes = attention_shapes(score, query_dim=H, memory_dim=H, attention_dim=2)
    params = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    projection = Keys(score, params, reused=True, like=rng.standard_normal(1))
    memory = StateMemory(projection, rng.standard_normal((2, H)))
    appended, rows = [], []
    for n in (2, 1, 5, 30, 0, 100):
        appended.append(rng.standard_normal((n, H)))
        rows.append(memory.append(appended[-1])[:, 0])
    states = np.concatenate(appended)
    np.testing.assert_array_equal(np.concatenate(rows), np.arange(len(states)))
    np.testing.assert_array_equal(memory.states[: len(states)], states)
    np.testing.assert_allclose(memory.keys[: len(states)], projection.of(states), rtol=1e-12)
