"""Matrix products on NumPy: the reference in each precision of :mod:`rnnlab.ops.precision`."""

from __future__ import annotations

import numpy as np

from rnnlab.ops.arguments import checked
from rnnlab.ops.numpy.bfloat16 import factors
from rnnlab.types import Array

_FEW_ROWS = 128  # for so few rows, the transposed product is faster if the weight is transposed


def matmul(x: Array, w: Array) -> Array:
    return np.matmul(*factors(x, w))


@checked
def affine(x: Array, w: Array, b: Array) -> Array:
    out = np.matmul(*factors(x, w))
    out += b
    return out


@checked
def affine_into(x: Array, w: Array, b: Array, out: Array) -> None:
    np.matmul(*factors(x, w), out=out)
    out += b


def prepacked(w: Array) -> Array:
    return w


@checked
def matmul_into(x: Array, w: Array, out: Array) -> None:
    x, w = factors(x, w)
    if x.shape[0] <= _FEW_ROWS and w.T.flags.c_contiguous:
        out[...] = np.matmul(w.T, x.T).T
    else:
        np.matmul(x, w, out=out)


@checked
def matmul_add(x: Array, w: Array, out: Array) -> None:
    out += np.matmul(*factors(x, w))


@checked
def add_column_sums(x: Array, out: Array) -> None:
    out += x.sum(axis=0)


@checked
def add_affine_gradients(x: Array, dout: Array, dW: Array, db: Array) -> None:
    dW += np.matmul(*factors(x.T, dout))
    db += dout.sum(axis=0)
