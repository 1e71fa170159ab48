import numpy as np
import pytest

from rnnlab import layers
from rnnlab.layers.recurrent.cell import cell_for

N, D, H = 3, 4, 5
CELLS = ["rnn", "lstm", "gru", "simplified_gru"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CELLS)
def test_step_functions_are_those_of_the_course(name, dtype, rng):
    """The contract's step and the public one, forward and backward; neither writes into what it is given."""
    cell = cell_for("f", name)
    Wx, Wh, b = (rng.standard_normal(shape).astype(dtype) for shape in cell.shapes(D, H).values())
    x = rng.standard_normal((N, D)).astype(dtype)
    state, dstate = (
        tuple(rng.standard_normal((N, H)).astype(dtype) for _ in range(cell.num_states)) for _ in range(2)
    )
    a = x @ Wx + b
    given = [array.copy() for array in (a, *state, *dstate, Wh)]
    after, cache = cell.step_forward(a, state, {"Wh": Wh})
    da, dprev, dparams = cell.step_backward(dstate, {"Wh": Wh}, cache)
    for array, before in zip((a, *state, *dstate, Wh), given, strict=True):
        np.testing.assert_array_equal(array, before)
    *expected, theirs = getattr(layers, f"{name}_step_forward")(x, *state, Wx, Wh, b)
    dx, *dprev_expected, dWx, dWh, db = getattr(layers, f"{name}_step_backward")(*dstate, theirs)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-13}
    found = [*after, da @ Wx.T, *dprev, x.T @ da, dparams["Wh"], da.sum(axis=0)]
    for one, other in zip(found, [*expected, dx, *dprev_expected, dWx, dWh, db], strict=True):
        np.testing.assert_allclose(one, other, **tolerance)
        assert one.dtype == dtype


@pytest.mark.parametrize("name", CELLS)
def test_what_they_say_of_themselves(name):
    cell = cell_for("f", name)
    assert cell.is_prepared
    assert cell.drops_candidate == (name != "rnn")
    assert cell.carries_h == ("gru" in name)
    assert cell.forget_gate == (1 if name == "lstm" else None)
    assert cell.shapes(D, H) == {
        "Wx": (D, cell.num_gates * H),
        "Wh": (H, cell.num_gates * H),
        "b": (cell.num_gates * H,),
    }


def test_a_step_alone_takes_no_mask():
    cell = cell_for("test", "lstm")
    a, state, mask = np.zeros((2, 12)), (np.zeros((2, 3)), np.zeros((2, 3))), np.ones((2, 3))
    with pytest.raises(TypeError, match="step_forward: found candidate_mask, expected no option"):
        cell.step_forward(a, state, {"Wh": np.zeros((3, 12))}, candidate_mask=mask)
