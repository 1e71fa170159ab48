"""Word embedding: tokens to word vectors, then dropout."""

from __future__ import annotations

from typing import Any

from rnnlab.layers import (
    dropout_backward,
    dropout_forward,
    word_embedding_backward,
    word_embedding_forward,
)
from rnnlab.layers.embedding import WordEmbeddingCache
from rnnlab.parameters import Parameters
from rnnlab.types import Array, Random, Shapes


class WordEmbedding:
    """A word vector for each token, then dropout.

    Parameters
    ----------
    vocabulary_size, word_dim : int
    dropout : float in [0, 1)
        Probability of dropping an element of a word vector.
    name : str
        Name of the matrix of word vectors.
    """

    def __init__(
        self, vocabulary_size: int, word_dim: int, *, dropout: float = 0.0, name: str = "W_embed"
    ) -> None:
        self.vocabulary_size, self.word_dim, self.dropout = vocabulary_size, word_dim, dropout
        self._name = name

    def shapes(self) -> Shapes:
        """The matrix of word vectors."""
        return {self._name: (self.vocabulary_size, self.word_dim)}

    def forward(
        self, params: Parameters, tokens: Array, *, rng: Random = None, checked: bool = False
    ) -> tuple[Array, Any]:
        """Tokens (N, T) to word vectors (N, T, W). ``checked``: all tokens are known to be in range."""
        words, looked_up = word_embedding_forward(tokens, params[self._name], checked=checked)
        words, dropped = dropout_forward(words, self.dropout, rng=rng)
        return words, (looked_up, dropped)

    def look_up(self, params: Parameters, tokens: Array) -> tuple[Array, WordEmbeddingCache | None]:
        """Tokens (N,) to word vectors (N, W) without dropout, and the cache, for a decoder's step.

        Tokens on a GPU are not checked, because that would wait for the device. Those of a search are in
        range: they are columns of the model's scores.
        """
        on_gpu = hasattr(tokens, "__cuda_array_interface__")
        return word_embedding_forward(tokens, params[self._name], checked=on_gpu)

    def backward(self, dwords: Array, cache: Any, grads: Parameters) -> Array:
        """Add the gradient of the matrix; return that of the word vectors before dropout, (N, T, W)."""
        looked_up, dropped = cache
        dwords = dropout_backward(dwords, dropped)
        word_embedding_backward(dwords, looked_up, into=grads[self._name])
        return dwords
