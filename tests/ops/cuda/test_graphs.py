"""CUDA graphs: work is captured once, and each launch has parameters of its own."""

import gc

import numpy as np
import pytest

from rnnlab.ops import gpu_training, ops_on


@pytest.fixture
def ops(device):
    return ops_on("gpu")


def test_a_graph(ops):
    training, rng = gpu_training(), np.random.default_rng(0)
    x, out = ops.asarray(np.ones(50)), ops.empty(50)
    w, dw = ops.asarray(np.zeros(1)), ops.asarray(np.ones(1))

    def update():
        ops.sgd(w, dw, learning_rate=rate, scale=1.0)

    def work():
        (seed,) = ops.mask_seeds(rng, 1)
        ops.dropout(x, 0.5, seed, out)
        ops.matmul_into(x[None], x[:, None], product)
        update()

    product, rate = ops.empty((1, 1)), 0.5
    work()
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    graph = training.Graph(work, training.GraphMemory())
    for rate in (0.5, 0.25, 0.125):
        before, expected = float(w[0]), ops.empty(50)
        graph.launch(rng, update)
        ops.dropout(x, 0.5, ops.mask_seeds(same, 1)[0], expected)
        np.testing.assert_array_equal(ops.asnumpy(out), ops.asnumpy(expected))
        assert float(w[0]) == before - rate
        assert float(product[0, 0]) == 50


def test_what_waits_cannot_be_captured(simulated):
    ops, training = ops_on("gpu"), gpu_training()
    x = ops.asarray(np.ones(3))
    with pytest.raises(RuntimeError, match="capturing"):
        training.Graph(lambda: float(x[0]), training.GraphMemory())
    graph = training.Graph(lambda: ops.clip_values(x, 0.5), training.GraphMemory())
    assert ops.asnumpy(x).sum() == 3  # a capture does nothing
    graph.launch(np.random.default_rng(0), lambda: None)
    assert ops.asnumpy(x).sum() == 1.5


def test_too_many_numbers(simulated):
    ops, training = ops_on("gpu"), gpu_training()
    rng = np.random.default_rng(0)
    with pytest.raises(RuntimeError, match="more than 4096 seeds and numbers"):
        training.Graph(lambda: ops.mask_seeds(rng, 4097), training.GraphMemory())


def test_no_memory_for_a_graph(simulated, monkeypatch):
    from rnnlab.ops.cuda import graphs

    def refuse(size):
        raise simulated.cuda.runtime.CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")

    monkeypatch.setattr(simulated.cuda, "Memory", refuse)
    with pytest.raises(MemoryError, match="^4,096 bytes for a graph, .* are free: cudaErrorMemoryAllocation"):
        graphs._allocated(4096)


def test_seeds_outside_a_capture_are_plain_numbers(ops):
    from rnnlab.ops.cuda import graphs

    assert graphs.graph_seeds([1, 2]) == [1, 2]
    numbers = graphs.graph_numbers([0.5, 2.0])
    np.testing.assert_array_equal(ops.asnumpy(numbers), [0.5, 2.0])


def test_an_error_in_a_capture_leaves_nothing_registered(simulated):
    from rnnlab.ops.cuda import graphs

    def fail():
        raise ValueError("in the middle")

    training = gpu_training()
    with pytest.raises(ValueError, match="in the middle"):
        training.Graph(fail, training.GraphMemory())
    assert type(graphs.graph_seeds([1])[0]) is int


def test_nothing_is_collected_during_a_capture(simulated):
    """A finalizer may synchronise the device, which fails then."""
    ops, training, enabled = ops_on("gpu"), gpu_training(), []
    x = ops.asarray(np.ones(3))

    def work():
        enabled.append(gc.isenabled())
        ops.clip_values(x, 0.5)

    def fail():
        work()
        raise ValueError("in the middle")

    training.Graph(work, training.GraphMemory())
    assert gc.isenabled()
    with pytest.raises(ValueError, match="in the middle"):
        training.Graph(fail, training.GraphMemory())
    assert gc.isenabled()
    gc.disable()
    try:
        training.Graph(work, training.GraphMemory())
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert enabled == [False] * 3


def test_a_limit_of_pools_frees_nothing_that_graphs_use(simulated):
    """CUPY_GPU_MEMORY_LIMIT is that of every pool."""
    ops, training = ops_on("gpu"), gpu_training()
    simulated.cuda.pool_limit = 4096
    memory, graphs = training.GraphMemory(), []
    for size in (300, 3000):
        x, out = ops.asarray(np.ones(size)), ops.empty(size)

        def work(x=x, out=out):
            out[...] = (x + 1) * 2

        graphs.append((training.Graph(work, memory), x, out))
    for graph, _, out in graphs:
        graph.launch(np.random.default_rng(0), lambda: None)
        assert (ops.asnumpy(out) == 4).all()
