"""All steps of an RNN and the GRUs in one kernel against steps one by one."""

from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import kernel
from rnnlab.ops.numba.kernel import always_parallel

from ..cases import TOLERANCE
from ..chunk_cases import RAGGED, Chunk, regularisations
from .compare import every_dtype

every_cell = pytest.mark.parametrize("cell", ["rnn", "gru", "simplified_gru"])


@pytest.fixture(params=[1, 2, 3])
def threads(request, monkeypatch):
    """A context in which this many threads share the sequences."""
    monkeypatch.setattr(kernel, "_threads", request.param)
    return always_parallel if request.param > 1 else nullcontext


@every_cell
@every_dtype
def test_steps_are_those_of_numpy(dtype, cell, rng):
    chunk = Chunk(cell, (4, 2, 1), 33, dtype, rng)
    found, expected = chunk.run(numba_ops, at_once=True), chunk.run(numpy_ops, at_once=False)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], **TOLERANCE[dtype], err_msg=name)


@every_cell
@every_dtype
@pytest.mark.parametrize(("units", "narrow"), [(7, True), (32, False), (40, True), (130, False)])
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_at_once_is_one_by_one(alive, units, narrow, dtype, cell, threads, rng):
    chunk = Chunk(cell, alive, units, dtype, rng, earlier=len(alive) // 3)
    expected = chunk.run(numba_ops, at_once=False, narrow=narrow)
    with threads():
        found = chunk.run(numba_ops, at_once=True, narrow=narrow)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=10 * np.finfo(dtype).eps, err_msg=name)


@every_cell
@every_dtype
@pytest.mark.parametrize("drawn", [True, False], ids=["drawn", "inference"])
def test_masks(drawn, dtype, cell, threads, rng):
    for options in regularisations(cell):
        given = {"earlier": 2, "regularisation": options, "drawn": drawn}
        chunk = Chunk(cell, RAGGED["ragged"], 40, dtype, rng, **given)
        expected = chunk.run(numba_ops, at_once=False)
        with threads():
            found = chunk.run(numba_ops, at_once=True)
        for name, array in found.items():
            atol, what = 20 * np.finfo(dtype).eps, f"{options} {name}"
            np.testing.assert_allclose(array, expected[name], rtol=0, atol=atol, err_msg=what)
