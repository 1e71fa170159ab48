"""Word embedding: gradients, dropout and tokens out of range."""

import numpy as np
import pytest

from rnnlab.models.parts.embedding import WordEmbedding

from .checks import N, T, V, W, assert_part, dropout_rng, random_parameters


def test_gradients(rng):
    part, tokens = WordEmbedding(V, W, dropout=0.3), rng.integers(V, size=(N, T))

    def backward(dwords, cache, grads):
        dvectors, summed = part.backward(dwords, cache, grads), np.ones((V, W))
        np.add.at(summed, tokens, dvectors)  # of the vectors before dropout
        np.testing.assert_allclose(grads["W_embed"], summed, rtol=1e-12)
        return ()

    assert_part(part, lambda params: part.forward(params, tokens, rng=dropout_rng()), backward, {}, rng)


def test_dropout_only_with_a_generator(rng):
    part = WordEmbedding(V, W, dropout=0.5, name="W_source")
    params, tokens = random_parameters(part, rng), rng.integers(V, size=(N, T))
    words, _ = part.forward(params, tokens)
    np.testing.assert_array_equal(words, params["W_source"][tokens])
    dropped, _ = part.forward(params, tokens, rng=dropout_rng())
    np.testing.assert_array_equal(dropped[dropped != 0], 2 * words[dropped != 0])
    assert (dropped == 0).any()


def test_tokens_out_of_range(rng):
    part = WordEmbedding(V, W)
    with pytest.raises(IndexError, match=f"token {V}"):
        part.forward(random_parameters(part, rng), np.array([[0, V]]))
