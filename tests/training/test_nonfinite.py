from __future__ import annotations

import numpy as np
import pytest

from rnnlab.parameters import Parameters
from rnnlab.training.clipping import gradient_norm
from rnnlab.training.nonfinite import NonFiniteError, check_iteration, check_parameters


@pytest.fixture
def params():
    return Parameters({"W": (2, 3), "b": (3,)})


def check(loss, params, grads):
    check_iteration(7, loss, gradient_norm(grads), params, grads)


def test_finite_passes(params):
    check(1.5, params, params)
    check_parameters(7, params)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_gradient_is_named(params, value):
    grads = params.zeros_like()
    grads["b"][1] = value
    message = rf"^iteration 7: the gradient of 'b' has {value}; a smaller learning rate"
    with pytest.raises(NonFiniteError, match=message) as caught:
        check(1.5, params, grads)
    assert caught.value.parameter == "b"
    assert isinstance(caught.value, FloatingPointError)


def test_loss_alone(params):
    with pytest.raises(NonFiniteError, match="iteration 7: the loss is nan; ") as caught:
        check(float("nan"), params, params)
    assert caught.value.parameter is None


def test_parameter_comes_before_the_gradient(params):
    grads = params.zeros_like()
    grads["W"][0, 0] = np.nan
    params["b"][2] = np.inf
    message = "the loss is inf, parameter 'b' has inf, the gradient of 'W' has nan"
    with pytest.raises(NonFiniteError, match=message) as caught:
        check(float("inf"), params, grads)
    assert caught.value.parameter == "b"


def test_parameters_are_named(params):
    params["W"][1, 2] = np.nan
    with pytest.raises(NonFiniteError, match="iteration 7: parameter 'W' has nan and was not saved"):
        check_parameters(7, params)
