"""Elementwise activations on NumPy."""

from __future__ import annotations

import numpy as np

from rnnlab.types import Array


def sigmoid(x: Array, out: Array | None = None) -> Array:
    out = np.negative(x, out=out)
    with np.errstate(over="ignore", under="ignore"):  # 1 / (1 + inf) is 0, as it should be
        np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def tanh(x: Array, out: Array | None = None) -> Array:
    return np.tanh(x, out=out)
