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
    grads = gradients(0, 0, 0, 0, 0, 0)
    monitor = HostMonitor(PARAMS, grads, options())
    for loss, values in ((2.0, (3, 4, 0, 0, 0, 0)), (1.0, (0, 0, 0, 0, 6, 8))):
        grads.flat[...] = values
        monitor.record_and_clip(1, loss)
        assert monitor.scale == 1.0
    assert monitor.read(1) == [(2.0, 5.0, {}), (1.0, 10.0, {})]
    assert monitor.read(3) == []


def test_the_norm_is_of_the_gradient_before_clipping():
    grads = gradients(6, 8, 0, 0, 0, 0)
    monitor = HostMonitor(PARAMS, grads, options(clip_norm=1.0, clip_value=3.0))
    monitor.record_and_clip(1, 2.0)
    np.testing.assert_array_equal(grads.flat, [3, 3, 0, 0, 0, 0])
    assert monitor.scale == pytest.approx(1 / np.sqrt(18))
    assert monitor.read(1) == [(2.0, 10.0, {})]


def test_iterations_that_failed_are_dropped():
    monitor = HostMonitor(PARAMS, PARAMS, options())
    for loss in (3.0, 2.0, 1.0):
        monitor.record_and_clip(1, loss)
    monitor.drop_after(1)
    assert monitor.read(1) == [(3.0, 0.0, {})]


def test_terms_are_read_with_their_iteration():
    monitor = HostMonitor(PARAMS, PARAMS, options())
    given = [{"a": np.float32(0.5)}, {}, {"b": 2.0}]
    for terms in given:
        monitor.record_and_clip(1, 1.0, terms)
    assert [each.terms for each in monitor.read(1)] == given


@pytest.mark.parametrize(
    ("loss", "value", "message"),
    [(np.nan, 1, "iteration 7: the loss is nan"), (1.0, np.inf, "iteration 7: the gradient of 'b' has inf")],
)
def test_values_that_are_not_finite(loss, value, message):
    monitor = HostMonitor(PARAMS, gradients(0, 0, 0, 0, value, 0), options())
    with pytest.raises(NonFiniteError, match=message):
        monitor.record_and_clip(7, loss)


def test_on_a_device_the_host_reads_later(device):
    import cupy

    assert isinstance(gradient_monitor(PARAMS, PARAMS, options()), HostMonitor)
    params, grads = PARAMS.on(cupy.asarray), PARAMS.copy().on(cupy.asarray)
    monitor = gradient_monitor(params, grads, options(clip_norm=2.0))
    assert isinstance(monitor, DeviceMonitor)
    assert monitor.read_every == 3
    for loss, values in ((2.0, [3.0, 4, 0, 0, 0, 0]), (1.0, [np.nan, 0, 0, 0, 0, 0])):
        grads.flat[...] = cupy.asarray(values)
        monitor.record_and_clip(1, cupy.asarray(loss))
    grads.flat[...] = 0  # those of a later iteration
    with pytest.raises(NonFiniteError, match="iteration 6: the gradient's norm is nan") as error:
        monitor.read(5)
    assert error.value.before == [(2.0, 5.0, {})]


def test_terms_stay_on_a_device_until_they_are_read(device):
    import cupy

    params = PARAMS.on(cupy.asarray)
    monitor = gradient_monitor(params, params, options())
    for terms in ({"a": cupy.asarray(0.5)}, {"b": cupy.asarray(2.0)}):
        monitor.record_and_clip(1, cupy.asarray(1.0), terms)
    assert [each.terms for each in monitor.read(1)] == [{"a": 0.5}, {"b": 2.0}]
