"""The compiled gradient of word vectors against the reference."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops

from .compare import assert_same, every_dtype, strided


@every_dtype
@pytest.mark.parametrize("shape", [(50, 5), (1, 1), (300, 130), (0, 3)], ids=str)
def test_embedding_gradient(shape, dtype, rng, normal):
    tokens = rng.integers(11, size=shape[0])
    assert_same("embedding_gradient", [normal(*shape), tokens, normal(11, shape[1])])
    assert_same("embedding_gradient", [normal(*shape), strided(tokens), normal(11, shape[1])])


@pytest.mark.parametrize("token", [-1, 11])
def test_a_token_out_of_range(token):
    with pytest.raises(
        IndexError, match="embedding_gradient: tokens has indices .*, expected indices from 0 to 10"
    ):
        numba_ops.embedding_gradient(np.zeros((1, 3)), np.array([token]), np.zeros((11, 3)))
