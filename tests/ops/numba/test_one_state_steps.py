"""All steps of an RNN and the GRUs in one kernel against steps one by one."""

from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import bfloat16, kernel
from rnnlab.ops.numba.kernel import always_parallel

from ..cases import TOLERANCE
from ..chunk_cases import RAGGED, Chunk, regularisations
from .compare import assert_same_at_once_in_bfloat16, every_dtype
from .test_bfloat16 import run as run_without

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


@pytest.mark.one_in(3)
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


@pytest.mark.one_in(2)
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


@pytest.mark.one_in(3)
@pytest.mark.skipif(bool(bfloat16.missing()), reason=bfloat16.missing())
@every_cell
@pytest.mark.parametrize("regularised", [False, True], ids=["", "masks"])
@pytest.mark.parametrize("units", [7, 32, 40, 130])
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_at_once_in_bfloat16(alive, units, regularised, cell, threads, rng):
    options = regularisations(cell)[-1] if regularised else None
    chunk = Chunk(cell, alive, units, np.float32, rng, earlier=len(alive) // 3, regularisation=options)
    assert_same_at_once_in_bfloat16(chunk, threads)


@pytest.mark.skipif(bool(bfloat16.missing()) or not bfloat16.AMX, reason="the other tests are without AMX")
def test_steps_in_bfloat16_without_amx():
    run_without(
        "import numpy as np\n"
        "from tests.ops.numba import test_one_state_steps as tests\n"
        "assert not tests.bfloat16.AMX\n"
        "rng = np.random.default_rng(0)\n"
        "for context in (tests.nullcontext, tests.always_parallel):\n"
        "    for cell in ('rnn', 'gru', 'simplified_gru'):\n"
        "        tests.test_at_once_in_bfloat16((45, 45, 33, 7, 1), 40, False, cell, context, rng)",
        "amx",
    )
