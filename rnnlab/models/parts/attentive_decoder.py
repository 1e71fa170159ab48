"""A decoder whose layer attends; :mod:`rnnlab.models.parts.decoders` describes the interface."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers.attention.decoder import attentive_backward, attentive_forward, attentive_shapes
from rnnlab.layers.attention.decoding import AttentiveState, attentive_start, attentive_step
from rnnlab.layers.embedding import WordEmbeddingCache
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.models.parts.values import Decoded, Source
from rnnlab.ops import ops_for
from rnnlab.options import AttentionScore
from rnnlab.types import Array, Params, Random, Shapes


class AttentiveDecoder:
    """One recurrent layer that attends to a memory, to its own past states, or to both.

    :mod:`rnnlab.layers.attention.decoder` has the equations. The contexts of both are concatenated.

    Parameters
    ----------
    recurrence : Recurrence
    word_dim, hidden_dim : int
    memory_dim : int
        Size of a vector of the memory; 0 for no attention to a memory.
    attention_dim : int
        Units of additive scores.
    score : "additive", "dot" or "bilinear"
    selector : bool
        Whether a gate scales the memory's context.
    target : bool
        Whether to attend to the past states.
    target_delay : int, optional
        Read the state this many steps back instead.
    """

    def __init__(
        self,
        recurrence: Recurrence,
        word_dim: int,
        hidden_dim: int,
        *,
        memory_dim: int = 0,
        attention_dim: int,
        score: AttentionScore = "additive",
        selector: bool = False,
        target: bool = False,
        target_delay: int | None = None,
    ) -> None:
        self._options: dict[str, Any] = {
            "cell": recurrence.cell,
            "score": score,
            "selector": selector,
            "target": target,
            "target_delay": target_delay,
        }
        self._regularisation = recurrence.regularisation
        self._shapes = attentive_shapes(
            input_dim=word_dim,
            hidden_dim=hidden_dim,
            attention_dim=attention_dim,
            memory_dim=memory_dim or None,
            **self._options,
        )
        self.context_dim = memory_dim + (hidden_dim if target else 0)
        self.num_states = recurrence.cell.num_states
        self.attends_to_source, self.attends_to_past = memory_dim > 0, target

    def shapes(self) -> Shapes:
        """As in :func:`~rnnlab.layers.attention.decoder.attentive_shapes`."""
        return self._shapes

    def forward(
        self, params: Params, words: Array, source: Source, lengths: Array | None, rng: Random = None
    ) -> tuple[Decoded, Any]:
        """Words (N, T, W), memory (N, L, C), state of arrays (N, H) to hidden states and contexts."""
        hidden, contexts, weights, _, cache = attentive_forward(
            words,
            source.state,
            params=params,
            lengths=lengths,
            rng=rng,
            regularisation=self._regularisation,
            **self._memory_of(source),
            **self._options,
        )
        return Decoded(hidden, contexts, weights, source.first_hidden()), (cache, source.memory_gradient)

    def backward(
        self, ddecoded: Decoded, cache: Any, grads: Params, *, total_dh: Array | None = None
    ) -> tuple[Array, Source]:
        """Add the parameters' gradients; return dwords (N, T, W) and the gradient of the source."""
        attentive, memory_gradient = cache
        dwords, dstate, dmemory, _ = attentive_backward(
            ddecoded.hidden,
            ddecoded.contexts,
            attentive,
            dweights=ddecoded.weights,
            into=grads,
            memory_gradient=memory_gradient,
            total_dh=total_dh,
        )
        ddecoded.add_first(dstate)
        return dwords, Source(dstate, memory=dmemory)

    def start(self, params: Params, source: Source) -> _Attending:
        """The decoding state before the first word."""
        started = attentive_start(
            source.state,
            params=params,
            regularisation=self._regularisation,
            **self._memory_of(source),
            **self._options,
        )
        if source.alignment is None:
            return _Attending(started)
        return _Attending(started, None, np.arange(len(source.alignment)), _Alignment(source.alignment))

    def _memory_of(self, source: Source) -> dict[str, Any]:
        if not self.attends_to_source:
            return {"memory": None}
        return {"memory": source.memory, "memory_mask": source.mask}

    def advance(
        self, words: Array, state: _Attending, looked_up: WordEmbeddingCache | None = None
    ) -> tuple[Decoded, _Attending]:
        """Words (N, W) to hidden states, contexts and the decoding state after them."""
        hidden, contexts, weights, after = attentive_step(words, state.layer, looked_up)
        return Decoded(hidden, contexts, weights), state._replace(layer=after, weights=weights.get("source"))

    def attention(self, state: _Attending) -> Array:
        """The weights (n, L) over the source at the step that led to a state."""
        weights: Array = state.weights
        if state.alignment is None:
            return weights
        ops = ops_for(weights)
        of_thoughts = state.alignment.of_thoughts[ops.asarray(state.sources)]
        return ops.matmul(weights[:, None], of_thoughts)[:, 0]


class _Attending(NamedTuple):
    """The decoding state of an :class:`AttentiveDecoder`, with a row for each hypothesis."""

    layer: AttentiveState
    weights: Array | None = None  # (n, R): over the source, or its thought vectors, at the last step
    sources: Array | None = None  # (n,): the number of each hypothesis's source, with thought vectors
    alignment: _Alignment | None = None


class _Alignment:
    """The weights (N, R, L) of thought vectors over the source, which all hypotheses share."""

    def __init__(self, of_thoughts: Array) -> None:
        self.of_thoughts = of_thoughts
