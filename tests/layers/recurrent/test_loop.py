"""The loop over time: chunks, sequences of different lengths, and the whole gradient of each state."""

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import projected_check
from rnnlab.layers import recurrent_backward, recurrent_forward
from rnnlab.layers.recurrent import packing

from ..shifted import shift_states
from .peephole import PeepholeLSTM
from .test_sequence import CELLS, LENGTHS, H, N, T, batch, every_cell, run

REGULARISED = {"zoneout_h": 0.2, "recurrent_dropout": 0.3, "weight_dropout": 0.1}


@every_cell
@pytest.mark.parametrize("regularisation", [{}, REGULARISED], ids=["plain", "regularised"])
def test_chunks_change_nothing(cell, regularisation, rng, monkeypatch):
    """Steps one chunk each, or all in one: the same masks, the same sums but for their order."""
    arguments, results = batch(rng, cell), []
    for rows in (1, 4, 1000):
        monkeypatch.setattr(packing, "_CHUNK_ROWS", rows)
        monkeypatch.setattr(packing, "_CHUNK_NUMBERS", 1)
        results.append(run(*arguments, cell, lengths=LENGTHS, regularisation=regularisation))
    for other in results[1:]:
        for one, another in zip(results[0], other, strict=True):
            np.testing.assert_allclose(one, another, rtol=1e-11, atol=1e-12)


@every_cell
def test_a_sequence_does_not_depend_on_the_others(cell, rng):
    """Each sequence alone, cut to its length, in any order of the batch."""
    x, state, params = batch(rng, cell)
    h, final, _ = recurrent_forward(x, state, params, cell=cell, lengths=LENGTHS)
    for n, length in enumerate(LENGTHS):
        alone = tuple(each[n : n + 1] for each in state)
        h_alone, final_alone, _ = recurrent_forward(x[n : n + 1, :length], alone, params, cell=cell)
        np.testing.assert_allclose(h[n, :length], h_alone[0], rtol=1e-12)
        for each, expected in zip(final, final_alone, strict=True):
            np.testing.assert_allclose(each[n], expected[0], rtol=1e-12)
    order = rng.permutation(N)
    moved = tuple(each[order] for each in state)
    h_moved, _, _ = recurrent_forward(x[order], moved, params, cell=cell, lengths=LENGTHS[order])
    np.testing.assert_allclose(h_moved, h[order], rtol=1e-12)


@every_cell
def test_past_its_end_the_state_is_carried_through_and_x_is_not_read(cell, rng):
    x, state, params = batch(rng, cell)
    spoilt = x.copy()
    spoilt[np.arange(T) >= LENGTHS[:, None]] = np.nan
    for one, other in zip(
        run(x, state, params, cell, lengths=LENGTHS),
        run(spoilt, state, params, cell, lengths=LENGTHS),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("cell", [*CELLS, PeepholeLSTM()], ids=[*CELLS, "peephole_lstm"])
@pytest.mark.parametrize("regularisation", [{}, REGULARISED], ids=["plain", "regularised"])
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
def test_the_whole_gradient_of_each_state(cell, regularisation, lengths, rng, monkeypatch):
    """Against numeric gradients, for several chunks; it changes the other gradients by rounding only."""
    monkeypatch.setattr(packing, "_CHUNK_ROWS", 8)
    monkeypatch.setattr(packing, "_CHUNK_NUMBERS", 1)
    if not isinstance(cell, str) and regularisation:
        regularisation = {name: rate for name, rate in regularisation.items() if "recurrent" not in name}
    x, state, params = batch(rng, cell)
    options = {"cell": cell, "lengths": lengths, "regularisation": regularisation}
    dh, shift, whole = rng.standard_normal((N, T, H)), np.zeros((N, T, H)), np.full((N, T, H), np.nan)
    dfinal = tuple(rng.standard_normal((N, H)) for _ in state)

    def run():
        return recurrent_forward(x, state, params, rng=np.random.default_rng(3), **options)

    _, _, cache = run()
    dx, dstate, dparams = recurrent_backward(dh, cache, dfinal=dfinal, total_dh=whole)
    expected_dx, expected_dstate, expected = recurrent_backward(dh, cache, dfinal=dfinal)
    for one, other in zip(
        (dx, *dstate, *dparams.values()), (expected_dx, *expected_dstate, *expected.values()), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)

    shift_states(monkeypatch, params["Wh"], shift, lengths)

    def loss():
        h, final, _ = run()
        return float((h * dh).sum() + sum((f * df).sum() for f, df in zip(final, dfinal, strict=True)))

    for _ in range(4):
        assert projected_check(loss, shift, whole, rng=rng) < 1e-7
    if lengths is not None:
        np.testing.assert_array_equal(whole[np.arange(T) >= lengths[:, None]], 0)
