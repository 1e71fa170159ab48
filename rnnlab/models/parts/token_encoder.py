"""Token encoder: source sentences to a memory, by recurrent layers in one or both directions.

    forward     h_j  = cell(x_j, h_{j-1})
    backward    h'_j = cell'(x_j, h'_{j+1})
    memory      s_j  = [h_j, h'_j]                          (N, L, 2H), or h_j alone, (N, L, H)
    state       tanh(r W_init + b_init)                     r = [h_L, h'_1], the final state of each direction

(Bahdanau et al. 2015, appendix A.2.2, where r is h'_1 alone). Each further layer reads the outputs of the
layer below it after dropout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers import affine_backward, affine_forward, tanh_backward, tanh_forward
from rnnlab.layers.copying import copy_of
from rnnlab.layers.recurrent.packing import as_rows, lengths_to_last
from rnnlab.layers.recurrent.reversal import reversed_rows
from rnnlab.models.parts.embedding import WordEmbedding
from rnnlab.models.parts.padding import padded_tokens
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.models.parts.stacked_layers import StackedLayers
from rnnlab.models.parts.values import Source
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Array, Random, Shapes


class SourceBatch(NamedTuple):
    """A batch of source sentences. Indices are rows of an array (N, L, ...) reshaped to (N L, ...)."""

    tokens: Array  # (N, L) integers
    lengths: Array  # (N,) number of steps to compute
    mask: Array  # (N, L), true or 1 for the real tokens
    reversed_rows: Array  # (N L,) row indices that reverse each sentence and leave its padding in place
    last_rows: Array  # (N,) row indices of the last tokens; those of the first ones for empty sentences
    float_mask: Array | None = None  # the mask of a padded batch in the dtype of the model

    @classmethod
    def of(cls, tokens: Array, null_token: int, length: int | None = None) -> SourceBatch:
        """From sentences (N, L) that end with padding, cut to the longest or padded to ``length``."""
        lengths = lengths_to_last(tokens != null_token)
        L = int(lengths.max(initial=1)) if length is None else length
        mask = np.arange(L) < lengths[:, None]
        last_rows = np.maximum(lengths - 1, 0) + L * np.arange(len(tokens))
        tokens = padded_tokens(tokens, L, null_token)
        return cls(tokens, lengths, mask, reversed_rows(lengths, L), last_rows)

    def padded(self, dtype: np.dtype) -> dict[str, np.ndarray]:
        """The arrays for :meth:`of_padded`, by name."""
        mask = self.mask.astype(np.int64)
        arrays = self.tokens, mask, self.reversed_rows, self.last_rows, self.mask.astype(dtype)
        return dict(zip(_PADDED, arrays, strict=True))

    @classmethod
    def of_padded(cls, arrays: Mapping[str, Array]) -> SourceBatch:
        """From the arrays of :meth:`padded`, on a device. All steps are computed."""
        tokens, *others = (arrays[name] for name in _PADDED)
        N, L = tokens.shape
        return cls(tokens, np.full(N, L), *others)


_PADDED = ("source", "source_mask", "source_reversed_rows", "source_last_rows", "source_float_mask")


class TokenEncoder:
    """Word vectors and recurrent layers over source tokens.

    Parameters
    ----------
    recurrence : Recurrence
    vocabulary_size, word_dim, hidden_dim : int
    decoder_states, decoder_dim : int
        Number of arrays in the decoder's state, and units of each.
    num_layers : int
    bidirectional : bool
    word_dropout, layer_dropout : float in [0, 1)
        Probability of dropping an element of a word vector, and of the input of layers 2 and higher.
    """

    def __init__(
        self,
        recurrence: Recurrence,
        vocabulary_size: int,
        word_dim: int,
        hidden_dim: int,
        *,
        decoder_states: int,
        decoder_dim: int,
        num_layers: int = 1,
        bidirectional: bool = True,
        word_dropout: float = 0.0,
        layer_dropout: float = 0.0,
    ) -> None:
        self.embedding = WordEmbedding(vocabulary_size, word_dim, dropout=word_dropout, name="W_source")
        self.layers = StackedLayers(
            recurrence,
            word_dim,
            hidden_dim,
            num_layers,
            bidirectional=bidirectional,
            dropout=layer_dropout,
            scope=lambda layer, direction: f"encoder_{direction}{layer}_",
        )
        self.hidden_dim, self.memory_dim = hidden_dim, self.layers.output_dim
        self._decoder_states, self._decoder_dim = decoder_states, decoder_dim

    def shapes(self) -> Shapes:
        """W_source, W_init and b_init; those of the layers have prefixes such as "encoder_forward1_"."""
        shapes = self.embedding.shapes() | self.layers.shapes()
        width = self._decoder_states * self._decoder_dim
        return shapes | {"W_init": (self.memory_dim, width), "b_init": (width,)}

    def forward(self, params: Parameters, batch: SourceBatch, *, rng: Random = None) -> tuple[Source, Any]:
        """Source tokens to a memory (N, L, H) or (N, L, 2H) and the decoder's initial state."""
        checked = batch.float_mask is not None
        x, embedded = self.embedding.forward(params, batch.tokens, rng=rng, checked=checked)
        x, ran = self.layers.forward(params, x, batch.lengths, rng, reverse=batch.reversed_rows)
        a, projected = affine_forward(self._final_states(x, batch), params["W_init"], params["b_init"])
        started, activated = tanh_forward(a)
        width = self._decoder_dim
        state = tuple(copy_of(started[:, k * width : (k + 1) * width]) for k in range(self._decoder_states))
        return Source(state, memory=x, mask=batch.mask), (batch, embedded, ran, projected, activated, x.shape)

    def backward(
        self, dsource: Source, cache: Any, grads: Parameters, *, input_gradient: bool = True
    ) -> Array:
        """Add the parameters' gradients; if ``input_gradient``, return that of word vectors, (N, L, W)."""
        batch, embedded, ran, projected, activated, shape = cache
        ops, dtype = ops_for(activated.y), activated.y.dtype
        dstarted = ops.empty(activated.y.shape, dtype)
        for k, dpart in enumerate(dsource.state):
            dstarted[:, k * self._decoder_dim : (k + 1) * self._decoder_dim] = dpart
        da = tanh_backward(dstarted, activated)
        dfinal, _, _ = affine_backward(da, projected, into=(grads["W_init"], grads["b_init"]))
        dx = ops.zeros(shape, dtype) if dsource.memory is None else copy_of(dsource.memory)
        if batch.float_mask is not None:
            dfinal *= batch.float_mask[:, :1]
        H, last_rows = self.hidden_dim, ops.indices(batch.last_rows)
        as_rows(dx)[last_rows, :H] += dfinal[:, :H]
        dx[:, 0, H:] += dfinal[:, H:]
        dx = self.layers.backward(dx, ran, grads)
        dwords = self.embedding.backward(dx, embedded, grads)
        return dwords if input_gradient else None

    def _final_states(self, x: Array, batch: SourceBatch) -> Array:
        """The final states of all directions: (N, L, 2H) to (N, 2H), or (N, L, H) to (N, H)."""
        ops, (N, _, D) = ops_for(x), x.shape
        out = ops.empty((N, D), x.dtype)
        ops.take(as_rows(x), ops.indices(batch.last_rows), out)
        out[:, self.hidden_dim :] = x[:, 0, self.hidden_dim :]
        if batch.float_mask is not None:
            out *= batch.float_mask[:, :1]  # the final state of an empty sentence is its initial state, zero
        return out


def build_token_encoder(
    recurrence: Recurrence, vocabulary_size: int, decoder_states: int, options: Mapping[str, Any]
) -> TokenEncoder:
    """The encoder of the source that the options of a translation model choose."""
    return TokenEncoder(
        recurrence,
        vocabulary_size,
        options["wordvec_dim"],
        options["encoder_dim"] or options["hidden_dim"],
        decoder_states=decoder_states,
        decoder_dim=options["hidden_dim"],
        **{name: options[name] for name in ("num_layers", "bidirectional", "word_dropout", "layer_dropout")},
    )


def memory_dim(options: Mapping[str, Any]) -> int:
    """The size of a vector of the memory of that encoder: the states of its directions side by side."""
    return (options["encoder_dim"] or options["hidden_dim"]) * (2 if options["bidirectional"] else 1)
