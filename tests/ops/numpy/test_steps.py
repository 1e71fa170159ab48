"""NumPy runs steps one after the other."""

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops

from ..chunk_cases import CELLS, Chunk


@pytest.mark.parametrize("cell", CELLS)
def test_nothing_is_written(cell, rng):
    chunk = Chunk(cell, (3, 2), 4, float, rng)
    weights = [product.forward_weight for product in chunk.prepared(numpy_ops).prepared._products]
    forward, backward = chunk.forward_arrays(), chunk.backward_arrays()
    dh, dstate, da = backward
    gates, states, saved = forward
    assert not numpy_ops.steps_forward(cell, gates, weights, states, saved, chunk.steps)
    assert not numpy_ops.steps_backward(cell, dh, dstate, gates, weights, states, saved, da, chunk.steps)
    for array, given in zip((gates, *states, saved), (chunk.gates, *chunk.states, chunk.saved), strict=True):
        np.testing.assert_array_equal(array, given)
    for array, given in zip((dh, *dstate, da), (chunk.dh, *chunk.dstate, chunk.da), strict=True):
        np.testing.assert_array_equal(array, given)
