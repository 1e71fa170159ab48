import numpy as np
import pytest

from rnnlab.gradcheck.cases import CELLS
from rnnlab.gradcheck.recurrent_cases import allows, cell_cases, check_cell
from rnnlab.layers.recurrent.cell import cell_for

from ..layers.recurrent.peephole import PeepholeLSTM


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_has_the_regularisations_that_it_allows(cell, rng):
    names = {case.name for case in cell_cases(cell, rng)}
    for_lstm = {
        f"recurrent, {cell}, zoneout of h and c": {"zoneout_c": 0.4},
        f"recurrent, {cell}, recurrent dropout of the candidate": {
            "recurrent_dropout": 0.3,
            "recurrent_dropout_on": "candidate",
        },
    }
    for name, options in for_lstm.items():
        assert (name in names) == allows(cell, options)
    assert allows(cell, {"zoneout_c": 0.4}) == (cell == "lstm")
    for kind in ("lengths", "zoneout", "recurrent dropout of the state", "DropConnect"):
        assert f"recurrent, {cell}, {kind}" in names
    assert f"attentive, {cell}, additive, selector and target" in names


def test_a_state_that_reaches_the_next_one_has_to_be_declared(monkeypatch, rng):
    check_cell("gru", rng)
    gru = type(cell_for("test", "gru"))
    monkeypatch.setattr(gru, "carries_h", False)
    with pytest.raises(
        ValueError, match=f"{gru.__name__}: carries_h is False, but .* expected carries_h = True"
    ):
        check_cell("gru", rng)


@pytest.mark.parametrize("cell", CELLS)
def test_the_seed_decides_the_inputs(cell):
    one, other = (list(cell_cases(cell, np.random.default_rng(3))) for _ in range(2))
    for case, same in zip(one, other, strict=True):
        assert case.name == same.name
        for name, array in case.inputs.items():
            np.testing.assert_array_equal(array, same.inputs[name])


def test_a_cell_that_drops_the_candidate_has_to_multiply_by_the_mask(monkeypatch, rng):
    check_cell(PeepholeLSTM(), rng)
    forward = PeepholeLSTM.step_forward

    def without(self, a, state, params):
        return forward(self, a, state, params)

    def ignores(self, a, state, params, candidate_mask=None):
        return forward(self, a, state, params)

    monkeypatch.setattr(PeepholeLSTM, "step_forward", without)
    with pytest.raises(TypeError, match="PeepholeLSTM: drops_candidate is True, expected step_forward with"):
        check_cell(PeepholeLSTM(), rng)
    monkeypatch.setattr(PeepholeLSTM, "step_forward", ignores)
    with pytest.raises(ValueError, match="drops_candidate is True, and step_forward does not multiply"):
        check_cell(PeepholeLSTM(), rng)
