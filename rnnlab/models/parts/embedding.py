"""The ends of a decoder: tokens to word vectors, and hidden states to scores over the vocabulary."""

from __future__ import annotations

from typing import Any, NamedTuple

from rnnlab.layers import (
    affine_backward,
    affine_forward,
    dropout_backward,
    dropout_forward,
    tanh_backward,
    tanh_forward,
    word_embedding_backward,
    word_embedding_forward,
)
from rnnlab.models.parts.encoders import Random
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Array, Shapes


class WordEmbedding:
    """A vector for each token, then dropout."""

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
        """Tokens (N, T), perhaps known to be in range, to word vectors (N, T, W)."""
        words, looked_up = word_embedding_forward(tokens, params[self._name], checked=checked)
        words, dropped = dropout_forward(words, self.dropout, rng=rng)
        return words, (looked_up, dropped)

    def backward(self, dwords: Array, cache: Any, grads: Parameters) -> None:
        """Add the gradient of the word vectors."""
        looked_up, dropped = cache
        word_embedding_backward(dropout_backward(dwords, dropped), looked_up, into=grads[self._name])


class Readout(NamedTuple):
    """What an output scores, or its gradient; None where it reads nothing of the kind."""

    hidden: Array  # (M, H)
    contexts: Array | None = None  # (M, C)
    words: Array | None = None  # (M, W), the vectors of the words that were read


class LinearOutput:
    """Dropout, then a linear map of the hidden state to scores."""

    is_deep = False

    def __init__(self, hidden_dim: int, vocabulary_size: int, *, dropout: float = 0.0) -> None:
        self.hidden_dim, self.vocabulary_size, self.dropout = hidden_dim, vocabulary_size, dropout

    def shapes(self) -> Shapes:
        """W_vocab and b_vocab."""
        return {"W_vocab": (self.hidden_dim, self.vocabulary_size), "b_vocab": (self.vocabulary_size,)}

    def forward(self, params: Parameters, readout: Readout, *, rng: Random = None) -> tuple[Array, Any]:
        """Hidden states (M, H) to scores (M, V)."""
        hidden, dropped = dropout_forward(readout.hidden, self.dropout, rng=rng)
        scores, projected = affine_forward(hidden, params["W_vocab"], params["b_vocab"])
        return scores, (dropped, projected)

    def backward(self, dscores: Array, cache: Any, grads: Parameters) -> Readout:
        """Add the parameters' gradients; return that of the hidden states, (M, H)."""
        dropped, projected = cache
        dhidden, _, _ = affine_backward(dscores, projected, into=(grads["W_vocab"], grads["b_vocab"]))
        return Readout(dropout_backward(dhidden, dropped))


class DeepOutput:
    """Scores from the hidden state, the contexts and the word that was read, through a layer of their own.

        t = tanh(h W_h + z W_z + y + b)         (M, W), W numbers as in a word vector y
        scores = dropout(t) W_vocab + b_vocab

    After eq. 7 of Xu et al. (2015), with tanh and a bias, and eq. 11 of Xia et al. (2017). A decoder that
    does not attend has no z.
    """

    is_deep = True

    def __init__(
        self, hidden_dim: int, context_dim: int, word_dim: int, vocabulary_size: int, *, dropout: float = 0.0
    ) -> None:
        self.hidden_dim, self.context_dim, self.word_dim = hidden_dim, context_dim, word_dim
        self.output = LinearOutput(word_dim, vocabulary_size, dropout=dropout)
        self.vocabulary_size = vocabulary_size

    def shapes(self) -> Shapes:
        """W_deep_h, b_deep, W_deep_z if there are contexts, W_vocab and b_vocab."""
        W = self.word_dim
        deep = {"W_deep_h": (self.hidden_dim, W), "b_deep": (W,)}
        if self.context_dim:
            deep["W_deep_z"] = (self.context_dim, W)
        return deep | self.output.shapes()

    def forward(self, params: Parameters, readout: Readout, *, rng: Random = None) -> tuple[Array, Any]:
        """Hidden states (M, H), contexts (M, C) and words (M, W) to scores (M, V)."""
        ops = ops_for(readout.hidden)
        a = ops.affine(readout.hidden, params["W_deep_h"], params["b_deep"])
        if self.context_dim:
            ops.matmul_add(readout.contexts, params["W_deep_z"], a)
        a += readout.words
        t, activated = tanh_forward(a)
        scores, scored = self.output.forward(params, Readout(t), rng=rng)
        return scores, (params, readout, activated, scored)

    def backward(self, dscores: Array, cache: Any, grads: Parameters) -> Readout:
        """Add the parameters' gradients; return those of hidden states, contexts and words."""
        params, readout, activated, scored = cache
        ops = ops_for(dscores)
        da = tanh_backward(self.output.backward(dscores, scored, grads).hidden, activated)
        ops.matmul_add(readout.hidden.T, da, grads["W_deep_h"])
        ops.add_column_sums(da, grads["b_deep"])
        dcontexts = None
        if self.context_dim:
            ops.matmul_add(readout.contexts.T, da, grads["W_deep_z"])
            dcontexts = ops.matmul(da, params["W_deep_z"].T)
        return Readout(ops.matmul(da, params["W_deep_h"].T), dcontexts, da)
