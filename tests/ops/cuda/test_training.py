"""What a solver does on a GPU alone: the log of its iterations, what it holds, and graphs."""

import numpy as np
import pytest

from rnnlab.ops import gpu_training, ops_on


@pytest.fixture
def ops(device):
    return ops_on("gpu")


def squares(ops, *numbers):
    return ops.sum_of_squares(ops.asarray(np.array(numbers)))


def test_a_log(ops):
    log, g = gpu_training().GradientLog(4, most=1.0), squares(ops, 3.0, 4.0)
    scales = [float(log.look(loss, g)[0]) for loss in (1.5, ops.asarray(np.float64(2.5)))]
    assert scales == [0.2, 0.2]
    assert float(log.look(1.0, g, squares(ops, 0.5))[0]) == 1  # clipped already
    assert log.read() == [(1.5, 5.0), (2.5, 5.0), (1.0, 5.0)]
    assert log.read() == []


@pytest.mark.parametrize("loss", [np.nan, np.inf, 1.0])
def test_what_is_not_finite_stops_updates_until_it_is_read(loss, ops):
    log = gpu_training().GradientLog(4)
    w, dw = ops.asarray(np.ones(2)), ops.asarray(np.array([1.0, 2.0]))
    bad = squares(ops, 1.0, np.inf if loss == 1 else 1.0)
    log.look(1.0, squares(ops, 1.0))
    for square in (bad, squares(ops, 1.0)):
        ops.sgd(w, dw, learning_rate=0.5, scale=log.look(loss if square is bad else 1.0, square))
        np.testing.assert_array_equal(ops.asnumpy(w), 1)
    assert len(log.read()) == 3
    ops.sgd(w, dw, learning_rate=0.5, scale=log.look(1.0, squares(ops, 1.0)))
    np.testing.assert_array_equal(ops.asnumpy(w), [0.5, 0])


def test_a_failed_iteration_is_forgotten(ops):
    log = gpu_training().GradientLog(4)
    for loss in (1.0, 2.0):
        log.look(loss, squares(ops, 1.0))
    log.forget_after(1)
    log.look(3.0, squares(ops, 1.0))
    assert [loss for loss, _ in log.read()] == [1, 3]


class LateEvent:
    """An event that is not done until somebody has waited for it."""

    def __init__(self, **options):
        self.done = False

    def record(self):
        pass

    def synchronize(self):
        self.done = True


def test_what_is_in_use_is_held(simulated, monkeypatch):
    in_use = gpu_training().InUse(most=2)
    monkeypatch.setattr(simulated.cuda, "Event", LateEvent)
    things = [[k] for k in range(4)]
    for thing in things:
        in_use.hold(thing)
    assert [held for held, _ in in_use._held] == things[2:]  # it has waited for the first ones
    for _, event in in_use._held:
        event.done = True
    in_use.hold(things[0])
    assert [held for held, _ in in_use._held] == things[:1]


def test_a_graph(ops):
    training, rng = gpu_training(), np.random.default_rng(0)
    x, out = ops.asarray(np.ones(50)), ops.empty(50)
    w, dw = ops.asarray(np.zeros(1)), ops.asarray(np.ones(1))

    def tell():
        ops.sgd(w, dw, learning_rate=rate, scale=1.0)

    def work():
        (seed,) = ops.mask_seeds(rng, 1)
        ops.dropout(x, 0.5, seed, out)
        ops.matmul_into(x[None], x[:, None], product)
        tell()

    product, rate = ops.empty((1, 1)), 0.5
    work()
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    graph = training.Graph(work, training.GraphMemory())
    for rate in (0.5, 0.25, 0.125):
        before, expected = float(w[0]), ops.empty(50)
        graph.launch(rng, tell)
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
