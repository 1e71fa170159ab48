"""The gradient of word vectors as a kernel."""

from __future__ import annotations

import numpy as np
from numba import prange

from rnnlab.ops.numba.kernel import kernel, primitive
from rnnlab.types import Array

_COLUMNS = 64  # of word vectors, for one thread: 256 bytes in float32


@primitive
def embedding_gradient(dout: Array, tokens: Array, dW: Array) -> None:
    """dW[token] += dout, row by row."""
    _embedding_gradient(dout, checked_indices(tokens, dW.shape[0]), dW)


@kernel("T[:,::1], int64[::1], T[:,::1]", parallel_from=1 << 18)
def _embedding_gradient(dout, tokens, dW):
    """A thread has columns of its own, so that the order of the additions is always that of the tokens."""
    W = dout.shape[1]
    for part in prange((W + _COLUMNS - 1) // _COLUMNS):
        start, stop = part * _COLUMNS, min(W, (part + 1) * _COLUMNS)
        for row in range(tokens.size):
            total, d = dW[tokens[row], start:stop], dout[row, start:stop]
            for j in range(d.size):
                total[j] += d[j]


def checked_indices(numbers: Array, size: int) -> Array:
    """Rows or columns as a kernel takes them, int64; an index out of range is an IndexError."""
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < size:
        raise IndexError(f"expected indices from 0 to {size - 1}, got {numbers.min()} to {numbers.max()}")
    return np.ascontiguousarray(numbers, np.int64)
