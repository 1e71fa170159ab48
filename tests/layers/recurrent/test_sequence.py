"""A cell over a batch of sequences: its arguments, errors and gradients of the final state."""

import re

import numpy as np
import pytest

from rnnlab.layers import gru_backward, lstm_backward, lstm_forward, recurrent_backward, recurrent_forward
from rnnlab.layers.recurrent.cell import cell_for

N, T, D, H = 4, 7, 3, 5
LENGTHS = np.array([7, 0, 3, 5])
CELLS = ["rnn", "lstm", "gru", "simplified_gru"]

every_cell = pytest.mark.parametrize("cell", CELLS)


def batch(rng, cell):
    found = cell_for("f", cell)
    params = {name: rng.standard_normal(shape) / 2 for name, shape in found.shapes(D, H).items()}
    state = tuple(rng.standard_normal((N, H)) for _ in range(found.num_states))
    return rng.standard_normal((N, T, D)), state, params


def run(x, state, params, cell, **options):
    """Outputs and all gradients."""
    h, final, cache = recurrent_forward(x, state, params, cell=cell, rng=np.random.default_rng(3), **options)
    dx, dstate, dparams = recurrent_backward(np.cos(h), cache, dfinal=tuple(map(np.sin, final)))
    return [h, *final, dx, *dstate, *dparams.values()]


@every_cell
def test_a_mask_is_lengths(cell, rng):
    arguments, mask = batch(rng, cell), np.arange(T) < LENGTHS[:, None]
    for one, other in zip(
        run(*arguments, cell, lengths=LENGTHS), run(*arguments, cell, mask=mask), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"state": ()}, ValueError, "recurrent_forward: state is a tuple of 0, expected a tuple of 2 arrays"),
        ({"state": None}, ValueError, "recurrent_forward: state is a NoneType, expected a tuple of 2 arrays"),
        ({"cell": "lsmt"}, ValueError, "recurrent_forward: cell is 'lsmt', expected one of rnn, lstm"),
        (
            {"params": {}},
            ValueError,
            "recurrent_forward: params has no Wx, Wh, b, expected Wx, Wh, b; found",
        ),
        ({"rng": 3}, TypeError, "recurrent_forward: rng is 3, expected a numpy Generator or None"),
        ({"x": np.zeros((N, D))}, ValueError, "recurrent_forward: x has shape (4, 3), expected (N, T, D)"),
        (
            {"x": np.zeros((N, T, D + 1))},
            ValueError,
            "recurrent_forward: Wx has shape (3, 20), expected (D, 4H) = (4, 20)",
        ),
        (
            {"x": np.zeros((N, T, D), np.float32)},
            TypeError,
            "recurrent_forward: h0 has dtype float64, expected float32 as x",
        ),
        ({"lengths": [1, 2, 3]}, ValueError, "recurrent_forward: lengths has shape (3,)"),
        (
            {"lengths": [1, 2, 3, 8]},
            ValueError,
            "recurrent_forward: lengths holds 8, expected numbers",
        ),
    ],
)
def test_what_does_not_fit_is_named(change, error, message, rng):
    x, state, params = batch(rng, "lstm")
    arguments = {"x": x, "state": state, "params": params, "cell": "lstm"} | change
    with pytest.raises(error, match=re.escape(message)):
        recurrent_forward(**arguments)


def test_gradients_that_do_not_fit(rng):
    x, state, params = batch(rng, "lstm")
    h, final, cache = recurrent_forward(x, state, params, cell="lstm")
    for dh, dfinal, message in (
        (h[:, :-1], None, "recurrent_backward: dh has shape (4, 6, 5)"),
        (h, final[:1], "recurrent_backward: dfinal has 1 arrays, expected 2"),
        (h, (final[0], final[1][:2]), "recurrent_backward: dfinal[1] has shape (2, 5), expected (4, 5)"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            recurrent_backward(dh, cache, dfinal=dfinal)
    message = "recurrent_backward: total_dh has shape (4, 7), expected (4, 7, 5)"
    with pytest.raises(ValueError, match=re.escape(message)):
        recurrent_backward(h, cache, total_dh=h[:, :, 0])
    with pytest.raises(
        ValueError, match="recurrent_backward: into has no Wh, b, expected Wx, Wh, b; found Wx"
    ):
        recurrent_backward(h, cache, into={"Wx": np.zeros_like(params["Wx"])})
    with pytest.raises(TypeError, match="recurrent_backward: into is a tuple, expected a dict of arrays"):
        recurrent_backward(h, cache, into=tuple(map(np.zeros_like, params.values())))


def test_total_dh_has_its_own_memory():
    N, T, H = 2, 3, 4
    params = {"Wx": np.ones((H, 4 * H)), "Wh": np.ones((H, 4 * H)), "b": np.ones(4 * H)}
    x, state = np.ones((N, T, H)), (np.zeros((N, H)), np.zeros((N, H)))
    h, _, cache = recurrent_forward(x, state, params, cell="lstm")
    with pytest.raises(ValueError, match="recurrent_backward: total_dh is in the memory of x, expected"):
        recurrent_backward(h, cache, total_dh=x)
    into = {name: np.zeros_like(array) for name, array in params.items()}
    whole = into["Wx"].reshape(-1)[: N * T * H].reshape(N, T, H)
    with pytest.raises(ValueError, match="total_dh is in the memory of the gradient of Wx, expected its own"):
        recurrent_backward(h, cache, into=into, total_dh=whole)
    dh, expected = h.copy(), np.empty_like(h)
    recurrent_backward(h, cache, total_dh=expected)
    recurrent_backward(dh, cache, total_dh=dh)  # it is written last
    np.testing.assert_array_equal(dh, expected)


def test_a_cache_of_another_forward(rng):
    x, state, params = batch(rng, "lstm")
    h, cache = lstm_forward(x, state[0], *params.values())
    with pytest.raises(TypeError, match="gru_backward: cache is from the forward of LSTM, expected"):
        gru_backward(h, cache)
    with pytest.raises(
        TypeError, match="lstm_backward: cache is a ndarray, expected the RecurrentCache of lstm_forward"
    ):
        lstm_backward(h, x)


@every_cell
def test_the_final_state_alone(cell, rng):
    """Without a gradient of the states, that of the final state is that of each sequence's last one."""
    (x, state, params), lengths = batch(rng, cell), np.array([7, 1, 3, 5])
    _, final, cache = recurrent_forward(x, state, params, cell=cell, lengths=lengths)
    alone = recurrent_backward(None, cache, dfinal=final)
    zeros = recurrent_backward(np.zeros((N, T, H)), cache, dfinal=final)
    for one, other in zip(_flat(alone), _flat(zeros), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.abs(alone[0]).max() > 0
    if cell == "lstm":
        h, c = final
        dx, *_ = lstm_backward(None, cache, dfinal_h=h, dfinal_c=c)
        np.testing.assert_array_equal(dx, alone[0])
        with pytest.raises(ValueError, match="^lstm_backward: dh is None, .*in dfinal_h, dfinal_c"):
            lstm_backward(None, cache)
    with pytest.raises(ValueError, match="^recurrent_backward: dh is None, .*in dfinal"):
        recurrent_backward(None, cache)


def _flat(found):
    dx, dstate, dparams = found
    return [dx, *dstate, *dparams.values()]
