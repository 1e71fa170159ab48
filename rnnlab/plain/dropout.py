"""Inverted dropout (Srivastava et al. 2014): in training, a unit is dropped with probability p.

    out = x * m,   m = 0 with probability p, else 1 / (1 - p)            dx = dout * m

E[m] = 1, so that inference uses x as it is.
"""

import numpy as np


def dropout_forward(x, p, *, rng):
    """Any shape -> the same shape; ``rng`` is None in inference."""
    m = np.ones(x.shape) if rng is None else (rng.random(x.shape) >= p) / (1 - p)
    return x * m, m


def dropout_backward(dout, cache):
    """Return dx."""
    m = cache
    return dout * m
