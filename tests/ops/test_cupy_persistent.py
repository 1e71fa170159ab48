"""An LSTM's steps in one launch, against step by step and against NumPy."""

import importlib

import numpy as np
import pytest

from rnnlab.layers import lstm_backward, lstm_forward, recurrence
from rnnlab.layers.recurrence import Steps
from rnnlab.ops import numpy_ops

from .cases import TOLERANCE

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
NAMES = ["lstm_steps_forward", "lstm_steps_backward"]
# lengths and H: units that do and do not fill their blocks, and rows that do and do not fill four
CASES = {
    "one row": ([4], 8),
    "one step": ([1, 1, 1], 12),
    "one number": ([1], 1),
    "odd": ([3, 3, 3, 3, 3], 13),
    "ragged": ([5, 1, 3, 5, 2, 1, 1, 4, 1, 3], 10),
    "ragged, many rows": ([*range(1, 6), *[1] * 6, *range(5), *[4] * 8], 6),
}


@pytest.fixture
def persistent(device):
    return importlib.import_module("rnnlab.ops.cupy_persistent")


@pytest.fixture
def ops(device, persistent):
    return importlib.import_module("rnnlab.ops.cupy_ops")


@pytest.fixture
def launched(persistent, monkeypatch):
    """The names of the kernels that are launched for whole chunks."""
    names = []

    def recording(name, *arguments, **options):
        names.append(name)
        launch(name, *arguments, **options)

    launch = persistent.launch
    monkeypatch.setattr(persistent, "launch", recording)
    return names


@pytest.fixture(params=[64, 512])
def threads(request, persistent, monkeypatch):
    """Few threads have more rows than they can work on at a time."""
    monkeypatch.setattr(persistent, "THREADS", request.param)
    persistent._layout.cache_clear()
    yield request.param
    persistent._layout.cache_clear()


def forced(monkeypatch, value):
    monkeypatch.setenv("RNNLAB_PERSISTENT", value)


def run(ops, lengths, H, rng, dtype):
    """Both directions over the middle chunk of a sequence, or all of it: every array that they write."""
    lengths = np.array(lengths)
    steps = Steps.of("f", (lengths.size, int(lengths.max())), lengths=lengths, like=np.zeros(1))
    (chunk,) = steps.chunks(4 * H)
    N, M = lengths.size, chunk.size
    normal = lambda *shape: ops.asarray(rng.standard_normal(shape).astype(dtype))  # noqa: E731
    gates, h, c, tanh_c, Wh = (
        normal(M, 4 * H),
        normal(N + M, H),
        normal(N + M, H),
        normal(M, H),
        normal(H, 4 * H),
    )
    forward = [gates, h, c, tanh_c]
    ops.lstm_steps_forward(gates, ops.packed(Wh), h, c, tanh_c, chunk.steps)
    after = [ops.asnumpy(a).copy() for a in forward]
    skipped = len(chunk.steps) // 2  # a chunk that is not the first one
    later = chunk.steps[skipped:]
    m = M - later[0][0].start
    dh, dstate, dcell, da = normal(m, H), normal(N, H), normal(N, H), normal(m, 4 * H)
    ops.lstm_steps_backward(dh, dstate, dcell, gates, c, tanh_c, da, ops.packed(Wh.T), later)
    return [*after, *(ops.asnumpy(a) for a in (dh, dstate, dcell, gates, c, tanh_c, da))]


@every_dtype
@pytest.mark.parametrize("case", CASES)
def test_the_same_numbers(case, ops, launched, threads, dtype, monkeypatch):
    if threads == 512 and dtype == np.float32:
        pytest.skip("seen with few threads")
    seeded = lambda: np.random.default_rng(7)  # noqa: E731
    expected = run(numpy_ops, *CASES[case], seeded(), dtype)
    forced(monkeypatch, "0")
    apart = run(ops, *CASES[case], seeded(), dtype)
    assert launched == []
    forced(monkeypatch, "1")
    together = run(ops, *CASES[case], seeded(), dtype)
    assert launched == NAMES
    again = run(ops, *CASES[case], seeded(), dtype)
    scale = 30 if dtype == np.float32 else 10
    tolerance = {key: scale * value for key, value in TOLERANCE[dtype].items()}
    for one, same, other, reference in zip(together, again, apart, expected, strict=True):
        np.testing.assert_array_equal(one, same)
        np.testing.assert_allclose(one, other, **tolerance)
        np.testing.assert_allclose(one, reference, **tolerance)
