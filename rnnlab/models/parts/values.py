"""The values that the parts of a sentence model pass on: of an encoder, and of a decoder."""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.types import Array, State


class Source(NamedTuple):
    """The output of an encoder, or its gradient; None for an output that the encoder does not have."""

    state: State  # arrays (N, H), the decoder's initial state
    image: Array | None = None  # (N, P), the image vector, an input of the decoder
    memory: Array | None = None  # (N, L, C), to which the decoder attends
    mask: Array | None = None  # (N, L), true for the real slots of the memory
    alignment: Array | None = None  # (N, L, M), of thought vectors: their attention weights over the encoder
    zero_state: bool = False  # whether the state is zero and does not depend on the source
    memory_gradient: bool = True  # whether the memory's gradient is needed; for data it often is not
    above: tuple[State, ...] = ()  # the initial states of the decoder's further layers; zeros if left out

    def first_hidden(self) -> Array | None:
        """The initial hidden state (N, H); None if it is zero."""
        return None if self.zero_state else self.state[0]


class Decoded(NamedTuple):
    """The outputs of a decoder, or their gradients. The outputs of a single step have no axis T."""

    hidden: Array  # (N, T, H)
    contexts: Array | None = None  # (N, T, C), of an attentive decoder
    weights: dict[str, Array] = {}  # noqa: RUF012  "source" (N, T, L), "target" (N, T, T)
    first: Array | None = None  # (N, H), the hidden state before the first word; None if it is zero

    def add_first(self, dstate: State) -> None:
        """For gradients only: add the gradient of ``first`` to ``dstate[0]``, in place."""
        if self.first is not None:
            dstate[0][...] += self.first
