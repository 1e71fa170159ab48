"""What a solver does on a GPU alone: the log of its iterations, and the batches that it holds."""

import numpy as np
import pytest

from rnnlab.ops import gpu_training, ops_on


@pytest.fixture
def ops(device):
    return ops_on("gpu")


def squares(ops, *numbers):
    return ops.sum_of_squares(ops.asarray(np.array(numbers)))


@pytest.mark.parametrize("most", [1.0, 1, np.float32(1), np.int64(1)])
def test_a_log(most, ops):
    log, g = gpu_training().GradientLog(4, most), squares(ops, 3.0, 4.0)
    scales = [float(log.look(loss, g)[0]) for loss in (1.5, ops.asarray(np.float64(2.5)))]
    assert scales == [0.2, 0.2]
    assert float(log.look(1.0, g, squares(ops, 0.5))[0]) == 1  # clipped already
    assert log.read() == [(1.5, 5.0, {}), (2.5, 5.0, {}), (1.0, 5.0, {})]
    assert log.read() == []


def test_a_log_of_terms(ops):
    """Each iteration has its own ones, whatever those before had."""
    log, g = gpu_training().GradientLog(3), squares(ops, 3.0, 4.0)
    on_device = ops.asarray(np.float32(0.25)), ops.asarray(np.float64(-2.0))
    given = [{"a": on_device[0], "b": 1.5}, {}, {"c": 3.0, "b": on_device[1]}]
    for terms in given:
        log.look(1.0, g, terms=terms)
    assert [terms for _, _, terms in log.read()] == [{"a": 0.25, "b": 1.5}, {}, {"b": -2.0, "c": 3.0}]
    log.look(1.0, g, terms={f"t{k}": float(k) for k in range(5)})
    assert log.read()[0][2] == {f"t{k}": float(k) for k in range(5)}
    with pytest.raises(ValueError, match="a loss has the terms a, b, c, t0, .*, t4, d, expected at most 8"):
        log.look(1.0, g, terms={"a": 1.0, "d": 2.0})


@pytest.mark.parametrize("loss", [np.nan, np.inf, 1.0])
def test_what_is_not_finite_stops_updates_until_it_is_read(loss, ops):
    log = gpu_training().GradientLog(4)
    w, dw = ops.asarray(np.ones(2)), ops.asarray(np.array([1.0, 2.0]))
    bad = squares(ops, 1.0, np.inf if loss == 1 else 1.0)
    log.look(1.0, squares(ops, 1.0))
    for square in (bad, squares(ops, 1.0)):
        scale = log.look(loss if square is bad else 1.0, square)
        ops.sgd(w, dw, learning_rate=0.5, scale=scale)
        ops.decay_weights(w, rate=0.5, scale=scale)
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
    assert [loss for loss, _, _ in log.read()] == [1, 3]


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
