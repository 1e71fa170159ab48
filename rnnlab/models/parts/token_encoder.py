"""Token encoder: a sentence to a memory, by recurrent layers that read it in one direction or in both.

    forwards    h_j  = cell(x_j, h_{j-1})
    backwards   h'_j = cell'(x_j, h'_{j+1})
    memory      s_j  = [h_j, h'_j]                          (N, L, 2H), or h_j alone, (N, L, H)
    state       tanh(r W_init + b_init)                     r = [h_L, h'_1], after the last and the first word

(Bahdanau et al. 2015, appendix A.2.2, where r is h'_1 alone). In a stack each layer reads the one below it
through dropout.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers import (
    affine_backward,
    affine_forward,
    dropout_backward,
    dropout_forward,
    tanh_backward,
    tanh_forward,
)
from rnnlab.layers.recurrent.packing import as_rows
from rnnlab.models.parts.embedding import WordEmbedding
from rnnlab.models.parts.encoders import Random, Source
from rnnlab.models.parts.padding import padded_tokens
from rnnlab.models.parts.recurrent_layer import Recurrence, RecurrentLayer
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters, scoped
from rnnlab.types import Array, Shapes


class Tokens(NamedTuple):
    """A batch of sentences to encode; places are among the N L rows of an (N, L, ...) array."""

    tokens: Array  # (N, L) integers
    lengths: Array  # (N,) how many steps are to be computed
    mask: Array  # (N, L), true, or 1, for the real tokens
    opposite: Array  # (N L,) places, each sentence turned round, its padding left where it is
    last: Array  # (N,) places of the last tokens, or of the first where there is none
    steps: Array | None = None  # the mask on the device, in the dtype of the model, of a batch that is padded

    @classmethod
    def of(cls, tokens: Array, null_token: int, length: int | None = None) -> Tokens:
        """Sentences (N, L) that end where only ``null_token`` is left, cut to the longest or to a length."""
        real = tokens != null_token
        lengths = (real * np.arange(1, tokens.shape[1] + 1)).max(axis=1, initial=0)
        L = int(lengths.max(initial=1)) if length is None else length
        steps, first = np.arange(L), L * np.arange(len(tokens))
        mask = steps < lengths[:, None]
        opposite = np.where(mask, lengths[:, None] - 1 - steps, steps) + first[:, None]
        last = np.maximum(lengths - 1, 0) + first
        return cls(padded_tokens(tokens, L, null_token), lengths, mask, opposite.reshape(-1), last)

    def padded(self, dtype: Any) -> dict[str, np.ndarray]:
        """Its arrays for :meth:`of_padded`, under names of their own."""
        mask = self.mask.astype(np.int64)
        arrays = self.tokens, mask, self.opposite, self.last, self.mask.astype(dtype)
        return dict(zip(_PADDED, arrays, strict=True))

    @classmethod
    def of_padded(cls, arrays: Mapping[str, Array]) -> Tokens:
        """From what :meth:`padded` gave, brought to a device: all steps are computed, and the mask counts."""
        tokens, mask, opposite, last, steps = (arrays[name] for name in _PADDED)
        N, L = tokens.shape
        return cls(tokens, np.full(N, L), mask, opposite, last, steps)

    def turned(self, x: Array) -> Array:
        """The rows (N, L, D) of each sentence in the opposite order; its own inverse."""
        ops, (N, L, D) = ops_for(x), x.shape
        out = ops.empty((N * L, D), x.dtype)
        ops.take(x.reshape(N * L, D), ops.indices(self.opposite), out)
        return out.reshape(N, L, D)


_PADDED = ("source", "source_mask", "source_opposite", "source_last", "source_steps")


class TokenEncoder:
    """Word vectors and recurrent layers over the tokens of a source.

    Parameters
    ----------
    recurrence : Recurrence
    vocabulary_size, word_dim, hidden_dim : int
    decoder_states, decoder_dim : int
        The arrays in the decoder's state, and its units.
    num_layers : int
    bidirectional : bool
    word_dropout, layer_dropout : float in [0, 1)
        Of word vectors, and of what goes from one layer to the next.
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
        self.hidden_dim, self.layer_dropout = hidden_dim, layer_dropout
        self.embedding = WordEmbedding(vocabulary_size, word_dim, dropout=word_dropout, name="W_source")
        self.directions = ("forward", "backward") if bidirectional else ("forward",)
        self.layers = range(1, num_layers + 1)
        self.memory_dim = hidden_dim * len(self.directions)
        self._decoder_states, self._decoder_dim = decoder_states, decoder_dim
        self._first = RecurrentLayer(recurrence, word_dim, hidden_dim)
        self._further = RecurrentLayer(recurrence, self.memory_dim, hidden_dim)

    def shapes(self) -> Shapes:
        """W_source; those of each layer and direction, after "encoder_forward1_" and so on; W_init and b_init."""
        shapes = self.embedding.shapes()
        for layer in self.layers:
            for direction in self.directions:
                shapes |= scoped(_scope(layer, direction), self._layer(layer).shapes())
        width = self._decoder_states * self._decoder_dim
        return shapes | {"W_init": (self.memory_dim, width), "b_init": (width,)}

    def forward(self, params: Parameters, batch: Tokens, *, rng: Random = None) -> tuple[Source, Any]:
        """Tokens to a memory (N, L, H) or (N, L, 2H) and a state of arrays of the decoder's size."""
        checked = batch.steps is not None
        x, embedded = self.embedding.forward(params, batch.tokens, rng=rng, checked=checked)
        caches = []
        for layer in self.layers:
            dropped = None
            if layer > 1:
                x, dropped = dropout_forward(x, self.layer_dropout, rng=rng)
            runs = [self._run(params, x, batch, layer, direction, rng) for direction in self.directions]
            x = _beside([h for h, _ in runs])
            caches.append((dropped, [cache for _, cache in runs]))
        a, projected = affine_forward(self._read(x, batch), params["W_init"], params["b_init"])
        started, activated = tanh_forward(a)
        width = self._decoder_dim
        state = tuple(_copy(started[:, k * width : (k + 1) * width]) for k in range(self._decoder_states))
        return Source(state, memory=x, mask=batch.mask), (
            batch,
            embedded,
            caches,
            projected,
            activated,
            x.shape,
        )

    def backward(self, dsource: Source, cache: Any, grads: Parameters) -> None:
        """Add the parameters' gradients."""
        batch, embedded, caches, projected, activated, shape = cache
        ops, dtype = ops_for(activated.y), activated.y.dtype
        dstarted = ops.empty(activated.y.shape, dtype)
        for k, dpart in enumerate(dsource.state):
            dstarted[:, k * self._decoder_dim : (k + 1) * self._decoder_dim] = dpart
        da = tanh_backward(dstarted, activated)
        dread, _, _ = affine_backward(da, projected, into=(grads["W_init"], grads["b_init"]))
        dx = ops.zeros(shape, dtype) if dsource.memory is None else _copy(dsource.memory)
        if batch.steps is not None:
            dread *= batch.steps[:, :1]
        H, last = self.hidden_dim, ops.indices(batch.last)
        as_rows(dx)[last, :H] += dread[:, :H]
        dx[:, 0, H:] += dread[:, H:]
        for layer, (dropped, runs) in zip(reversed(self.layers), reversed(caches), strict=True):
            dinputs = None
            for k, (direction, run) in enumerate(zip(self.directions, runs, strict=True)):
                dh = _copy(dx[:, :, k * H : (k + 1) * H])
                added = self._run_back(dh, run, batch, layer, direction, grads)
                dinputs = added if dinputs is None else operator.iadd(dinputs, added)
            dx = dinputs if dropped is None else dropout_backward(dinputs, dropped)
        self.embedding.backward(dx, embedded, grads)

    def _read(self, x: Array, batch: Tokens) -> Array:
        """The states of both directions once they have read all, (N, L, 2H) -> (N, 2H), or of the one."""
        ops, (N, _, D) = ops_for(x), x.shape
        out = ops.empty((N, D), x.dtype)
        ops.take(as_rows(x), ops.indices(batch.last), out)
        out[:, self.hidden_dim :] = x[:, 0, self.hidden_dim :]
        if batch.steps is not None:
            out *= batch.steps[:, :1]  # a sentence without a token has the initial state, zero
        return out

    def _layer(self, layer: int) -> RecurrentLayer:
        """Layer 1 reads word vectors, those above it read all directions of the one below."""
        return self._first if layer == 1 else self._further

    def _run(
        self, params: Any, x: Array, batch: Tokens, layer: int, direction: str, rng: Random
    ) -> tuple[Array, Any]:
        recurrent, backward = self._layer(layer), direction == "backward"
        inputs = batch.turned(x) if backward else x
        scope = params.scope(_scope(layer, direction))
        h, cache = recurrent.forward(scope, inputs, recurrent.zero_state(x), batch.lengths, rng)
        return (batch.turned(h) if backward else h), cache

    def _run_back(
        self, dh: Array, cache: Any, batch: Tokens, layer: int, direction: str, grads: Any
    ) -> Array:
        dh = batch.turned(dh) if direction == "backward" else dh
        dx, _ = self._layer(layer).backward(dh, cache, grads.scope(_scope(layer, direction)))
        return batch.turned(dx) if direction == "backward" else dx


def _scope(layer: int, direction: str) -> str:
    return f"encoder_{direction}{layer}_"


def _beside(parts: list[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    (N, L, H), ops = parts[0].shape, ops_for(*parts)
    out = ops.empty((N, L, H * len(parts)), parts[0].dtype)
    for k, part in enumerate(parts):
        out[:, :, k * H : (k + 1) * H] = part
    return out


def _copy(view: Array) -> Array:
    out = ops_for(view).empty(view.shape, view.dtype)
    out[...] = view
    return out
