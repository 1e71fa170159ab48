"""Activations on NumPy, element by element."""

from __future__ import annotations

import numpy as np

from rnnlab.types import Array


def sigmoid(x: Array, out: Array | None = None) -> Array:
    # Written as a tanh: it cannot overflow, and NumPy's tanh is vectorised.
    out = np.multiply(x, 0.5, out=out)
    np.tanh(out, out=out)
    out *= 0.5
    out += 0.5
    return out


def tanh(x: Array, out: Array | None = None) -> Array:
    return np.tanh(x, out=out)
