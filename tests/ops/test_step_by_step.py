"""The steps of a chunk, composed of products and cells, against a loop over unpacked sequences."""

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.step_by_step import step_by_step
from rnnlab.ops.steps import StepInputs

from .chunk_cases import CELLS, Chunk, steps_of

H, ALIVE = 3, (4, 2, 1)  # rows at each step, longest sequence first
N, M = ALIVE[0], sum(ALIVE)


@pytest.fixture(params=CELLS)
def chunk(request, rng):
    return Chunk(request.param, ALIVE, H, np.float64, rng)


@pytest.fixture
def both(chunk):
    steps = step_by_step(numpy_ops, numpy_ops.products, numpy_ops.cells)
    return steps_of(steps, chunk.cell)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def next_state(cell, a, Wh, h, c):
    """The equations of one sequence's step: h and c after it."""
    if cell == "rnn":
        return np.tanh(a + h @ Wh), c
    if cell == "lstm":
        i, f, o, g = np.split(a + h @ Wh, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    gates = np.split(a, CELLS[cell])
    weights = np.split(Wh, CELLS[cell], axis=1)
    z = sigmoid(gates[0] + h @ weights[0])
    r = sigmoid(gates[1] + h @ weights[1]) if cell == "gru" else 1
    g = np.tanh(gates[-1] + (r * h) @ weights[-1])
    return (1 - z) * g + z * h, c


def test_forward_is_the_equations(chunk, both):
    found = chunk.run(*both, np.asarray)
    for row in range(N):
        h, c = chunk.h[row], chunk.c[row]
        for rows, _, after in chunk.steps:
            if row >= rows.stop - rows.start:
                break
            h, c = next_state(chunk.cell, chunk.gates[rows][row], chunk.Wh, h, c)
            np.testing.assert_allclose(found["h"][after][row], h, rtol=1e-12)
            if "c" in found:
                np.testing.assert_allclose(found["c"][after][row], c, rtol=1e-12)


def test_inputs_are_the_pre_activations_of_their_steps_alone(chunk, both):
    later = chunk.steps[1:]
    x = chunk.x[later.rows]
    chunk.gates[later.rows] = x @ chunk.Wx + chunk.b
    expected = chunk.arguments("forward", np.asarray)
    both[0](*expected.values(), chunk.steps)
    found = chunk.arguments("forward", np.asarray) | {"h": expected["h"].copy()}
    found["gates"][later.rows] = found["h"][2 * N :] = np.nan
    if "c" in found:
        found["c"] = expected["c"].copy()
    both[0](*found.values(), later, StepInputs(x, chunk.Wx, chunk.b))
    np.testing.assert_allclose(found["h"], expected["h"], rtol=1e-12)
    np.testing.assert_array_equal(found["gates"][: later.rows.start], chunk.gates[: later.rows.start])


def test_backward_is_the_numeric_gradient(chunk, both, rng):
    chunk.dstate[:] = chunk.dcell[:] = 0
    weight = chunk.dh.copy()
    found = chunk.run(*both, np.asarray)

    def loss():
        arrays = chunk.arguments("forward", np.asarray)
        both[0](*arrays.values(), chunk.steps)
        return float((arrays["h"][N:] * weight).sum())

    pairs = [(chunk.gates, found["da"]), (chunk.h[:N], found["dstate"])]
    if "dcell" in found:
        pairs.append((chunk.c[:N], found["dcell"]))
    for array, gradient in pairs:
        for index in rng.integers(array.size, size=6):
            saved, values = array.flat[index], []
            for change in (1e-6, -1e-6):
                array.flat[index] = saved + change
                values.append(loss())
            array.flat[index] = saved
            assert gradient.flat[index] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-7)


def test_a_backward_begins_with_the_gradient_from_later_steps(chunk, both):
    """Those of the first steps, given what those of the last steps leave, are those of all steps."""
    whole = chunk.run(*both, np.asarray)
    first = chunk.arguments("forward", np.asarray)
    both[0](*first.values(), chunk.steps)
    arrays = chunk.arguments("backward", np.asarray)
    arrays |= {name: first[name] for name in first.keys() & arrays.keys()}
    split = chunk.steps.table[1, 0]
    for steps, rows in ((chunk.steps[1:], slice(split, M)), (chunk.steps[:1], slice(0, split))):
        own = {name: getattr(chunk, name)[rows].copy() for name in ("dh", "da")}
        both[1](*(arrays | own).values(), steps)
        np.testing.assert_allclose(own["da"], whole["da"][rows], rtol=1e-12)
    np.testing.assert_allclose(arrays["dstate"], whole["dstate"], rtol=1e-12)


def test_slices_are_no_steps(chunk, both):
    for function, way in zip(both, ("forward", "backward"), strict=True):
        with pytest.raises(TypeError, match=rf"{function.__name__}: steps is a tuple, expected Steps"):
            function(*chunk.arguments(way, np.asarray).values(), tuple(chunk.steps))


def test_no_steps_change_nothing(chunk, both):
    for function, way in zip(both, ("forward", "backward"), strict=True):
        arrays = chunk.arguments(way, np.asarray)
        function(*arrays.values(), chunk.steps[:0])
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, getattr(chunk, name), err_msg=name)
