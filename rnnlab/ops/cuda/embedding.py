"""The gradient of word vectors on CuPy."""

from __future__ import annotations

from rnnlab.ops.cuda.checks import checked
from rnnlab.ops.cuda.launch import THREADS, by_rows, check_contiguous
from rnnlab.types import Array


@checked
def embedding_gradient(dout: Array, tokens: Array, dW: Array) -> None:
    # The rows of one token are added in order and without atomics, so that sums are bitwise reproducible.
    check_contiguous(dout, tokens, dW)
    M, W = dout.shape
    by_rows("embedding_gradient", M, max(W, M), dout, dout, tokens, dW, M, W, workspace=THREADS)
