"""The ends of a decoder: tokens to word vectors, and hidden states to scores over the vocabulary."""

from __future__ import annotations

from typing import Any

from rnnlab.layers import (
    affine_backward,
    affine_forward,
    dropout_backward,
    dropout_forward,
    word_embedding_backward,
    word_embedding_forward,
)
from rnnlab.models.cells import Array
from rnnlab.models.encoders import Random, Shapes
from rnnlab.parameters import Parameters


class WordEmbedding:
    """A vector for each token, then dropout."""

    def __init__(self, vocabulary_size: int, word_dim: int, *, dropout: float = 0.0) -> None:
        self.vocabulary_size, self.word_dim, self.dropout = vocabulary_size, word_dim, dropout

    def shapes(self) -> Shapes:
        """W_embed."""
        return {"W_embed": (self.vocabulary_size, self.word_dim)}

    def forward(self, params: Parameters, tokens: Array, *, rng: Random = None) -> tuple[Array, Any]:
        """Tokens (N, T) to word vectors (N, T, W)."""
        words, looked_up = word_embedding_forward(tokens, params["W_embed"])
        words, dropped = dropout_forward(words, self.dropout, rng=rng)
        return words, (looked_up, dropped)

    def backward(self, dwords: Array, cache: Any, grads: Parameters) -> None:
        """Add the gradient of the word vectors."""
        looked_up, dropped = cache
        word_embedding_backward(dropout_backward(dwords, dropped), looked_up, into=grads["W_embed"])


class LinearOutput:
    """Dropout, then a linear map of the hidden state to scores."""

    def __init__(self, hidden_dim: int, vocabulary_size: int, *, dropout: float = 0.0) -> None:
        self.hidden_dim, self.vocabulary_size, self.dropout = hidden_dim, vocabulary_size, dropout

    def shapes(self) -> Shapes:
        """W_vocab and b_vocab."""
        return {"W_vocab": (self.hidden_dim, self.vocabulary_size), "b_vocab": (self.vocabulary_size,)}

    def forward(self, params: Parameters, hidden: Array, *, rng: Random = None) -> tuple[Array, Any]:
        """Hidden states (M, H) to scores (M, V)."""
        hidden, dropped = dropout_forward(hidden, self.dropout, rng=rng)
        scores, projected = affine_forward(hidden, params["W_vocab"], params["b_vocab"])
        return scores, (dropped, projected)

    def backward(self, dscores: Array, cache: Any, grads: Parameters) -> Array:
        """Add the parameters' gradients; return that of the hidden states, (M, H)."""
        dropped, projected = cache
        dhidden, _, _ = affine_backward(dscores, projected, into=(grads["W_vocab"], grads["b_vocab"]))
        return dropout_backward(dhidden, dropped)
