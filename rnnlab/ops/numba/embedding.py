"""The gradient of word vectors as a kernel."""

from __future__ import annotations

from rnnlab.ops.numba.arrays import as_indices
from rnnlab.ops.numba.kernel import kernel, primitive
from rnnlab.ops.numba.parallel import share
from rnnlab.types import Array

_COLUMNS = 64  # columns of word vectors for one thread: 256 bytes in float32


@primitive
def embedding_gradient(dout: Array, tokens: Array, dW: Array) -> None:
    """dW[token] += dout, row by row."""
    _embedding_gradient(dout, as_indices(tokens), dW)


@kernel("T[:,::1], int64[::1], T[:,::1]", parallel_from=1 << 18)
def _embedding_gradient(part, parts, dout, tokens, dW):
    """Each thread has its own columns, so that the additions are always in the order of the tokens."""
    W = dout.shape[1]
    for block in share((W + _COLUMNS - 1) // _COLUMNS, part, parts):
        start, stop = block * _COLUMNS, min(W, (block + 1) * _COLUMNS)
        for row in range(tokens.size):
            total, d = dW[tokens[row], start:stop], dout[row, start:stop]
            for j in range(d.size):
                total[j] += d[j]
