"""Elementwise nonlinearities and their derivatives.

    relu(x)    = max(0, x)                 relu'(x)    = 1 where x > 0, else 0
    tanh(x)                                tanh'(x)    = 1 - tanh(x)^2
    sigmoid(x) = 1 / (1 + exp(-x))         sigmoid'(x) = sigmoid(x) (1 - sigmoid(x))

The derivatives of tanh and sigmoid need only the outputs, which is why caches save outputs.
"""

import numpy as np


def sigmoid(x):
    """1 / (1 + exp(-x)); where x < 0, both are multiplied by exp(x), so that no exponential overflows."""
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def relu_forward(x):
    """Any shape -> the same shape."""
    return np.maximum(x, 0), x


def relu_backward(dout, cache):
    """Return dx."""
    x = cache
    return np.where(x > 0, dout, 0)


def tanh_forward(x):
    """Any shape -> the same shape."""
    y = np.tanh(x)
    return y, y


def tanh_backward(dout, cache):
    """Return dx."""
    y = cache
    return dout * (1 - y**2)
