"""The steps of a chunk by compiled kernels against the reference."""

from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import bfloat16, cells, chunks, kernel, lstm_steps, memory, products
from rnnlab.ops.numba.kernel import always_parallel
from rnnlab.ops.precision import products_in
from rnnlab.ops.step_by_step import step_by_step
from rnnlab.ops.steps import StepInputs, Steps

from ..cases import TOLERANCE
from ..chunk_cases import RAGGED, Chunk, noted, steps_of
from .compare import every_dtype, strided
from .test_bfloat16 import run as run_without

BY_STEPS = step_by_step(memory, products, cells)
ONE_BY_ONE, AT_ONCE = steps_of(BY_STEPS, "lstm"), steps_of(lstm_steps, "lstm")


def a_chunk(*given, **options):
    return Chunk("lstm", *given, **options)


@every_dtype
@pytest.mark.parametrize("prepack", [False, True], ids=["weight", "prepacked"])
def test_steps_of_a_chunk(prepack, dtype, rng):
    chunk = a_chunk((4, 2, 1), 3, dtype, rng)
    found, expected = (
        chunk.run(*steps_of(ops, "lstm"), ops.prepacked if prepack else np.asarray)
        for ops in (numba_ops, numpy_ops)
    )
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], **TOLERANCE[dtype], err_msg=name)


PARTS = ["one thread", "sequences", "weight", "weight, two threads"]


@pytest.fixture
def shared(request, monkeypatch):
    """A context in which two or three threads share the sequences or the weight, or one does all."""
    if request.param == "one thread":
        return nullcontext()
    monkeypatch.setattr(kernel, "_threads", 2 if "two" in request.param else 3)
    monkeypatch.setattr(chunks, "SMALL", 0 if "weight" in request.param else 1 << 30)
    return always_parallel()


@pytest.fixture
def only_at_once(monkeypatch):
    """Steps one by one are an error."""
    monkeypatch.setattr(lstm_steps, "_by_steps", None)


@pytest.mark.slow
@pytest.mark.usefixtures("only_at_once")
@every_dtype
@pytest.mark.parametrize("units", [32, 40, 130])
@pytest.mark.parametrize("shared", PARTS, indirect=True)
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_all_steps_at_once_are_those_one_by_one(alive, shared, units, dtype, rng):
    chunk = a_chunk(alive, units, dtype, rng, earlier=len(alive) // 3)
    expected = chunk.run(*ONE_BY_ONE, products.prepacked)
    with shared:
        found = chunk.run(*AT_ONCE, products.prepacked)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=10 * np.finfo(dtype).eps, err_msg=name)


@pytest.mark.usefixtures("only_at_once")
@every_dtype
@pytest.mark.parametrize("width", [1, 4, 5])
@pytest.mark.parametrize("shared", PARTS, indirect=True)
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_inputs_of_all_steps(alive, shared, width, dtype, rng, monkeypatch):
    chunk, runs = a_chunk(alive, 40, dtype, rng, earlier=len(alive) // 3, width=width), []
    narrow = lstm_steps._run_narrow
    monkeypatch.setattr(lstm_steps, "_run_narrow", lambda *given: runs.append(narrow(*given)) or runs[-1])
    expected = chunk.run(*ONE_BY_ONE, products.prepacked, narrow=True)
    with shared:
        found = chunk.run(*AT_ONCE, products.prepacked, narrow=True)
        assert runs == [width <= products.NARROW and chunks.SMALL > 0]
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=20 * np.finfo(dtype).eps, err_msg=name)


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
    inputs = change(StepInputs(chunk.x, products.prepacked(chunk.Wx), chunk.b))
    before = chunk.gates.copy()
    with pytest.raises((ValueError, TypeError), match="affine_into|_lstm_narrow_forward"):
        lstm_steps.lstm_steps_forward(
            chunk.gates, products.prepacked(chunk.Wh), chunk.h, chunk.c, chunk.tanh_c, chunk.steps, inputs
        )
    np.testing.assert_array_equal(chunk.gates, before)


@pytest.mark.skipif(bool(bfloat16.missing()), reason=bfloat16.missing())
@pytest.mark.usefixtures("only_at_once")
@pytest.mark.parametrize("units", [32, 40, 130])
@pytest.mark.parametrize("shared", PARTS, indirect=True)
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_all_steps_at_once_in_bfloat16(alive, shared, units, rng):
    chunk = a_chunk(alive, units, np.float32, rng, earlier=len(alive) // 3)
    with products_in("float32"):
        exact = chunk.run(*ONE_BY_ONE, products.prepacked)
    with products_in("bfloat16"):
        expected = chunk.run(*ONE_BY_ONE, products.prepacked)
        with shared:
            found = chunk.run(*AT_ONCE, products.prepacked)
    for name, array in found.items():
        # a sum in another order may be rounded to the other neighbour in bfloat16 at the next step
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=0.01, err_msg=name)
        assert np.median(abs(array - expected[name])) < 1e-5
    if len(alive) > 1:
        assert abs(found["h"] - exact["h"]).max() > 1e-5


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("change", ["layout", "weight", "no steps"])
def test_steps_that_one_kernel_cannot_run(change, rng, monkeypatch):
    chunk, view = a_chunk((5, 4, 4), 40, np.float64, rng), np.copy
    calls = []
    monkeypatch.setattr(lstm_steps, "_by_steps", noted(BY_STEPS, calls))
    if change == "layout":
        view = strided
    elif change == "weight":
        monkeypatch.setattr(products, "prepacked", lambda w: w)
    else:
        chunk.steps = chunk.steps[:0]
    found = chunk.run(*AT_ONCE, products.prepacked, view=view)
    assert len(calls) == 2
    for name, array in chunk.run(*ONE_BY_ONE, products.prepacked).items():
        np.testing.assert_allclose(found[name], array, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "change",
    [
        lambda given: given | {"gates": given["gates"][:, :-4]},
        lambda given: given | {"tanh_c": given["tanh_c"].astype(np.float32)},
        lambda given: given | {"c": given["h"]},
        lambda given: given | {"h": given["h"][:-1]},
        lambda given: given | {"steps": Steps(5, (5, 5, 4, 4))},
        lambda given: given | {"steps": Steps(6, (5, 5, 4))},
        lambda given: given | {"Wh": given["Wh"][:, :-8]},
        lambda given: given | {"Wh": given["Wh"][:-8]},
        lambda given: given | {"Wh": given["Wh"].astype(np.float32)},
    ],
    ids=[
        "shape",
        "dtype",
        "overlap",
        "too few states",
        "too many steps",
        "too many sequences",
        "columns of the weight",
        "rows of the weight",
        "dtype of the weight",
    ],
)
def test_arguments_that_do_not_fit(change, rng):
    chunk = a_chunk((5, 5, 4), 40, np.float64, rng)
    given = {name: getattr(chunk, name).copy() for name in ("gates", "Wh", "h", "c", "tanh_c")}
    given = change(given | {"steps": chunk.steps})
    with pytest.raises((ValueError, TypeError), match=r"lstm_(steps_)?forward|matmul_add"):
        lstm_steps.lstm_steps_forward(
            given["gates"],
            products.prepacked(given["Wh"]),
            given["h"],
            given["c"],
            given["tanh_c"],
            given["steps"],
        )


def test_slices_are_no_steps(rng):
    chunk = a_chunk((5, 5, 4), 40, np.float64, rng)
    chunk.steps = tuple(chunk.steps)
    with pytest.raises(TypeError, match=r"lstm_steps_forward: steps is a tuple, expected Steps"):
        chunk.run(*AT_ONCE, products.prepacked)


@pytest.mark.parametrize("shape", [(320, 40), (80, 40), (160, 48)], ids=str)
def test_a_weight_of_the_backward_that_does_not_fit(shape, rng):
    chunk = a_chunk((5, 5, 4), 40, np.float64, rng)
    arrays = [getattr(chunk, name) for name in ("dh", "dstate", "dcell", "gates", "c", "tanh_c", "da")]
    with pytest.raises(ValueError, match="matmul_into"):
        lstm_steps.lstm_steps_backward(*arrays, products.prepacked(np.ones(shape)), chunk.steps)


@pytest.mark.skipif(bool(bfloat16.missing()), reason=bfloat16.missing())
def test_a_rounded_weight_of_arrays_in_double_precision(rng):
    chunk = a_chunk((5, 5, 4), 40, np.float64, rng)
    with products_in("bfloat16"):
        weight = products.prepacked(chunk.Wh.astype(np.float32))
    with pytest.raises(TypeError, match="matmul_add"):
        lstm_steps.lstm_steps_forward(chunk.gates, weight, chunk.h, chunk.c, chunk.tanh_c, chunk.steps)


@pytest.mark.skipif(bool(bfloat16.missing()) or not bfloat16.AMX, reason="the other tests are without AMX")
def test_steps_in_bfloat16_without_amx():
    run_without(
        "import numpy as np\n"
        "from tests.ops.numba import test_lstm_steps as tests\n"
        "assert not tests.bfloat16.AMX\n"
        "rng = np.random.default_rng(0)\n"
        "for context in (tests.nullcontext, tests.always_parallel):\n"
        "    for tests.chunks.SMALL in (0, 1 << 30):\n"
        "        tests.test_all_steps_at_once_in_bfloat16((45, 45, 33, 7, 1), context(), 40, rng)",
        "amx",
    )
