"""Steps of decoding: the same states as the sequence."""

import numpy as np
import pytest

from rnnlab.layers import Regularisation, recurrent_forward, word_embedding_forward
from rnnlab.layers.recurrent import decoding
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


@every_cell
def test_products_of_words_are_looked_up_once_many_have_been_read(cell, rng):
    inputs = cell.inputs(rng, N=4)
    params = {name: inputs[name] for name in ("Wx", "Wh", "b")}
    state = tuple(inputs[f"{name}0"] for name in cell.states)
    W = rng.standard_normal((60, params["Wx"].shape[0]))
    step, multiplied = (RecurrentStep(cell_for("f", cell.name), params, state[0]) for _ in range(2))
    looked_up = []
    for rows in ([0, 1, 2, 3], [0, 1, 2, 3], [2, 0], [1, 3, 2, 0], [0], [3, 1]):
        x, words = word_embedding_forward(rng.integers(60, size=len(rows)), W)
        before = tuple(array[rows] for array in state)
        found, expected = step(x, before, words), multiplied(x, before)
        looked_up.append(step._table is not None)
        gates = rng.standard_normal((len(rows), params["Wx"].shape[1]))
        found += step.add_input(x, gates.copy(), before, words)
        expected += multiplied.add_input(x, gates, before)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert looked_up[0] is False
    assert looked_up[-1] is True


def test_a_table_of_words_has_a_limit(rng, monkeypatch):
    params = {"Wx": rng.standard_normal((2, 8)), "Wh": rng.standard_normal((2, 8)), "b": np.zeros(8)}
    x, words = word_embedding_forward(np.zeros(5, np.int64), rng.standard_normal((7, 2)))
    state = (np.zeros((5, 2)), np.zeros((5, 2)))
    for limit in (7 * 8 * 8 - 1, 7 * 8 * 8):
        monkeypatch.setattr(decoding, "_LARGEST_TABLE", limit)
        step = RecurrentStep(cell_for("f", "lstm"), params, state[0])
        step(x, state, words)
        assert (step._table is not None) == (limit == 7 * 8 * 8)
