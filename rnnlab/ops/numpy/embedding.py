"""The gradient of word vectors on NumPy."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rnnlab.ops.arguments import checked
from rnnlab.types import Array


@checked
def embedding_gradient(dout: Array, tokens: Array, dW: Array) -> None:
    # A product with a sparse matrix of ones: np.add.at is many times slower.
    M = tokens.shape[0]
    if M:
        one_hot = sparse.csr_array(
            (np.ones(M, dout.dtype), (tokens, np.arange(M))), shape=(int(tokens.max()) + 1, M)
        )
        rows = one_hot @ dout
        dW[: rows.shape[0]] += rows
