"""The steps of each cell on CuPy against NumPy."""

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops

from ..cases import TOLERANCE
from ..chunk_cases import CELLS, Chunk, regularisations
from .compare import every_dtype


@every_dtype
@pytest.mark.parametrize("cell", CELLS)
def test_steps_one_by_one(cell, ops, dtype, rng):
    for options in (None, *regularisations(cell)):
        chunk = Chunk(cell, (9, 9, 5, 2, 1), 37, dtype, rng, earlier=2, regularisation=options)
        expected = chunk.run(numpy_ops, at_once=False)
        found = chunk.run(ops, at_once=False, view=lambda array: ops.asarray(array.copy()))
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], **TOLERANCE[dtype], err_msg=f"{options} {name}")


def test_steps_of_an_lstm_without_a_launch_for_all(ops, rng, monkeypatch):
    monkeypatch.setenv("RNNLAB_PERSISTENT", "0")
    for narrow in (False, True):
        chunk = Chunk("lstm", (5, 5, 2, 1), 6, np.float64, rng, earlier=2)
        expected = chunk.run(numpy_ops, at_once=False, narrow=narrow)
        found = chunk.run(ops, at_once=True, narrow=narrow, view=lambda array: ops.asarray(array.copy()))
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], **TOLERANCE[np.float64], err_msg=name)


def test_only_steps_of_an_lstm_without_masks_run_at_once(ops, rng, monkeypatch):
    monkeypatch.setenv("RNNLAB_PERSISTENT", "1")
    for cell in CELLS:
        for options in (None, {"zoneout_h": 0.1}):
            chunk = Chunk(cell, (3, 2), 8, np.float32, rng, regularisation=options)
            found = chunk.run(ops, at_once=True, view=lambda array: ops.asarray(array.copy()))
            assert (found is not None) == (cell == "lstm" and options is None)
