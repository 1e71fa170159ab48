"""One step of a cell as the loop runs it, with any regularisation, and its backward."""

import numpy as np
import pytest

from rnnlab.layers import Regularisation
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.layers.recurrent.cell_run import CellRun
from rnnlab.layers.recurrent.regularisation import Draws
from rnnlab.ops import ops_for

from ..reference import every_cell
from .peephole import PeepholeLSTM

REGULARISATIONS = [
    {},
    {"zoneout_h": 0.4},
    {"recurrent_dropout": 0.5},
    {"recurrent_dropout": 0.5, "zoneout_h": 0.4},
    {"weight_dropout": 0.5},
]


def run_of(cell, params, h0, **regularisation):
    draws = Draws.of(Regularisation(**regularisation), np.random.default_rng(3), ops_for(h0))
    return CellRun(cell, draws, params, h0)


def step_of(run, gates, state):
    after = tuple(np.empty_like(each) for each in state)
    rows = slice(0, len(gates))
    step = run.step(gates.copy(), state, after, run.prepared.saved(len(gates), state[0])[rows], 0)
    run.prepared.forward(step)
    return step


@every_cell
@pytest.mark.parametrize("regularisation", REGULARISATIONS, ids=str)
def test_the_backward_of_a_step(cell, regularisation, rng):
    inputs, own = cell.inputs(rng), cell_for("f", cell.name)
    state = tuple(inputs[f"{name}0"] for name in cell.states)
    run = run_of(own, {"Wh": inputs["Wh"]}, state[0], **regularisation)
    given = rng.standard_normal((len(state[0]), inputs["Wh"].shape[1])), *state
    dafter = [rng.standard_normal(each.shape) for each in state]

    step, dstate, da = step_of(run, given[0], state), tuple(each.copy() for each in dafter), given[0].copy()
    run.backward(step, dstate, da)
    along = [rng.standard_normal(each.shape) for each in given]
    found = sum(float((d * a).sum()) for d, a in zip((da, *dstate), along, strict=True))

    def loss(shift):
        gates, *before = (each + shift * a for each, a in zip(given, along, strict=True))
        after = step_of(run, gates, tuple(before)).next
        return sum(float((d * each).sum()) for d, each in zip(dafter, after, strict=True))

    np.testing.assert_allclose(found, (loss(1e-5) - loss(-1e-5)) / 2e-5, rtol=1e-7, atol=1e-8)


def test_masks_are_there_if_something_is_dropped():
    h0, params = np.zeros((2, 3)), {"Wh": np.zeros((3, 12))}
    lstm = cell_for("f", "lstm")
    assert run_of(lstm, params, h0).masks is None
    assert run_of(lstm, params, h0, weight_dropout=0.5).masks is None
    zoneout = run_of(lstm, params, h0, zoneout_h=0.5).masks
    assert zoneout.steps.zoneout == (0.5, 0.0)
    assert zoneout.state is None
    dropout = run_of(lstm, params, h0, recurrent_dropout=0.5).masks
    assert dropout.steps.zoneout == (0.0, 0.0)
    assert dropout.state.shape == h0.shape


def test_a_cell_of_step_functions_runs_step_by_step():
    h0, params = np.zeros((2, 3)), {"Wh": np.zeros((3, 12)), "W_peephole": np.zeros((3, 3))}
    assert run_of(cell_for("f", "lstm"), params, h0).chunked is not None
    assert run_of(PeepholeLSTM(), params, h0).chunked is None
