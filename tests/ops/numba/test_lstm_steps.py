"""The steps of a chunk by compiled kernels against the reference."""

from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.lstm_steps import lstm_step_by_step
from rnnlab.ops.numba import bfloat16, cells, kernel, lstm_steps, products
from rnnlab.ops.numba.kernel import always_parallel
from rnnlab.ops.precision import products_in
from rnnlab.ops.steps import StepInputs, Steps

from ..cases import TOLERANCE
from ..test_lstm_steps import STEPS, H, M, N, run
from .compare import every_dtype, strided
from .test_bfloat16 import run as run_without

ONE_BY_ONE = lstm_step_by_step(products, cells)
AT_ONCE = lstm_steps.lstm_steps_forward, lstm_steps.lstm_steps_backward
RAGGED = {
    "one row": (1, 1, 1),
    "one step": (9,),
    "equal": (50,) * 4,
    "ragged": (45, 45, 33, 32, 31, 17, 16, 3, 1),
}


class Chunk:
    """Arrays of a chunk of steps; the first of the sequences' steps may have been in an earlier one."""

    def __init__(self, alive, units, dtype, rng, earlier=0, width=3):
        self.alive, self.steps, self.earlier = alive, Steps(alive[0], alive), earlier
        N, M = alive[0], sum(alive)

        def normal(*shape):
            return rng.standard_normal(shape).astype(dtype)

        self.Wh = (units**-0.5 * normal(units, 4 * units)).astype(dtype)
        self.gates, self.tanh_c, self.dh = normal(M, 4 * units), normal(M, units), normal(M, units)
        self.h, self.c = normal(N + M, units), normal(N + M, units)
        self.dstate, self.dcell, self.da = normal(N, units), normal(N, units), normal(M, 4 * units)
        self.x, self.Wx, self.b = normal(M, width), normal(width, 4 * units), normal(4 * units)

    def run(self, forward, backward, view=np.copy, narrow=False):
        """What both write; the backward has the last steps alone, and of a narrow input the forward too."""
        gates, h, c, tanh_c = map(view, (self.gates, self.h, self.c, self.tanh_c))
        later, given = self.steps[self.earlier :], ()
        if narrow:
            given = (StepInputs(view(self.x[later.rows]), products.prepacked(self.Wx), self.b),)
        forward(gates, products.prepacked(self.Wh), h, c, tanh_c, later if narrow else self.steps, *given)
        m = sum(self.alive[self.earlier :])
        dh, da, dstate, dcell = map(view, (self.dh[:m], self.da[:m], self.dstate, self.dcell))
        backward(dh, dstate, dcell, gates, c, tanh_c, da, products.prepacked(self.Wh.T), later)
        return {"gates": gates, "h": h, "c": c, "tanh_c": tanh_c, "dstate": dstate, "dcell": dcell, "da": da}


@every_dtype
@pytest.mark.parametrize("prepack", [False, True], ids=["weight", "prepacked"])
def test_steps_of_a_chunk(prepack, dtype, normal):
    x, Wh, h0, c0, dh = normal(M, 4 * H), normal(H, 4 * H), normal(N, H), normal(N, H), normal(M, H)
    results = []
    for ops in (numba_ops, numpy_ops):
        forward, backward = (ops.prepacked(w) if prepack else w for w in (Wh, Wh.T))
        gates, h, c, tanh_c = run(ops.lstm_steps_forward, x, forward, h0, c0)
        dstate, dcell, da = np.zeros((N, H), dtype), np.zeros((N, H), dtype), np.empty((M, 4 * H), dtype)
        ops.lstm_steps_backward(dh, dstate, dcell, gates, c, tanh_c, da, backward, STEPS)
        results.append({"h": h, "c": c, "dstate": dstate, "dcell": dcell, "da": da})
    for name, array in results[0].items():
        np.testing.assert_allclose(array, results[1][name], **TOLERANCE[dtype], err_msg=name)


PARTS = ["one thread", "sequences", "weight", "weight, two threads"]


@pytest.fixture
def shared(request, monkeypatch):
    """A context in which two or three threads share the sequences or the weight, or one does all."""
    if request.param == "one thread":
        return nullcontext()
    monkeypatch.setattr(kernel, "_threads", 2 if "two" in request.param else 3)
    monkeypatch.setattr(lstm_steps, "_SMALL", 0 if "weight" in request.param else 1 << 30)
    return always_parallel()


@pytest.fixture
def only_at_once(monkeypatch):
    """Steps one by one are an error."""
    for name in ("_forward_by_steps", "_backward_by_steps"):
        monkeypatch.setattr(lstm_steps, name, None)


@pytest.mark.slow
@pytest.mark.usefixtures("only_at_once")
@every_dtype
@pytest.mark.parametrize("units", [32, 40, 130])
@pytest.mark.parametrize("shared", PARTS, indirect=True)
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_all_steps_at_once_are_those_one_by_one(alive, shared, units, dtype, rng):
    chunk = Chunk(alive, units, dtype, rng, earlier=len(alive) // 3)
    expected = chunk.run(*ONE_BY_ONE)
    with shared:
        found = chunk.run(*AT_ONCE)
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=10 * np.finfo(dtype).eps, err_msg=name)


@pytest.mark.usefixtures("only_at_once")
@every_dtype
@pytest.mark.parametrize("width", [1, 4, 5])
@pytest.mark.parametrize("shared", PARTS, indirect=True)
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_inputs_of_all_steps(alive, shared, width, dtype, rng, monkeypatch):
    chunk, runs = Chunk(alive, 40, dtype, rng, earlier=len(alive) // 3, width=width), []
    narrow = lstm_steps._run_narrow
    monkeypatch.setattr(lstm_steps, "_run_narrow", lambda *given: runs.append(narrow(*given)) or runs[-1])
    expected = chunk.run(*ONE_BY_ONE, narrow=True)
    with shared:
        found = chunk.run(*AT_ONCE, narrow=True)
        assert runs == [width <= products.NARROW and lstm_steps._SMALL > 0]
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
    chunk = Chunk((5, 5, 4), 40, np.float64, rng)
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
    chunk = Chunk(alive, units, np.float32, rng, earlier=len(alive) // 3)
    with products_in("float32"):
        exact = chunk.run(*ONE_BY_ONE)
    with products_in("bfloat16"):
        expected = chunk.run(*ONE_BY_ONE)
        with shared:
            found = chunk.run(*AT_ONCE)
    for name, array in found.items():
        # a sum in another order may be rounded to the other neighbour in bfloat16 at the next step
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=0.01, err_msg=name)
        assert np.median(abs(array - expected[name])) < 1e-5
    if len(alive) > 1:
        assert abs(found["h"] - exact["h"]).max() > 1e-5


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("change", ["layout", "weight", "no steps"])
def test_steps_that_one_kernel_cannot_run(change, rng, monkeypatch):
    chunk, view = Chunk((5, 4, 4), 40, np.float64, rng), np.copy
    calls = []
    for name in ("_forward_by_steps", "_backward_by_steps"):
        by_steps = getattr(lstm_steps, name)
        monkeypatch.setattr(lstm_steps, name, lambda *given, by=by_steps: (calls.append(1), by(*given)))
    if change == "layout":
        view = strided
    elif change == "weight":
        monkeypatch.setattr(products, "prepacked", lambda w: w)
    else:
        chunk.steps = chunk.steps[:0]
    found = chunk.run(*AT_ONCE, view=view)
    assert len(calls) == 2
    for name, array in chunk.run(*ONE_BY_ONE).items():
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
    chunk = Chunk((5, 5, 4), 40, np.float64, rng)
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
    chunk = Chunk((5, 5, 4), 40, np.float64, rng)
    chunk.steps = tuple(chunk.steps)
    with pytest.raises(TypeError, match=r"lstm_steps_forward: steps is a tuple, expected Steps"):
        chunk.run(*AT_ONCE)


@pytest.mark.parametrize("shape", [(320, 40), (80, 40), (160, 48)], ids=str)
def test_a_weight_of_the_backward_that_does_not_fit(shape, rng):
    chunk = Chunk((5, 5, 4), 40, np.float64, rng)
    arrays = [getattr(chunk, name) for name in ("dh", "dstate", "dcell", "gates", "c", "tanh_c", "da")]
    with pytest.raises(ValueError, match="matmul_into"):
        lstm_steps.lstm_steps_backward(*arrays, products.prepacked(np.ones(shape)), chunk.steps)


@pytest.mark.skipif(bool(bfloat16.missing()), reason=bfloat16.missing())
def test_a_rounded_weight_of_arrays_in_double_precision(rng):
    chunk = Chunk((5, 5, 4), 40, np.float64, rng)
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
        "    for tests.lstm_steps._SMALL in (0, 1 << 30):\n"
        "        tests.test_all_steps_at_once_in_bfloat16((45, 45, 33, 7, 1), context(), 40, rng)",
        "amx",
    )
