"""The memory of graphs: which arrays must stay, which may be freed, and which share memory."""

from __future__ import annotations

import ctypes
import gc
import subprocess

import numpy as np
import pytest

from . import capture, compiler
from .install import installed
from .test_capture import capturing, launched


def test_temporaries_of_the_default_pool(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    with capturing(stream, simulated.get_default_memory_pool()) as graphs:
        y = (x + 1) * 2
    with pytest.raises(
        AssertionError, match=r"was given back: the float64 array of shape \(3, 4\) allocated in"
    ):
        graphs[0].launch()
    assert simulated.isnan(y).all()


def test_arrays_from_before_that_are_gone(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    inputs = simulated.ones((3, 4))
    with capturing(stream, simulated.get_default_memory_pool()) as graphs:
        x += inputs[1:2]
    graphs[0].launch()
    view = inputs[0]
    del inputs
    graphs[0].launch()
    del view
    with pytest.raises(AssertionError, match=r"was given back: .* \(3, 4\) from before the capture"):
        graphs[0].launch()


def test_results_of_the_default_pool_that_are_gone(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    with capturing(stream, simulated.get_default_memory_pool()) as graphs:
        y = x + 1
    graphs[0].launch()
    del y
    with pytest.raises(AssertionError, match="given back"):
        graphs[0].launch()


def capture_with(pool, stream, function):
    with capturing(stream, pool) as graphs:
        result = function()
    return graphs[0], result


def test_a_pool_of_its_own(device, stream, x):
    pool = device.cuda.MemoryPool()
    graph, y = capture_with(pool, stream, lambda: device.exp((x + 1) * 2) - 1)
    for value in (0.0, 0.5):
        x.fill(value)
        launched(stream, graph)
        np.testing.assert_allclose(y.get(), np.exp(2 * value + 2) - 1)
    assert pool.total_bytes() >= pool.used_bytes() == 512


@pytest.mark.slow
def test_a_pool_that_is_gone(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    pool = simulated.cuda.MemoryPool()
    graph, y = capture_with(pool, stream, lambda: (x + 1) * 2)
    graph.launch()
    del pool
    gc.collect()
    with pytest.raises(AssertionError, match="given back"):
        graph.launch()
    assert y.shape == x.shape


def test_a_pool_that_has_freed_its_blocks(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    pool = simulated.cuda.MemoryPool()
    graph, _y = capture_with(pool, stream, lambda: (x + 1) * 2)
    graph.launch()
    pool.free_all_blocks()
    with pytest.raises(AssertionError, match="given back"):
        graph.launch()


def test_a_pool_without_dead_arrays_may_free_its_blocks(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    pool = simulated.cuda.MemoryPool()
    graph, y = capture_with(pool, stream, lambda: x + 1)
    pool.free_all_blocks()
    del pool
    graph.launch()
    np.testing.assert_array_equal(y.get(), x.get() + 1)


def test_nothing_dead_goes_from_launch_to_launch(simulated):
    stream = simulated.cuda.Stream(non_blocking=True)
    pool, result = simulated.cuda.MemoryPool(), simulated.zeros(3)

    def function():
        state = simulated.empty(3)
        simulated.copyto(result, state)
        state.fill(1)

    graph, _ = capture_with(pool, stream, function)
    for _ in range(2):
        graph.launch()
        assert simulated.isnan(result).all()


def test_two_graphs_of_one_pool(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    pool = simulated.cuda.MemoryPool()
    first, a = capture_with(pool, stream, lambda: (x + 1) * 2)
    second, b = capture_with(pool, stream, lambda: (x + 2) * 3)
    for _ in range(2):
        first.launch()
        np.testing.assert_array_equal(a.get(), (x.get() + 1) * 2)
        assert simulated.isnan(b).all(), "b is in the memory of the first graph's temporaries"
        second.launch()
        np.testing.assert_array_equal(b.get(), (x.get() + 2) * 3)
        np.testing.assert_array_equal(a.get(), (x.get() + 1) * 2)


def test_what_a_pool_gives_out_later_is_lost(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    pool = simulated.cuda.MemoryPool()
    with simulated.cuda.using_allocator(pool.malloc), stream:
        before = simulated.ones(3)
    graph, _result = capture_with(pool, stream, lambda: (x + 1) * 2)
    with simulated.cuda.using_allocator(pool.malloc):
        elsewhere = simulated.ones(3)  # the null stream has blocks of its own
        with stream:
            after = simulated.ones(3)
    ours = simulated.ones(3)
    graph.launch()
    for array in (before, elsewhere, ours):
        assert (array.get() == 1).all()
    assert simulated.isnan(after).all()


def test_bytes_of_a_pool(device):
    pool = device.cuda.MemoryPool()
    with device.cuda.using_allocator(pool.malloc):
        x = device.zeros(100)
        y = device.zeros(100)
        assert (pool.used_bytes(), pool.total_bytes()) == (2048, 2048)
    outside = device.zeros(100)
    del x
    assert (pool.used_bytes(), pool.total_bytes(), pool.free_bytes()) == (1024, 2048, 1024)
    with device.cuda.using_allocator(pool.malloc):
        x = outside + 1
    assert (pool.used_bytes(), pool.total_bytes()) == (2048, 2048)
    del x, y
    pool.free_all_blocks()
    assert pool.total_bytes() == 0


def test_limit_of_memory(simulated):
    stream = simulated.cuda.Stream(non_blocking=True)
    default, pool = simulated.get_default_memory_pool(), simulated.cuda.MemoryPool()
    x = simulated.zeros(100)
    simulated.cuda.limit = default.used_bytes() + 2048
    graph, y = capture_with(pool, stream, lambda: (x + 1) * 2)
    assert pool.total_bytes() == 2048
    with pytest.raises(simulated.cuda.memory.OutOfMemoryError):
        x + 1
    graph.launch()
    with simulated.cuda.using_allocator(pool.malloc):
        z = x + 1
    assert (y.get() == 2).all()
    graph.launch()
    del y, z
    pool.free_all_blocks()
    assert (x + 1).shape == (100,)


def test_out_of_memory_in_a_pool_frees_its_blocks(simulated):
    stream = simulated.cuda.Stream(non_blocking=True)
    pool = simulated.cuda.MemoryPool()
    x = simulated.zeros(100)
    graph, _y = capture_with(pool, stream, lambda: (x + 1) * 2)
    simulated.cuda.limit = simulated.get_default_memory_pool().used_bytes() + 4096
    out_of_memory = pytest.raises(simulated.cuda.memory.OutOfMemoryError)
    with simulated.cuda.using_allocator(pool.malloc), out_of_memory:
        simulated.zeros(10**4)
    with pytest.raises(AssertionError, match="given back"):
        graph.launch()


# ---------------------------------------------------------------- libraries

LIBRARY = """
typedef int (*Callback)(long long);
static Callback callback;
static double* queue[100];
static long long count;
extern "C" void shim_on_call(Callback function) { callback = function; }
extern "C" int shim_replay(long long index) { *queue[index] += 1; return 0; }
extern "C" int increment(double* x) {
    if (!callback) {
        *x += 1;
        return 0;
    }
    queue[count++] = x;
    return callback(count - 1);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    (folder / "library.cpp").write_text(LIBRARY)
    command = [compiler.COMPILER, "-shared", "-fPIC", "-o", folder / "library.so", folder / "library.cpp"]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(folder / "library.so"))
    library.increment.argtypes = [ctypes.c_void_p]
    return library


@pytest.fixture
def increment(library, simulated, monkeypatch):
    monkeypatch.setattr(capture, "_libraries", [])
    capture.connect(library)
    capture.connect(library)
    yield lambda x: library.increment(x.data.ptr)
    library.shim_on_call(capture.CALLBACK())


def test_calls_of_a_library_keep_their_place(simulated, increment):
    stream, other = (simulated.cuda.Stream(non_blocking=True) for _ in range(2))
    x, y = simulated.zeros(1), simulated.zeros(1)
    assert increment(x) == 0
    assert x.get() == 1
    with capturing(stream) as graphs:
        x *= 3
        assert increment(x) == 0
        x *= 5
        with other:
            increment(y)
            assert y.get() == 1
        increment(x)
    assert (x.get(), y.get()) == (1, 1)
    graphs[0].launch()
    assert (x.get(), y.get()) == ((1 * 3 + 1) * 5 + 1, 1)
    graphs[0].launch()
    assert x.get() == (21 * 3 + 1) * 5 + 1
    increment(y)
    assert y.get() == 2


def test_a_library_hears_of_a_lost_capture(simulated, increment):
    stream = simulated.cuda.Stream(non_blocking=True)
    x = simulated.zeros(1)
    error = simulated.cuda.runtime.CUDARuntimeError
    with stream:
        stream.begin_capture()
        with pytest.raises(error, match="cudaErrorStreamCaptureUnsupported"):
            stream.synchronize()
        assert increment(x) == 1
        with pytest.raises(error, match="Invalidated"):
            stream.end_capture()
    assert increment(x) == 0


def test_a_library_finds_nothing_in_dead_memory(simulated, increment):
    stream = simulated.cuda.Stream(non_blocking=True)
    pool, result = simulated.cuda.MemoryPool(), simulated.ones(1)

    def function():
        temporary = simulated.zeros(1)
        pointer = temporary.data.ptr
        del temporary
        increment(simulated.cuda.SimpleNamespace(data=simulated.cuda.SimpleNamespace(ptr=pointer)))
        return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_double)), (1,))

    graph, seen = capture_with(pool, stream, function)
    graph.launch()
    assert np.isnan(seen).all()
    assert result.get() == 1


def test_a_capture_that_nobody_ends(simulated):
    with installed() as cupy:
        left = cupy.cuda.Stream(non_blocking=True)
        left.begin_capture()
    with installed() as cupy:
        cupy.cuda.Device().synchronize()
        assert not left.is_capturing()
