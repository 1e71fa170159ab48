"""The steps of a chunk, composed of products and cells, against a loop over unpacked sequences."""

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.lstm_steps import lstm_step_by_step
from rnnlab.ops.steps import StepInputs, Steps

H, ALIVE = 3, (4, 2, 1)  # rows at each step, longest sequence first
N, M = ALIVE[0], sum(ALIVE)
STEPS = Steps(N, ALIVE)


def run(forward, x, Wh, h0, c0):
    gates, tanh_c = x.copy(), np.empty((M, H), x.dtype)
    h, c = (np.full((N + M, H), np.nan, x.dtype) for _ in range(2))
    h[:N], c[:N] = h0, c0
    forward(gates, Wh, h, c, tanh_c, STEPS)
    return gates, h, c, tanh_c


@pytest.fixture
def inputs(rng):
    shapes = (M, 4 * H), (H, 4 * H), (N, H), (N, H)
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.fixture
def both():
    return lstm_step_by_step(numpy_ops.products, numpy_ops.cells)


def test_forward_is_the_equations(inputs, both):
    x, Wh, h0, c0 = inputs
    _, h, c, _ = run(both[0], x, Wh, h0, c0)
    for row in range(N):
        now_h, now_c = h0[row], c0[row]
        for rows, _, after in STEPS:
            if row >= rows.stop - rows.start:
                break
            i, f, o, g = np.split(x[rows][row] + now_h @ Wh, 4)
            i, f, o = (1 / (1 + np.exp(-a)) for a in (i, f, o))
            now_c = f * now_c + i * np.tanh(g)
            now_h = o * np.tanh(now_c)
            np.testing.assert_allclose(h[after][row], now_h, rtol=1e-12)
            np.testing.assert_allclose(c[after][row], now_c, rtol=1e-12)


def test_inputs_are_the_pre_activations_of_their_steps_alone(inputs, both, rng):
    a, Wh, h0, c0 = inputs
    x, Wx, b = (rng.standard_normal(shape) for shape in ((M - N, 2), (2, 4 * H), (4 * H,)))
    expected = a.copy()
    expected[N:] = x @ Wx + b
    _, h, c, tanh_c = run(both[0], expected, Wh, h0, c0)
    found_h, found_c, found = h.copy(), c.copy(), a.copy()
    found_h[2 * N :] = found_c[2 * N :] = np.nan
    both[0](found, Wh, found_h, found_c, tanh_c, STEPS[1:], StepInputs(x, Wx, b))
    np.testing.assert_allclose(found_h, h, rtol=1e-12)
    np.testing.assert_allclose(found_c, c, rtol=1e-12)
    np.testing.assert_array_equal(found[:N], a[:N])


def test_backward_is_the_numeric_gradient(inputs, both, rng):
    x, Wh, h0, c0 = inputs
    forward, backward = both
    weight = rng.standard_normal((M, H))

    def loss():
        _, h, _, _ = run(forward, x, Wh, h0, c0)
        return float((h[N:] * weight).sum())

    gates, _, c, tanh_c = run(forward, x, Wh, h0, c0)
    dstate, dcell, da = np.zeros((N, H)), np.zeros((N, H)), np.empty((M, 4 * H))
    backward(weight, dstate, dcell, gates, c, tanh_c, da, Wh.T, STEPS)
    for array, gradient in ((x, da), (h0, dstate), (c0, dcell)):
        for index in rng.integers(array.size, size=6):
            saved, values = array.flat[index], []
            for change in (1e-6, -1e-6):
                array.flat[index] = saved + change
                values.append(loss())
            array.flat[index] = saved
            assert gradient.flat[index] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-7)


def test_slices_are_no_steps(both):
    nothing, slices = np.empty((0, 4 * H)), tuple(STEPS)
    for function, arguments in zip(both, (5, 8), strict=True):
        with pytest.raises(TypeError, match=rf"{function.__name__}: steps is a tuple, expected Steps"):
            function(*[nothing] * arguments, slices)


def test_no_steps_change_nothing(both, rng):
    gates, tanh_c, dh = (rng.standard_normal(shape) for shape in ((M, 4 * H), (M, H), (0, H)))
    h, c, dstate, dcell = (rng.standard_normal((rows, H)) for rows in (N + M, N + M, N, N))
    Wh, written = rng.standard_normal((H, 4 * H)), (gates, h, c, tanh_c, dstate, dcell)
    before = [each.copy() for each in written]
    both[0](gates, Wh, h, c, tanh_c, STEPS[:0])
    both[1](dh, dstate, dcell, gates, c, tanh_c, np.empty((0, 4 * H)), Wh.T.copy(), STEPS[:0])
    for each, kept in zip(written, before, strict=True):
        np.testing.assert_array_equal(each, kept)
