"""All steps of an LSTM in one kernel against steps one by one."""

from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import bfloat16, kernel, lstm_steps, products, steps
from rnnlab.ops.numba.kernel import always_parallel
from rnnlab.ops.precision import products_in

from ..cases import TOLERANCE
from ..chunk_cases import RAGGED, Chunk, regularisations
from .compare import assert_same_at_once_in_bfloat16, every_dtype
from .test_bfloat16 import run as run_without

PARTS = ["one thread", "sequences", "weight", "weight, two threads"]


def a_chunk(*given, **options):
    return Chunk("lstm", *given, **options)


@pytest.fixture
def shared(request, monkeypatch):
    """A context in which two or three threads share the sequences or the weight, or one does all."""
    if request.param == "one thread":
        return nullcontext
    monkeypatch.setattr(kernel, "_threads", 2 if "two" in request.param else 3)
    monkeypatch.setattr(steps, "SMALL", 0 if "weight" in request.param else 1 << 30)
    return always_parallel


@every_dtype
def test_steps_are_those_of_numpy(dtype, rng):
    chunk = a_chunk((4, 2, 1), 33, dtype, rng)
    found, expected = chunk.run(numba_ops, at_once=True), chunk.run(numpy_ops, at_once=False)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], **TOLERANCE[dtype], err_msg=name)


@pytest.mark.slow
@every_dtype
@pytest.mark.parametrize("units", [7, 32, 40, 130])
@pytest.mark.parametrize("shared", PARTS, indirect=True)
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_at_once_is_one_by_one(alive, shared, units, dtype, rng):
    chunk = a_chunk(alive, units, dtype, rng, earlier=len(alive) // 3)
    expected = chunk.run(numba_ops, at_once=False)
    with shared():
        found = chunk.run(numba_ops, at_once=True)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=10 * np.finfo(dtype).eps, err_msg=name)


@pytest.mark.one_in(3)
@every_dtype
@pytest.mark.parametrize("width", [1, 4, 5])
@pytest.mark.parametrize("shared", PARTS, indirect=True)
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_inputs_of_all_steps(alive, shared, width, dtype, rng, monkeypatch):
    chunk, runs = a_chunk(alive, 40, dtype, rng, earlier=len(alive) // 3, width=width), []
    narrow = steps._run_narrow
    monkeypatch.setattr(steps, "_run_narrow", lambda *given: runs.append(narrow(*given)) or runs[-1])
    expected = chunk.run(numba_ops, at_once=False, narrow=True)
    with shared():
        found = chunk.run(numba_ops, at_once=True, narrow=True)
    assert any(runs) == (width <= products.NARROW and steps.SMALL > 0)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=20 * np.finfo(dtype).eps, err_msg=name)


@pytest.mark.one_in(4)
@every_dtype
@pytest.mark.parametrize("narrow", [False, True], ids=["", "narrow"])
@pytest.mark.parametrize("shared", PARTS, indirect=True)
@pytest.mark.parametrize("drawn", [True, False], ids=["drawn", "inference"])
def test_masks(drawn, shared, narrow, dtype, rng):
    for options in regularisations("lstm"):
        given = {"earlier": 2, "regularisation": options, "drawn": drawn}
        chunk = a_chunk(RAGGED["ragged"], 40, dtype, rng, **given)
        expected = chunk.run(numba_ops, at_once=False, narrow=narrow)
        with shared():
            found = chunk.run(numba_ops, at_once=True, narrow=narrow)
        for name, array in found.items():
            atol, what = 20 * np.finfo(dtype).eps, f"{options} {name}"
            np.testing.assert_allclose(array, expected[name], rtol=0, atol=atol, err_msg=what)


@pytest.mark.parametrize(
    "change",
    [
        lambda inputs: inputs._replace(x=inputs.x[:-1]),
        lambda inputs: inputs._replace(x=inputs.x[:, 0]),
        lambda inputs: inputs._replace(x=inputs.x[:, :-1]),
        lambda inputs: inputs._replace(x=inputs.x.astype(np.float32)),
        lambda inputs: inputs._replace(Wx=products.prepacked(np.ones((3, 80)))),
        lambda inputs: inputs._replace(b=inputs.b[:-1]),
        lambda inputs: inputs._replace(b=inputs.b.astype(np.float32)),
    ],
    ids=["rows of x", "axes of x", "columns of x", "dtype of x", "columns of Wx", "b", "dtype of b"],
)
def test_inputs_that_do_not_fit(change, rng):
    chunk = a_chunk((5, 5, 4), 40, np.float64, rng)
    run, (gates, states, saved) = chunk.prepared(numba_ops), chunk.forward_arrays()
    inputs = change(chunk.inputs(numba_ops))
    with pytest.raises((ValueError, TypeError), match="affine_into|_lstm_narrow_forward"):
        run.chunked.chunk_forward(inputs, gates, states, saved, chunk.steps, None)
    np.testing.assert_array_equal(gates, chunk.gates)


@pytest.mark.one_in(3)
@pytest.mark.skipif(bool(bfloat16.missing()), reason=bfloat16.missing())
@pytest.mark.parametrize("options", [None, {"zoneout_h": 0.2, "zoneout_c": 0.3, "recurrent_dropout": 0.4}])
@pytest.mark.parametrize("units", [7, 32, 40, 130])
@pytest.mark.parametrize("shared", PARTS, indirect=True)
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_at_once_in_bfloat16(alive, shared, units, options, rng):
    chunk = a_chunk(alive, units, np.float32, rng, earlier=len(alive) // 3, regularisation=options)
    assert_same_at_once_in_bfloat16(chunk, shared)


@pytest.mark.skipif(bool(bfloat16.missing()), reason=bfloat16.missing())
def test_a_rounded_weight_of_arrays_in_double_precision(rng):
    chunk = a_chunk((5, 5, 4), 40, np.float64, rng)
    gates, states, saved = chunk.forward_arrays()
    with products_in("bfloat16"):
        weight = products.prepacked(chunk.Wh.astype(np.float32))
    with pytest.raises(TypeError, match="a weight has dtype float32, expected float64"):
        steps.steps_forward("lstm", gates, [weight], states, saved, chunk.steps)


@pytest.mark.skipif(bool(bfloat16.missing()) or not bfloat16.AMX, reason="the other tests are without AMX")
def test_steps_in_bfloat16_without_amx():
    run_without(
        "import numpy as np\n"
        "from tests.ops.numba import test_lstm_steps as tests\n"
        "assert not tests.bfloat16.AMX\n"
        "rng = np.random.default_rng(0)\n"
        "for context in (tests.nullcontext, tests.always_parallel):\n"
        "    for tests.steps.SMALL in (0, 1 << 30):\n"
        "        tests.test_at_once_in_bfloat16((45, 45, 33, 7, 1), context, 40, None, rng)",
        "amx",
    )


def test_every_way_has_its_kernel():
    pairs = [*lstm_steps.FORWARD.values(), *lstm_steps.BACKWARD.values()]
    assert len({kernel.cache_name("f") for pair in pairs for kernel in pair}) == 8
