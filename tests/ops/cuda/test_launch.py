"""Launches of kernels: what they refuse, and what they are passed."""

import importlib

import numpy as np
import pytest


def test_an_array_of_another_gpu_than_the_one_in_use(simulated, monkeypatch):
    ops = importlib.import_module("rnnlab.ops.cuda")
    x = ops.zeros((2, 3))
    monkeypatch.setattr(simulated.cuda.runtime, "getDevice", lambda: 1)
    with pytest.raises(RuntimeError, match="rnn_forward: the arrays are on gpu:0, but this thread"):
        ops.rnn_forward(x, ops.zeros((2, 3)))


def test_an_array_that_no_kernel_takes(ops):
    wide = ops.zeros((3, 8))
    with pytest.raises(ValueError, match="expected a C-contiguous array, got strides"):
        ops.rnn_forward(wide[:, ::2], ops.zeros((3, 4)))
    with pytest.raises(ValueError, match="expected rows with contiguous columns, got strides"):
        ops.take(wide[:, ::2], ops.asarray(np.zeros(3, np.int64)), ops.zeros((3, 4)))


def test_an_array_that_is_left_out_is_a_null_pointer(simulated):
    launch = importlib.import_module("rnnlab.ops.cuda.launch")
    dh, dc, prev_c, tanh_c = (simulated.zeros((2, 3)) for _ in range(4))
    gates, da = simulated.zeros((2, 12)), simulated.zeros((2, 12))
    rest = dc, gates, prev_c, tanh_c, da, 2, 3
    launch.each("lstm_backward", 6, dh, dh, launch.NULL, *rest)
    with pytest.raises(TypeError, match="lstm_backward: parameter const REAL\\* further got NoneType"):
        launch.each("lstm_backward", 6, dh, dh, None, *rest)


@pytest.mark.parametrize(
    "kind", [np.float16, np.float32, np.float64, np.longdouble, np.int32, np.int64, int, float]
)
def test_numbers_of_any_type(ops, kind):
    """A scalar of NumPy may be longer or shorter than what the kernel reads, and CuPy passes its bytes on."""
    x = ops.asarray(np.ones((3, 5), np.float32))
    dropped, scores = ops.zeros(x.shape, x.dtype), ops.asarray(np.log(np.float32([[0.2, 0.3, 0.5]])))
    ops.dropout(x, kind(0.5), 7, dropped)
    np.testing.assert_array_equal(np.unique(ops.asnumpy(dropped)), [0, 2] if kind(0.5) else [1])
    for temperature in (kind(1), kind(3)):
        uniform = [ops.asarray(np.array([u])) for u in (0.1, 0.45, 0.9)]
        assert [int(ops.draw(scores, u, temperature)[0]) for u in uniform] == [0, 1, 2]
    if kind(0.5) == 0:
        columns, _ = ops.top(scores, kind(2))
        np.testing.assert_array_equal(ops.asnumpy(columns), [[2, 1]])


def test_a_number_that_the_kernel_cannot_have(simulated):
    launch = importlib.import_module("rnnlab.ops.cuda.launch")
    h = simulated.zeros((2, 3))
    with pytest.raises(TypeError, match="float"):
        launch.each("rnn_forward", 6, h, h, h, 6.5)
    with pytest.raises(ValueError, match="zip"):
        launch.each("rnn_forward", 6, h, h)


def test_a_cooperative_launch_of_more_blocks_than_run_at_once(simulated):
    launch = importlib.import_module("rnnlab.ops.cuda.launch")
    H, steps = 4, simulated.zeros(4, np.int64)
    arrays = [simulated.zeros(shape) for shape in ((1, 4 * H), (2, H), (2, H), (1, H), (H, 4 * H))]
    arguments = (*arrays, steps, simulated.zeros(1, np.uint32), 0, H, 4 * H, 1, 1, 1, 4, 1)
    with pytest.raises(RuntimeError, match="lstm_steps_forward: 10000 blocks, of which 16 run at once"):
        launch.launch("lstm_steps_forward", np.dtype(float), 10_000, 512, arguments, cooperative=True)
