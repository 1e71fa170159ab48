"""The steps of a chunk of an RNN and the GRUs by compiled kernels, against those one by one."""

from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import bfloat16, cells, chunks, kernel, memory, products, steps
from rnnlab.ops.numba.kernel import always_parallel
from rnnlab.ops.precision import products_in
from rnnlab.ops.step_by_step import step_by_step
from rnnlab.ops.steps import Steps

from ..cases import TOLERANCE
from ..chunk_cases import RAGGED, Chunk, noted, steps_of
from .compare import every_dtype, strided

ONE_BY_ONE = step_by_step(memory, products, cells)
every_cell = pytest.mark.parametrize("cell", ["rnn", "gru", "simplified_gru"])


@pytest.fixture(params=[1, 2, 3])
def threads(request, monkeypatch):
    """A context in which this many threads share the sequences."""
    monkeypatch.setattr(kernel, "_threads", request.param)
    return always_parallel() if request.param > 1 else nullcontext()


@pytest.fixture
def by_steps(monkeypatch):
    """The names of the primitives that ran step by step."""
    names = []
    monkeypatch.setattr(steps, "_by_steps", noted(ONE_BY_ONE, names))
    return names


@every_cell
@every_dtype
@pytest.mark.parametrize("prepack", [False, True], ids=["weight", "prepacked"])
def test_steps_of_a_chunk(prepack, dtype, cell, rng):
    chunk = Chunk(cell, (4, 2, 1), 9, dtype, rng)
    found, expected = (
        chunk.run(*steps_of(ops, cell), ops.prepacked if prepack else np.asarray)
        for ops in (numba_ops, numpy_ops)
    )
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], **TOLERANCE[dtype], err_msg=name)


@every_cell
@every_dtype
@pytest.mark.parametrize(("units", "narrow"), [(32, False), (40, True), (130, False)])
@pytest.mark.parametrize("alive", RAGGED.values(), ids=RAGGED)
def test_all_steps_at_once_are_those_one_by_one(alive, units, narrow, dtype, cell, threads, by_steps, rng):
    chunk = Chunk(cell, alive, units, dtype, rng, earlier=len(alive) // 3)
    expected = chunk.run(*steps_of(ONE_BY_ONE, cell), products.prepacked, narrow=narrow)
    with threads:
        found = chunk.run(*steps_of(steps, cell), products.prepacked, narrow=narrow)
    assert not by_steps
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=10 * np.finfo(dtype).eps, err_msg=name)


@pytest.mark.usefixtures("lenient")
@every_cell
@pytest.mark.parametrize("change", ["layout", "weight", "large weight", "no steps"])
def test_steps_that_one_kernel_does_not_run(change, cell, by_steps, rng, monkeypatch):
    chunk, context = Chunk(cell, (5, 4, 4), 40, float, rng), nullcontext()
    view, prepacked = np.copy, products.prepacked
    if change == "layout":
        view = strided
    elif change == "weight":
        prepacked = np.asarray
    elif change == "large weight":
        monkeypatch.setattr(kernel, "_threads", 2)
        monkeypatch.setattr(chunks, "SMALL", 0)
        context = always_parallel()
    else:
        chunk.steps = chunk.steps[:0]
    with context:
        found = chunk.run(*steps_of(steps, cell), prepacked, view=view, narrow=True)
    assert by_steps == [f"{cell}_steps_forward", f"{cell}_steps_backward"]
    for name, array in chunk.run(*steps_of(ONE_BY_ONE, cell), prepacked, narrow=True).items():
        np.testing.assert_allclose(found[name], array, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.skipif(bool(bfloat16.missing()), reason=bfloat16.missing())
@every_cell
def test_rounded_factors(cell, by_steps, rng):
    chunk = Chunk(cell, (5, 4, 4), 40, np.float32, rng)
    exact = chunk.run(*steps_of(steps, cell), products.prepacked)
    assert not by_steps
    with products_in("bfloat16"):
        found = chunk.run(*steps_of(steps, cell), products.prepacked)
        expected = chunk.run(*steps_of(ONE_BY_ONE, cell), products.prepacked)
    assert len(by_steps) == 2
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    assert 1e-5 < abs(found["h"] - exact["h"]).max() < 0.1


def narrower(name):
    return lambda given: given | {name: given[name][:, :-1].copy()}


def shorter(name):
    return lambda given: given | {name: given[name][:-1]}


def of_another_dtype(name):
    return lambda given: given | {name: given[name].astype(np.float32)}


def sharing_memory(one, other):
    def share(given):
        memory = np.zeros(given[one].size + given[other].size)
        return given | {name: memory[: given[name].size].reshape(given[name].shape) for name in (one, other)}

    return share


@every_cell
@pytest.mark.parametrize(
    ("way", "change"),
    [
        ("forward", narrower("gates")),
        ("forward", shorter("gates")),
        ("forward", shorter("h")),
        ("forward", of_another_dtype("h")),
        ("forward", sharing_memory("gates", "h")),
        ("backward", narrower("da")),
        ("backward", shorter("da")),
        ("backward", shorter("dh")),
        ("backward", shorter("dstate")),
        ("backward", of_another_dtype("dstate")),
        ("backward", narrower("h")),
        ("backward", sharing_memory("dh", "da")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_that_do_not_fit(way, change, cell, rng):
    chunk = Chunk(cell, (5, 5, 4), 40, float, rng)
    arrays = change(chunk.arguments(way, products.prepacked))
    function = dict(zip(("forward", "backward"), steps_of(steps, cell), strict=True))[way]
    with pytest.raises((ValueError, TypeError), match=rf"^_?({cell}|matmul)_\w+: \w+|^x w: "):
        function(*arrays.values(), chunk.steps)


@every_cell
@pytest.mark.parametrize("way", ["forward", "backward"])
@pytest.mark.parametrize("change", ["rows", "columns", "dtype"])
def test_a_weight_that_does_not_fit(change, way, cell, rng):
    chunk = Chunk(cell, (5, 5, 4), 40, float, rng)
    arrays = chunk.arguments(way, np.asarray)
    name = next(name for name in arrays if name.startswith("Wh") or name.endswith("to_h"))
    given, dtype = arrays[name], np.float32 if change == "dtype" else float
    changed = given.astype(dtype)[: -8 if change == "rows" else None, : -8 if change == "columns" else None]
    before = {key: array.copy() for key, array in arrays.items()}
    arrays |= {
        key: products.prepacked(array)
        for key, array in arrays.items()
        if key.startswith("Wh") or key.endswith("to_h")
    }
    arrays[name] = products.prepacked(changed)
    function = dict(zip(("forward", "backward"), steps_of(steps, cell), strict=True))[way]
    with pytest.raises((ValueError, TypeError), match=r"^matmul|^x w: |^gru|^rnn|^simplified_gru"):
        function(*arrays.values(), chunk.steps)
    if way == "forward":
        np.testing.assert_array_equal(arrays["h"], before["h"])


@every_cell
def test_slices_are_no_steps(cell, rng):
    chunk = Chunk(cell, (5, 5, 4), 40, float, rng)
    for way, function in zip(("forward", "backward"), steps_of(steps, cell), strict=True):
        with pytest.raises(TypeError, match=f"{cell}_steps_{way}: steps is a tuple, expected Steps"):
            function(*chunk.arguments(way, products.prepacked).values(), tuple(chunk.steps))


def test_steps_beyond_the_arrays(rng):
    chunk = Chunk("rnn", (5, 5, 4), 40, float, rng)
    for beyond in (Steps(5, (5, 5, 4, 4)), Steps(6, (5, 5, 4))):
        with pytest.raises(ValueError, match=r"^(matmul_add|rnn_forward): "):
            steps.rnn_steps_forward(*chunk.arguments("forward", products.prepacked).values(), beyond)
