from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab.parameters import Parameters
from rnnlab.training.gradient_monitor import DeviceMonitor, HostMonitor, gradient_monitor
from rnnlab.training.nonfinite import NonFiniteError

SHAPES = {"W": (2, 2), "b": (2,)}


def options(**given):
    chosen = {
        "update_rule": "sgd",
        "optim_config": {},
        "clip_norm": None,
        "clip_value": None,
        "print_every": 3,
    }
    return SimpleNamespace(**chosen | given)


def gradients(*values):
    return Parameters(SHAPES, np.float64, flat=np.array(values, float))


PARAMS = gradients(0, 0, 0, 0, 0, 0)


def test_losses_and_norms_are_read_once():
    monitor = HostMonitor(options())
    for loss, grads in ((2.0, gradients(3, 4, 0, 0, 0, 0)), (1.0, gradients(0, 0, 0, 0, 6, 8))):
        monitor.record(1, loss, PARAMS, grads)
        assert monitor.scale == 1.0
    assert monitor.read(1, PARAMS, PARAMS) == [(2.0, 5.0, {}), (1.0, 10.0, {})]
    assert monitor.read(3, PARAMS, PARAMS) == []


def test_the_norm_is_of_the_gradient_before_clipping():
    monitor, grads = HostMonitor(options(clip_norm=1.0, clip_value=3.0)), gradients(6, 8, 0, 0, 0, 0)
    monitor.record(1, 2.0, PARAMS, grads)
    np.testing.assert_array_equal(grads.flat, [3, 3, 0, 0, 0, 0])
    assert monitor.scale == pytest.approx(1 / np.sqrt(18))
    assert monitor.read(1, PARAMS, grads) == [(2.0, 10.0, {})]


def test_iterations_that_failed_are_dropped():
    monitor = HostMonitor(options())
    for loss in (3.0, 2.0, 1.0):
        monitor.record(1, loss, PARAMS, PARAMS)
    monitor.drop_after(1)
    assert monitor.read(1, PARAMS, PARAMS) == [(3.0, 0.0, {})]


def test_terms_are_read_with_their_iteration():
    monitor, given = HostMonitor(options()), [{"a": np.float32(0.5)}, {}, {"b": 2.0}]
    for terms in given:
        monitor.record(1, 1.0, PARAMS, PARAMS, terms)
    assert [each.terms for each in monitor.read(1, PARAMS, PARAMS)] == given


@pytest.mark.parametrize(
    ("loss", "value", "message"),
    [(np.nan, 1, "iteration 7: the loss is nan"), (1.0, np.inf, "iteration 7: the gradient of 'b' has inf")],
)
def test_values_that_are_not_finite(loss, value, message):
    with pytest.raises(NonFiniteError, match=message):
        HostMonitor(options()).record(7, loss, PARAMS, gradients(0, 0, 0, 0, value, 0))


def test_on_a_device_the_host_reads_later(device):
    import cupy

    assert isinstance(gradient_monitor(PARAMS, options()), HostMonitor)
    params = PARAMS.on(cupy.asarray)
    monitor = gradient_monitor(params, options(clip_norm=2.0))
    assert isinstance(monitor, DeviceMonitor)
    assert monitor.read_every == 3
    for loss, grads in ((2.0, gradients(3, 4, 0, 0, 0, 0)), (1.0, gradients(np.nan, 0, 0, 0, 0, 0))):
        monitor.record(1, cupy.asarray(loss), params, grads.on(cupy.asarray))
    with pytest.raises(NonFiniteError, match="iteration 6: the gradient's norm is nan") as error:
        monitor.read(5, params, params)
    assert error.value.before == [(2.0, 5.0, {})]


def test_terms_stay_on_a_device_until_they_are_read(device):
    import cupy

    params = PARAMS.on(cupy.asarray)
    monitor = gradient_monitor(params, options())
    for terms in ({"a": cupy.asarray(0.5)}, {"b": cupy.asarray(2.0)}):
        monitor.record(1, cupy.asarray(1.0), params, params, terms)
    assert [each.terms for each in monitor.read(1, params, params)] == [{"a": 0.5}, {"b": 2.0}]
