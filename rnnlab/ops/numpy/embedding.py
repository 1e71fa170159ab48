"""The gradient of word vectors on NumPy."""

from __future__ import annotations

import numpy as np

from rnnlab.ops.arguments import checked
from rnnlab.types import Array


@checked
def embedding_gradient(dout: Array, tokens: Array, dW: Array) -> None:
    # A product with a sparse matrix of ones, a row for each word that occurs: np.add.at is many times slower.
    M = tokens.shape[0]
    if M:
        from scipy import sparse  # a quarter of the time of importing rnnlab, and compiled kernels need none

        order = tokens.argsort(kind="stable")
        ordered = tokens[order]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        ones = sparse.csr_array((np.ones(M, dout.dtype), order, np.append(first, M)), shape=(first.size, M))
        dW[ordered[first]] += ones @ dout
