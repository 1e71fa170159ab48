"""The gradient of word vectors on CuPy against the reference."""

import numpy as np
import pytest

from .compare import assert_same, every_dtype


@pytest.mark.usefixtures("blocks")
@every_dtype
@pytest.mark.parametrize("shape", [(50, 5), (1, 1), (300, 130), (0, 3)], ids=str)
def test_embedding_gradient(shape, ops, dtype, rng, normal):
    M, W = shape
    assert_same(ops, "embedding_gradient", [normal(M, W), rng.integers(11, size=M), normal(11, W)])


@every_dtype
def test_the_same_bits_twice(ops, dtype, rng, normal):
    dout, tokens = ops.asarray(normal(400, 6)), ops.asarray(rng.integers(3, size=400))
    grads = [ops.zeros((3, 6), dtype) for _ in range(2)]
    for dW in grads:
        ops.embedding_gradient(dout, tokens, dW)
    np.testing.assert_array_equal(*map(ops.asnumpy, grads))
