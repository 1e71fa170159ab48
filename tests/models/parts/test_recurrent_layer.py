"""A recurrent layer as a part: its gradients, and its steps against whole sequences."""

import numpy as np
import pytest

from rnnlab.gradcheck.cases import CELLS
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.models.parts.recurrent_layer import Recurrence, RecurrentLayer

from .checks import LENGTHS, D, H, N, T, assert_part, dropout_rng, random_parameters, recurrence

every_cell = pytest.mark.parametrize("cell", CELLS)


@every_cell
@pytest.mark.parametrize("regularisation", [{}, {"zoneout_h": 0.3, "recurrent_dropout": 0.2}], ids=str)
def test_gradients(cell, regularisation, rng):
    part = RecurrentLayer(recurrence(cell, **regularisation), D, H)
    inputs = {"x": rng.standard_normal((N, T, D))}
    inputs |= {f"state{k}": rng.standard_normal((N, H)) for k in range(part.num_states)}

    def forward(params, x, **state):
        return part.forward(params, x, tuple(state.values()), LENGTHS, dropout_rng())

    def backward(dh, cache, grads):
        dx, dstate = part.backward(dh, cache, grads)
        return dx, *dstate

    assert_part(part, forward, backward, inputs, rng)


@every_cell
def test_steps_are_the_sequence(cell, rng):
    part = RecurrentLayer(recurrence(cell), D, H)
    params, x = random_parameters(part, rng), rng.standard_normal((N, T, D))
    state = tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    h, _ = part.forward(params, x, state, None)
    step = part.decoding_step(params, state[0])
    for t in range(T):
        state = step(x[:, t], state)
        np.testing.assert_allclose(state[0], h[:, t], rtol=1e-12)


def test_a_recurrence_from_options():
    found = Recurrence.of("Model", {"cell_type": "gru", "regularisation": {"zoneout_h": 0.1}})
    assert found.cell is cell_for("Model", "gru")
    assert found.regularisation.zoneout_h == 0.1
    with pytest.raises(ValueError, match="Model: cell_type is 'tree'"):
        Recurrence.of("Model", {"cell_type": "tree", "regularisation": None})
    with pytest.raises(ValueError, match="Model: .*zoneout_c"):
        Recurrence.of("Model", {"cell_type": "gru", "regularisation": {"zoneout_c": 0.1}})
