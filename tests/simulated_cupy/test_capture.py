"""Graphs: a launch repeats the captured operations; the capture itself executes none."""

from __future__ import annotations

import contextlib
import importlib

import numpy as np
import pytest

from .test_kernels import NULL, kernel


@contextlib.contextmanager
def capturing(stream, pool=None):
    """Capture the with block, with memory from ``pool``; append the graph and the pool to its list."""
    cuda, graphs = importlib.import_module("cupy").cuda, []
    pool = cuda.MemoryPool() if pool is None else pool
    with cuda.using_allocator(pool.malloc), stream:
        stream.begin_capture()
        try:
            yield graphs
        finally:
            graphs += stream.end_capture(), pool


def launched(stream, graph):
    importlib.import_module("cupy").cuda.get_current_stream().synchronize()  # the inputs are written
    graph.launch(stream)
    stream.synchronize()


@pytest.fixture
def rows(device):
    return device.asarray([2, 0, 2, 1])


# ---------------------------------------------------------------- launches do what was captured

FUNCTIONS = {
    "elementwise": lambda cp, x, rows: cp.tanh(x * 2 + 1) - 0.5,
    "comparison": lambda cp, x, rows: cp.where(x > 0, x, -1),
    "of integers": lambda cp, x, rows: rows // 2 + 5,
    "reduction": lambda cp, x, rows: x.sum(axis=0, keepdims=True),
    "to no dimensions": lambda cp, x, rows: x.max(),
    "argmax": lambda cp, x, rows: x.argmax(axis=1),
    "norm": lambda cp, x, rows: cp.sqrt((x * x).mean()),
    "views": lambda cp, x, rows: x.T[1:, ::2].reshape(-1) + x.ravel()[:6],
    "view": lambda cp, x, rows: (x + 1).T,
    "astype": lambda cp, x, rows: x.astype("float32"),
    "copy": lambda cp, x, rows: cp.ascontiguousarray(x.T),
    "rows": lambda cp, x, rows: x[rows],
    "rows that are computed": lambda cp, x, rows: x[(rows + 1) % 3],
    "element": lambda cp, x, rows: x[rows[0], rows[1] + 1],
    "take": lambda cp, x, rows: x.take(rows, axis=0),
    "take_along_axis": lambda cp, x, rows: cp.take_along_axis(x, x.argmax(axis=1)[:, None], axis=1),
    "concatenate": lambda cp, x, rows: cp.concatenate([x, x[:1] * 2]),
    "stack": lambda cp, x, rows: cp.stack([x, -x], axis=1),
    "split": lambda cp, x, rows: cp.split(x * 2, 2, axis=1)[1],
    "creation": lambda cp, x, rows: cp.arange(4) + cp.zeros_like(x) + cp.full(4, 7.0),
    "full of an element": lambda cp, x, rows: cp.full((2, 2), x[0, 0]),
    "cumsum": lambda cp, x, rows: cp.cumsum(x, axis=1),
    "array of arrays": lambda cp, x, rows: cp.array([x[0, 0], x[1, 1]]),
    "from NumPy's functions": lambda cp, x, rows: np.multiply(np.exp(x), 2),
    "scalar of NumPy": lambda cp, x, rows: x * np.float64(3) + np.float64(2),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_as_without_a_graph(device, stream, x, rows, rng, function):
    with capturing(stream) as graphs:
        result = function(device, x, rows)
        assert stream.is_capturing()
    assert not stream.is_capturing()
    for _ in range(2):
        x.set(rng.standard_normal((3, 4)))
        rows.set(rng.permutation(4) % 3)
        launched(stream, graphs[0])
        expected = function(device, x, rows)
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        assert result.strides == expected.strides
        np.testing.assert_allclose(result.get(), expected.get(), rtol=1e-12)


def add_in_place(cp, y, x, rows):
    y += x


def multiply_a_view(cp, y, x, rows):
    y[1:] *= x[:2]


def assign(cp, y, x, rows):
    y[:, 1] = x[:, 0]


def assign_rows(cp, y, x, rows):
    y[rows[:1]] = y[rows[1:2]] - x[0]


def fill(cp, y, x, rows):
    y[0].fill(3)
    y.T[2].fill(x[1, 1])


def into(cp, y, x, rows):
    cp.add(y, x, out=y)
    cp.cumsum(y, axis=1, out=y)
    y.sum(axis=0, out=y[1])


def copyto(cp, y, x, rows):
    cp.copyto(y, x + y, where=x > 0)


@pytest.mark.parametrize(
    "function",
    [add_in_place, multiply_a_view, assign, assign_rows, fill, into, copyto],
    ids=lambda function: function.__name__,
)
def test_in_place(simulated, x, rows, function):
    stream = simulated.cuda.Stream(non_blocking=True)
    y, expected = simulated.ones((3, 4)), simulated.ones((3, 4))
    with capturing(stream) as graphs:
        function(simulated, y, x, rows)
    assert (y.get() == 1).all()
    for _ in range(3):
        graphs[0].launch()
        function(simulated, expected, x, rows)
        np.testing.assert_array_equal(y.get(), expected.get())


def test_state_goes_on_from_launch_to_launch(device, stream, x):
    w, m, t = device.zeros((3, 4)), device.zeros((3, 4)), device.zeros(1, "int64")
    kept = []
    with capturing(stream) as graphs:
        g = 2 * (w - x)
        m *= 0.9
        m += g
        step = m * 0.05
        w -= step
        t += 1
        kept += [g, step]
    assert (t.get(), w.get().any()) == (0, False)
    for _ in range(200):
        graphs[0].launch(stream)
    stream.synchronize()
    assert t.get() == 200
    np.testing.assert_allclose(w.get(), x.get(), atol=1e-3)
    x.set(np.full((3, 4), 5.0))
    for _ in range(200):
        graphs[0].launch(stream)
    stream.synchronize()
    np.testing.assert_allclose(w.get(), 5, atol=1e-3)


def test_kernels(device, stream, rng):
    first = rng.standard_normal(200)
    x, y, z = device.asarray(first), device.empty(200), device.empty((2, 100))
    scale, softmax = kernel(device, "scale"), kernel(device, "softmax")
    ring = kernel(device, "ring").kernel
    w, spare, counter = device.asarray(first), device.empty(200), device.zeros(1, "uint32")
    size = np.int64(200)
    with capturing(stream) as graphs:
        scale((3,), (64,), (x, y, size, np.float64(2), np.int32(3), NULL))
        softmax((2,), (64,), (y, z, np.int32(100)), shared_mem=100 * 8)
        counter.fill(0)
        arguments = w, spare, np.int32(200), np.int32(4), counter
        ring((4,), (32,), arguments, shared_mem=32 * 8, enable_cooperative_groups=True)
    for expected in (first, rng.standard_normal(200)):
        x.set(expected)
        w.set(expected)
        launched(stream, graphs[0])
        np.testing.assert_allclose(y.get(), 2 * expected**3, rtol=1e-12)
        e = np.exp(2 * expected.reshape(2, 100) ** 3)
        np.testing.assert_allclose(z.get(), e / e.sum(axis=1, keepdims=True), rtol=1e-12)
        for _ in range(4):
            expected = np.roll(expected, 1) + np.roll(expected, -1)
        np.testing.assert_allclose(w.get(), expected, rtol=1e-12)


def test_the_host_counts_one_launch(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    function = kernel(simulated, "scale")
    with capturing(stream) as graphs:
        for _ in range(3):
            function((1,), (32,), (x, x, np.int64(12), np.float64(2), np.int32(1), NULL))
    assert not simulated.launches
    before = x.get()
    graphs[0].upload()
    graphs[0].launch()
    assert simulated.launches == {"graph": 1}
    np.testing.assert_allclose(x.get(), 8 * before)


def test_a_kernel_can_be_given_the_stream(device, stream):
    x = device.zeros(4)
    function = kernel(device, "scale")
    with capturing(stream) as graphs, device.cuda.Stream.null:
        arguments = x, x, np.int64(4), np.float64(2), np.int32(0), NULL
        function((1,), (32,), arguments, stream=stream)
        x += 1
    assert (x.get() == 1).all()
    launched(stream, graphs[0])
    assert (x.get() == 2).all()


def test_one_graph_launches_after_another(device, stream):
    x = device.ones(2)
    with capturing(stream) as twice:
        x *= 2
    with capturing(stream) as more:
        x += 1
    for graphs in (twice, more, twice, twice):
        launched(stream, graphs[0])
    assert x.get().tolist() == [12, 12]


# ---------------------------------------------------------------- nothing happens at capture


def test_nothing_is_done_at_capture(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    before = x.get()
    with capturing(stream):
        y = x + 1
        x += 1
        x[0] = 3
        zeros = simulated.zeros(3)
        count = simulated.arange(3)
        kernel(simulated, "scale")((1,), (32,), (x, x, np.int64(12), np.float64(2), np.int32(1), NULL))
    np.testing.assert_array_equal(x.get(), before)
    assert simulated.isnan(y).all()
    assert simulated.isnan(zeros).all()
    assert int(count.min()) > 10**9


def test_errors_of_shape_come_at_capture(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    with capturing(stream):
        with pytest.raises(ValueError, match="broadcast"):
            x += simulated.ones(3)
        with pytest.raises(ValueError, match="broadcast"):
            x[0] = simulated.ones(3)
        with pytest.raises(IndexError):
            x[5]
        with pytest.raises(TypeError, match="expected a CuPy array or a scalar"):
            x[0] = np.ones(4)


def test_a_bad_index_shows_at_launch(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    rows = simulated.asarray([0, 1])
    with capturing(stream) as graphs:
        y = x[rows]
    rows += 2
    with pytest.raises(IndexError):
        graphs[0].launch()
    assert simulated.isnan(y).all()


def test_a_kernel_that_writes_outside_shows_at_launch(simulated):
    stream = simulated.cuda.Stream(non_blocking=True)
    x = simulated.zeros(10)
    with capturing(stream) as graphs:
        kernel(simulated, "writes_behind")((1,), (1,), (x[5:], np.int32(5)))
    with pytest.raises(AssertionError, match="writes_behind: the array of parameter x: .* its 80 bytes"):
        graphs[0].launch()
