"""Decoders: word vectors and the encoder's outputs to hidden states.

An image enters as the initial state or in one of three ways:

    every step    x_t = [word_t, v]                           LRCN, unfactored (Donahue et al. 2015)
    first input   x_0 = v, then x_t = word_t                  NIC (Vinyals et al. 2015)
    second layer  layer 1 sees words; layer 2 sees            LRCN, factored
                  [layer 1's hidden state, v]

A further decoder attends to a memory, to its own past states, or to both. More recurrent layers may be
stacked on a decoder; a first input passes through all of them before the first word. Besides the forward and
backward of a part, each decoder has ``start`` and ``advance`` for decoding, which run the same cells step by
step:

    decoder.forward(params, words, source, lengths, rng) -> decoded, cache
    decoder.backward(ddecoded, cache, grads)        -> dwords, dsource
        total_dh=array        is overwritten with the total gradient of each hidden state, (N, T, H)
    decoder.start(params, source)                   -> state
    decoder.advance(words, state, looked_up)        -> decoded, state          of one step
        looked_up=cache       of the embedding of the words: products of word vectors can then be looked up
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rnnlab.decoding.state_rows import DecodingState
from rnnlab.layers.copying import copy_of
from rnnlab.layers.dropout import dropout_backward, dropout_forward
from rnnlab.layers.embedding import WordEmbeddingCache
from rnnlab.models.parts.attentive_decoder import AttentiveDecoder
from rnnlab.models.parts.recurrent_layer import Recurrence, RecurrentLayer
from rnnlab.models.parts.values import Decoded, Source
from rnnlab.ops import ops_for
from rnnlab.parameters import scoped
from rnnlab.types import Array, Params, Random, Shapes, State


class RecurrentDecoder:
    """One recurrent layer over the words and, with ``image_dim``, an image vector at every step."""

    context_dim = 0
    attends_to_source = attends_to_past = False

    def __init__(self, recurrence: Recurrence, word_dim: int, hidden_dim: int, *, image_dim: int = 0) -> None:
        self.word_dim, self.image_dim = word_dim, image_dim
        self.layer = RecurrentLayer(recurrence, word_dim + image_dim, hidden_dim)
        self.num_states = self.layer.num_states

    def shapes(self) -> Shapes:
        """The shapes of the layer's parameters."""
        return self.layer.shapes()

    def forward(
        self, params: Params, words: Array, source: Source, lengths: Array | None, rng: Random = None
    ) -> tuple[Decoded, Any]:
        """Words (N, T, W), image (N, P) or None, state of arrays (N, H) to hidden states (N, T, H)."""
        inputs = _with_image(words, source.image if self.image_dim else None)
        hidden, cache = self.layer.forward(params, inputs, source.state, lengths, rng)
        return Decoded(hidden, first=source.first_hidden()), cache

    def last_state(self, cache: Any) -> State:
        """The state after the last word of each sentence, from the cache of :meth:`forward`."""
        return self.layer.last_state(cache)

    def backward(
        self, ddecoded: Decoded, cache: Any, grads: Params, *, total_dh: Array | None = None
    ) -> tuple[Array, Source]:
        """Add the parameters' gradients; return dwords (N, T, W) and the gradient of the source."""
        dx, dstate = self.layer.backward(ddecoded.hidden, cache, grads, total_dh=total_dh)
        ddecoded.add_first(dstate)
        if not self.image_dim:
            return dx, Source(dstate)
        return copy_of(dx[:, :, : self.word_dim]), Source(dstate, dx[:, :, self.word_dim :].sum(axis=1))

    def start(self, params: Params, source: Source) -> DecodingState:
        """The decoding state before the first word: recurrent state, image, and the layer's step."""
        image = source.image if self.image_dim else None
        return source.state, image, self.layer.decoding_step(params, source.state[0])

    def advance(
        self, words: Array, state: DecodingState, looked_up: WordEmbeddingCache | None = None
    ) -> tuple[Decoded, DecodingState]:
        """Words (N, W) to hidden states (N, H) and the decoding state after them."""
        recurrent, image, step = state
        if image is not None:
            words, looked_up = _with_image(words, image), None
        recurrent = step(words, recurrent, looked_up)
        return Decoded(recurrent[0]), (recurrent, image, step)


class StackedDecoder:
    """A decoder and recurrent layers above it, whose initial states are zero unless the source has them.

        h_1 = decoder(words, source)
        h_k = layer_k(dropout(h_{k-1}))                 in the factored model layer 2 reads [dropout(h_1), v]

    Contexts and attention weights are those of the first layer. A decoding state holds that of the first
    layer and a tuple of those above.

    Parameters
    ----------
    lowest : RecurrentDecoder or AttentiveDecoder
        The first layer.
    above : sequence of RecurrentDecoder
    dropout : float in [0, 1)
        Probability of dropping an element of the hidden states that a layer above reads.
    """

    def __init__(self, lowest: Any, above: Sequence[RecurrentDecoder], *, dropout: float = 0.0) -> None:
        self.lowest, self._dropout = lowest, dropout
        self._above = [(f"layer{k}_", layer) for k, layer in enumerate(above, 2)]
        self.num_states, self.context_dim = lowest.num_states, lowest.context_dim
        self.attends_to_source, self.attends_to_past = lowest.attends_to_source, lowest.attends_to_past

    def shapes(self) -> Shapes:
        """Those of all layers, with the prefixes "layer1_", "layer2_" and so on."""
        layers = [("layer1_", self.lowest), *self._above]
        return {
            name: shape for prefix, layer in layers for name, shape in scoped(prefix, layer.shapes()).items()
        }

    def forward(
        self, params: Any, words: Array, source: Source, lengths: Array | None, rng: Random = None
    ) -> tuple[Decoded, Any]:
        """As the first layer's, with the hidden states (N, T, H) of the last layer."""
        decoded, ran_lowest = self.lowest.forward(params.scope("layer1_"), words, source, lengths, rng)
        hidden, first, above = decoded.hidden, None, []
        for (prefix, layer), own in zip(self._above, self._sources_above(source), strict=True):
            hidden, dropped = dropout_forward(hidden, self._dropout, rng=rng)
            upper, cache = layer.forward(params.scope(prefix), hidden, own, lengths, rng)
            hidden, first = upper.hidden, upper.first
            above.append((dropped, cache))
        return decoded._replace(hidden=hidden, first=first), (ran_lowest, above)

    def last_state(self, cache: Any) -> State:
        """The states of all layers after the last word, the first layer's first."""
        ran_lowest, above = cache
        state = self.lowest.last_state(ran_lowest)
        for (_, layer), (_, ran) in zip(self._above, above, strict=True):
            state += layer.last_state(ran)
        return state

    def backward(
        self, ddecoded: Decoded, cache: Any, grads: Any, *, total_dh: Array | None = None
    ) -> tuple[Array, Source]:
        """Add the parameters' gradients; return dwords (N, T, W) and the gradient of the source."""
        ran_lowest, above = cache
        dhidden, image = ddecoded.hidden, None
        for (prefix, layer), (dropped, ran) in zip(reversed(self._above), reversed(above), strict=True):
            dinputs, dsource = layer.backward(Decoded(dhidden), ran, grads.scope(prefix), total_dh=total_dh)
            dhidden, total_dh = dropout_backward(dinputs, dropped), None
            image = dsource.image if image is None else image
        ddecoded = ddecoded._replace(hidden=dhidden, first=None)
        dwords, dsource = self.lowest.backward(ddecoded, ran_lowest, grads.scope("layer1_"))
        return dwords, dsource if image is None else dsource._replace(image=image)

    def start(self, params: Any, source: Source) -> DecodingState:
        """The decoding states of all layers before the first word."""
        return self.lowest.start(params.scope("layer1_"), source), tuple(
            layer.start(params.scope(prefix), own)
            for (prefix, layer), own in zip(self._above, self._sources_above(source), strict=True)
        )

    def advance(
        self, words: Array, state: DecodingState, looked_up: WordEmbeddingCache | None = None
    ) -> tuple[Decoded, DecodingState]:
        """Words (N, W) to the outputs of one step and the decoding state after it."""
        lowest, above = state
        decoded, lowest = self.lowest.advance(words, lowest, looked_up)
        hidden, after = decoded.hidden, []
        for (_, layer), before in zip(self._above, above, strict=True):
            upper, state_after = layer.advance(hidden, before)
            hidden = upper.hidden
            after.append(state_after)
        return decoded._replace(hidden=hidden), (lowest, tuple(after))

    def attention(self, state: DecodingState) -> Array:
        """The first layer's weights (n, L) over the source at the step that led to a state."""
        return self.lowest.attention(state[0])

    def _sources_above(self, source: Source) -> list[Source]:
        """The source of each layer above the first: its own initial state, and the image."""
        if source.above:
            return [Source(state, source.image) for state in source.above]
        return [
            Source(layer.layer.zero_state(source.state[0]), source.image, zero_state=True)
            for _, layer in self._above
        ]


class FirstInputDecoder:
    """A decoder that reads the image vector (N, W) once, before the first word.

    Parameters
    ----------
    decoder : RecurrentDecoder or StackedDecoder
    """

    context_dim = 0
    attends_to_source = attends_to_past = False

    def __init__(self, decoder: RecurrentDecoder | StackedDecoder) -> None:
        self.decoder, self.num_states = decoder, decoder.num_states

    def shapes(self) -> Shapes:
        """Those of the decoder."""
        return self.decoder.shapes()

    def forward(
        self, params: Params, words: Array, source: Source, lengths: Array | None, rng: Random = None
    ) -> tuple[Decoded, Any]:
        """As the decoder's. The hidden state after the image is ``first``."""
        N, T, W = words.shape
        inputs = ops_for(words).empty((N, T + 1, W), words.dtype)
        inputs[:, 0], inputs[:, 1:] = source.image, words
        lengths = None if lengths is None else np.asarray(lengths) + 1
        decoded, cache = self.decoder.forward(params, inputs, source, lengths, rng)
        return Decoded(copy_of(decoded.hidden[:, 1:]), first=copy_of(decoded.hidden[:, 0])), cache

    def backward(
        self, ddecoded: Decoded, cache: Any, grads: Params, *, total_dh: Array | None = None
    ) -> tuple[Array, Source]:
        """Add the parameters' gradients; return dwords (N, T, W) and the gradient of the source."""
        N, T, H = ddecoded.hidden.shape
        ops, dtype = ops_for(ddecoded.hidden), ddecoded.hidden.dtype
        dall = ops.empty((N, T + 1, H), dtype)
        dall[:, 0] = 0 if ddecoded.first is None else ddecoded.first
        dall[:, 1:] = ddecoded.hidden
        whole: Any = None if total_dh is None else ops.empty((N, T + 1, H), dtype)
        dinputs, dsource = self.decoder.backward(Decoded(dall), cache, grads, total_dh=whole)
        if total_dh is not None:
            total_dh[...] = whole[:, 1:]
        return copy_of(dinputs[:, 1:]), dsource._replace(image=copy_of(dinputs[:, 0]))

    def start(self, params: Params, source: Source) -> DecodingState:
        """The decoding state after the image."""
        return self.decoder.advance(source.image, self.decoder.start(params, source))[1]

    def advance(
        self, words: Array, state: DecodingState, looked_up: WordEmbeddingCache | None = None
    ) -> tuple[Decoded, DecodingState]:
        """Words (N, W) to hidden states (N, H) and the decoding state after them."""
        return self.decoder.advance(words, state, looked_up)


def attended(options: Mapping[str, Any]) -> list[str]:
    """What a decoder with these options attends to, in the order of its contexts."""
    return [name for name in ("attention", "target_attention") if options.get(name)]


def num_decoder_layers(options: Mapping[str, Any]) -> int:
    """The number of recurrent layers of the decoder that the options of a model choose."""
    return options.get("decoder_layers") or (2 if options.get("image_input") == "second_layer" else 1)


def build_decoder(
    recurrence: Recurrence, memory_dim: int, options: Mapping[str, Any]
) -> RecurrentDecoder | AttentiveDecoder | StackedDecoder | FirstInputDecoder:
    """The decoder that the options of a model choose.

    Parameters
    ----------
    recurrence : Recurrence
    memory_dim : int
        Size of a vector of the memory, to which it attends if the option ``attention`` is set.
    options : mapping
        The options of the model.
    """
    word_dim, hidden_dim, attention = options["wordvec_dim"], options["hidden_dim"], options.get("attention")
    image_input = options.get("image_input", "initial_state")
    decoder: Any
    if attention or options["target_attention"]:
        decoder = AttentiveDecoder(
            recurrence,
            word_dim,
            hidden_dim,
            memory_dim=memory_dim if attention else 0,
            attention_dim=options["attention_dim"] or hidden_dim,
            score=attention or "additive",
            selector=options.get("selector", False),
            target=options["target_attention"],
            target_delay=options["target_delay"],
        )
    else:
        image_dim = word_dim if image_input == "every_step" else 0
        decoder = RecurrentDecoder(recurrence, word_dim, hidden_dim, image_dim=image_dim)
    if (num_layers := num_decoder_layers(options)) > 1:
        image_dims = [word_dim if image_input == "second_layer" else 0] + [0] * (num_layers - 2)
        above = [
            RecurrentDecoder(recurrence, hidden_dim, hidden_dim, image_dim=image_dim)
            for image_dim in image_dims
        ]
        decoder = StackedDecoder(decoder, above, dropout=options["layer_dropout"])
    return FirstInputDecoder(decoder) if image_input == "first_input" else decoder


def _with_image(words: Array, image: Array | None) -> Array:
    """Words (N, W) or (N, T, W), each with the image vector (N, P) appended."""
    if image is None:
        return words
    ops = ops_for(words, image)
    out = ops.empty((*words.shape[:-1], words.shape[-1] + image.shape[-1]), words.dtype)
    out[..., : words.shape[-1]] = words
    out[..., words.shape[-1] :] = image if words.ndim == 2 else image[:, None]
    return out
