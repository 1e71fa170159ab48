"""Steps of decoding: the same states as the sequence."""

import numpy as np
import pytest

from rnnlab.layers import Regularisation, recurrent_forward
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.layers.recurrent.decoding import RecurrentStep

from ..reference import every_cell


@every_cell
@pytest.mark.parametrize("regularisation", [{}, {"zoneout_h": 0.3, "recurrent_dropout": 0.2}], ids=str)
def test_steps_are_the_sequence(cell, regularisation, rng):
    """In inference: zoneout is its expectation, and there is no dropout."""
    inputs, options = cell.inputs(rng), Regularisation(**regularisation)
    params = {name: inputs[name] for name in ("Wx", "Wh", "b")}
    state = tuple(inputs[f"{name}0"] for name in cell.states)
    h, final, _ = recurrent_forward(inputs["x"], state, params, cell=cell.name, regularisation=options)
    step = RecurrentStep(cell_for("f", cell.name), params, state[0], options)
    for t in range(h.shape[1]):
        before = [array.copy() for array in state]
        after = step(inputs["x"][:, t], state)
        np.testing.assert_allclose(after[0], h[:, t], rtol=1e-12)
        for array, saved in zip(state, before, strict=True):
            np.testing.assert_array_equal(array, saved)
        state = after
    for found, expected in zip(state, final, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@every_cell
def test_fewer_rows_than_at_first(cell, rng):
    """A search may drop hypotheses between two steps."""
    inputs = cell.inputs(rng, N=4)
    params, x = {name: inputs[name] for name in ("Wx", "Wh", "b")}, inputs["x"][:, 0]
    state = tuple(inputs[f"{name}0"] for name in cell.states)
    step = RecurrentStep(cell_for("f", cell.name), params, state[0])
    whole, rows = step(x, state), np.array([2, 0])
    part = step(x[rows], tuple(array[rows] for array in state))
    for found, expected in zip(part, whole, strict=True):
        np.testing.assert_allclose(found, expected[rows], rtol=1e-12)
