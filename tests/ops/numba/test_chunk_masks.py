"""Masks within the kernels of all steps: their arguments, and their bits."""

import numpy as np
import pytest

pytest.importorskip("numba")

from rnnlab.ops import ChunkMasks, StepMasks
from rnnlab.ops import numba as numba_ops
from rnnlab.ops.numba.chunk_masks import mask_arguments

from ..chunk_cases import CELLS, SEEDS, Chunk


def test_no_masks():
    states = np.ones((5, 3))
    state_mask, rates, seeds = mask_arguments(None, states)
    assert state_mask.shape == (0, 3)
    assert rates.tolist() == [0, 0, 0]
    assert seeds.size == 0


@pytest.mark.parametrize("drawn", [True, False])
def test_masks(drawn):
    mask, states = np.ones((2, 3)), np.ones((5, 3))
    masks = ChunkMasks(StepMasks((0.1, 0.2), 0.3, SEEDS[:3] if drawn else None), mask)
    state_mask, rates, seeds = mask_arguments(masks, states)
    assert state_mask is mask
    assert rates.tolist() == [0.1, 0.2, 0.3]
    assert seeds.tolist() == (SEEDS[:3] if drawn else [])
    assert seeds.dtype == np.int64


def test_units_are_drawn_as_by_the_primitives(rng):
    chunk = Chunk("rnn", (3, 3, 2), 40, float, rng, regularisation={"zoneout_h": 0.5})
    h, activations = (chunk.run(numba_ops, at_once=True)[name] for name in ("h", "gates"))
    drawn = np.empty(activations.shape)
    numba_ops.dropout_mask(0.5, SEEDS[0], 0, drawn)
    for rows, before, after in chunk.steps:
        expected = np.where(drawn[rows] == 0, h[before], activations[rows])
        np.testing.assert_array_equal(h[after], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cell", CELLS)
def test_expected_zoneout_has_the_same_bits_as_one_by_one(cell, dtype, rng):
    options = {"zoneout_h": 0.3, "zoneout_c": 0.2 if cell == "lstm" else 0.0}
    chunk = Chunk(cell, (5, 5, 4), 40, dtype, rng, regularisation=options, drawn=False)
    expected = chunk.run(numba_ops, at_once=False)
    for name, array in chunk.run(numba_ops, at_once=True).items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_a_probability_that_is_zero_in_float32(cell, drawn, rng):
    tiny = {"zoneout_h": 1e-50, "zoneout_c": 1e-50 if cell == "lstm" else 0.0}
    chunk = Chunk(cell, (5, 5, 4), 40, np.float32, rng, regularisation=tiny, drawn=drawn)
    expected = chunk.run(numba_ops, at_once=False)
    junk = [np.full(rows * 40, np.nan, np.float32) for rows in (5, 10) for _ in range(20)]
    del junk  # the kernels' workspaces probably get this memory
    found = chunk.run(numba_ops, at_once=True)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=1e-5, err_msg=name)
