"""Elementwise activations on CuPy."""

from __future__ import annotations

import cupy as cp

from rnnlab.types import Array


def sigmoid(x: Array, out: Array | None = None) -> Array:
    out = cp.negative(x, out=out)
    cp.exp(out, out=out)  # 1 / (1 + inf) is 0, as it should be
    out += 1
    return cp.reciprocal(out, out=out)


def tanh(x: Array, out: Array | None = None) -> Array:
    return cp.tanh(x, out=out)
