"""Output layers: hidden states (and, for deep output, contexts and words) to scores over the vocabulary."""

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
    """Dropout, then an affine map of the hidden state to scores."""

    is_deep = False

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


class DeepOutput:
    """Scores from the hidden state, the contexts and the input word, through a hidden layer.

        t = tanh(h W_h + z W_z + y + b)         (M, W), y is the word vector (M, W)
        scores = dropout(t) W_vocab + b_vocab

    Eq. 7 of Xu et al. (2015) with tanh and a bias. Eq. 11 of Xia et al. (2017) has the same inputs, but maps
    them to the scores directly. Without contexts there is no term z W_z. W_h, W_z and b are the parameters
    W_deep_h, W_deep_z and b_deep.

    Parameters
    ----------
    output : LinearOutput
        The map from t to the scores.
    hidden_dim, context_dim : int
        H and C; C is 0 without contexts.
    """

    is_deep = True

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
    is_deep, hidden_dim = options["output"] == "deep", options["hidden_dim"]
    kind = TiedOutput if options["tied_embeddings"] else LinearOutput
    size = options["wordvec_dim"] if is_deep else hidden_dim
    output = kind(size, vocabulary_size, dropout=options["output_dropout"])
    return DeepOutput(output, hidden_dim, context_dim) if is_deep else output
