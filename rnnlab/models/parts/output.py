"""Output layers: hidden states, or hidden states, contexts and words, to scores over the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.layers import (
    affine_backward,
    affine_forward,
    dropout_backward,
    dropout_forward,
    tanh_backward,
    tanh_forward,
)
from rnnlab.models.parts.initialisation import FanIns
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Array, Random, Shapes


class OutputInputs(NamedTuple):
    """The inputs of an output layer, or their gradients; None for an input that the layer does not read."""

    hidden: Array  # (M, H)
    contexts: Array | None = None  # (M, C)
    words: Array | None = None  # (M, W), the vectors of the input words


class LinearOutput:
    """Dropout, then an affine map of the hidden state, or of other vectors of ``hidden_dim``, to scores."""

    reads_contexts = False

    def __init__(self, hidden_dim: int, vocabulary_size: int, *, dropout: float = 0.0) -> None:
        self.hidden_dim, self.vocabulary_size, self.dropout = hidden_dim, vocabulary_size, dropout

    def shapes(self) -> Shapes:
        """W_vocab and b_vocab."""
        return {"W_vocab": (self.hidden_dim, self.vocabulary_size), "b_vocab": (self.vocabulary_size,)}

    def fan_ins(self) -> FanIns:
        """Those that differ from a weight's number of rows."""
        return {}

    def forward(self, params: Parameters, inputs: OutputInputs, *, rng: Random = None) -> tuple[Array, Any]:
        """Hidden states (M, H) to scores (M, V)."""
        hidden, dropped = dropout_forward(inputs.hidden, self.dropout, rng=rng)
        scores, mapped = self._map_forward(params, hidden)
        return scores, (dropped, mapped)

    def backward(self, dscores: Array, cache: Any, grads: Parameters) -> OutputInputs:
        """Add the parameters' gradients; return the gradient of the hidden states, (M, H)."""
        dropped, mapped = cache
        return OutputInputs(dropout_backward(self._map_backward(dscores, mapped, grads), dropped))

    def _map_forward(self, params: Parameters, hidden: Array) -> tuple[Array, Any]:
        return affine_forward(hidden, params["W_vocab"], params["b_vocab"])

    def _map_backward(self, dscores: Array, cache: Any, grads: Parameters) -> Array:
        dhidden, _, _ = affine_backward(dscores, cache, into=(grads["W_vocab"], grads["b_vocab"]))
        return dhidden


class TiedOutput(LinearOutput):
    """A linear output whose weight is the transposed matrix of word vectors (Press and Wolf 2017).

        scores = dropout(h) W_embed^T + b_vocab

    The vectors that are scored have the size of a word vector.
    """

    def shapes(self) -> Shapes:
        """b_vocab; the weight belongs to the word embedding."""
        return {"b_vocab": (self.vocabulary_size,)}

    def fan_ins(self) -> FanIns:
        """That of W_embed, whose rows are the columns of the map."""
        return {"W_embed": self.hidden_dim}

    def _map_forward(self, params: Parameters, hidden: Array) -> tuple[Array, Any]:
        weight = params["W_embed"]
        return ops_for(hidden).affine(hidden, weight.T, params["b_vocab"]), (hidden, weight)

    def _map_backward(self, dscores: Array, cache: Any, grads: Parameters) -> Array:
        hidden, weight = cache
        ops = ops_for(dscores)
        ops.matmul_add(dscores.T, hidden, grads["W_embed"])
        ops.add_column_sums(dscores, grads["b_vocab"])
        return ops.matmul(dscores, weight)


class ConcatOutput(LinearOutput):
    """Scores from the hidden state, the contexts and the input word: a linear output of all three.

        scores = dropout([h, y, z]) W_vocab + b_vocab

    y is the word vector (M, W). W_vocab has the shape (H + W + C, V): its rows are the matrices W, W_y and
    [W^e, W^d] of eq. 11 of Xia et al. (2017). Those of the contexts are the last, so that a model with one
    more context begins with the rows of a model without it.

    Parameters
    ----------
    hidden_dim, wordvec_dim, context_dim, vocabulary_size : int
        H, W, C and V; C is 0 without contexts.
    dropout : float in [0, 1)
        Probability of dropping an element of h, y or z.
    """

    reads_contexts = True

    def __init__(
        self,
        hidden_dim: int,
        wordvec_dim: int,
        context_dim: int,
        vocabulary_size: int,
        *,
        dropout: float = 0.0,
    ) -> None:
        self._words, self._contexts = hidden_dim, hidden_dim + wordvec_dim  # where they begin
        super().__init__(self._contexts + context_dim, vocabulary_size, dropout=dropout)

    def forward(self, params: Parameters, inputs: OutputInputs, *, rng: Random = None) -> tuple[Array, Any]:
        """Hidden states (M, H), contexts (M, C) and words (M, W) to scores (M, V)."""
        read = [inputs.hidden, inputs.words]
        if inputs.contexts is not None:
            read.append(inputs.contexts)
        joined = OutputInputs(ops_for(inputs.hidden).concatenate(read, axis=1))
        return super().forward(params, joined, rng=rng)

    def backward(self, dscores: Array, cache: Any, grads: Parameters) -> OutputInputs:
        """Add the parameters' gradients; return the gradients of hidden states, contexts and words."""
        djoined = super().backward(dscores, cache, grads).hidden
        dcontexts = djoined[:, self._contexts :] if djoined.shape[1] > self._contexts else None
        return OutputInputs(djoined[:, : self._words], dcontexts, djoined[:, self._words : self._contexts])


class DeepOutput:
    """Scores from the hidden state, the contexts and the input word, through a hidden layer.

        t = tanh(h W_h + z W_z + y + b)         (M, W), y is the word vector (M, W)
        scores = dropout(t) W_vocab + b_vocab

    Eq. 7 of Xu et al. (2015) with tanh and a bias. Without contexts there is no term z W_z. W_h, W_z and b
    are the parameters W_deep_h, W_deep_z and b_deep.

    Parameters
    ----------
    output : LinearOutput
        The map from t to the scores.
    hidden_dim, context_dim : int
        H and C; C is 0 without contexts.
    """

    reads_contexts = True

    def __init__(self, output: LinearOutput, hidden_dim: int, context_dim: int) -> None:
        self.output, self.hidden_dim, self.context_dim = output, hidden_dim, context_dim
        self.vocabulary_size = output.vocabulary_size

    def shapes(self) -> Shapes:
        """W_deep_h, b_deep, W_deep_z if there are contexts, and those of the map to the scores."""
        W = self.output.hidden_dim
        deep = {"W_deep_h": (self.hidden_dim, W), "b_deep": (W,)}
        if self.context_dim:
            deep["W_deep_z"] = (self.context_dim, W)
        return deep | self.output.shapes()

    def fan_ins(self) -> FanIns:
        """As those of the map to the scores."""
        return self.output.fan_ins()

    def forward(self, params: Parameters, inputs: OutputInputs, *, rng: Random = None) -> tuple[Array, Any]:
        """Hidden states (M, H), contexts (M, C) and words (M, W) to scores (M, V)."""
        ops = ops_for(inputs.hidden)
        a = ops.affine(inputs.hidden, params["W_deep_h"], params["b_deep"])
        if self.context_dim:
            ops.matmul_add(inputs.contexts, params["W_deep_z"], a)
        a += inputs.words
        t, activated = tanh_forward(a)
        scores, scored = self.output.forward(params, OutputInputs(t), rng=rng)
        return scores, (params, inputs, activated, scored)

    def backward(self, dscores: Array, cache: Any, grads: Parameters) -> OutputInputs:
        """Add the parameters' gradients; return the gradients of hidden states, contexts and words."""
        params, inputs, activated, scored = cache
        ops = ops_for(dscores)
        da = tanh_backward(self.output.backward(dscores, scored, grads).hidden, activated)
        ops.add_affine_gradients(inputs.hidden, da, grads["W_deep_h"], grads["b_deep"])
        dcontexts = None
        if self.context_dim:
            ops.matmul_add(inputs.contexts.T, da, grads["W_deep_z"])
            dcontexts = ops.matmul(da, params["W_deep_z"].T)
        return OutputInputs(ops.matmul(da, params["W_deep_h"].T), dcontexts, da)


def build_output(
    context_dim: int, vocabulary_size: int, options: Mapping[str, Any]
) -> LinearOutput | DeepOutput:
    """The output layer that the options of a model choose."""
    hidden_dim, wordvec_dim, dropout = (
        options[name] for name in ("hidden_dim", "wordvec_dim", "output_dropout")
    )
    kind = TiedOutput if options["tied_embeddings"] else LinearOutput
    match options["output"]:
        case "concat":
            return ConcatOutput(hidden_dim, wordvec_dim, context_dim, vocabulary_size, dropout=dropout)
        case "deep":
            output = kind(wordvec_dim, vocabulary_size, dropout=dropout)
            return DeepOutput(output, hidden_dim, context_dim)
        case _:
            return kind(hidden_dim, vocabulary_size, dropout=dropout)
