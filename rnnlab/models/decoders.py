"""Decoders: word vectors, an image vector and an initial state to hidden states.

Three ways for an image to enter, besides as the initial state:

    every step    x_t = [word_t, v]                           LRCN, one layer
    first input   x_0 = v, then x_t = word_t                  NIC (Vinyals et al. 2015)
    second layer  layer 1 sees words; layer 2 sees            LRCN, factored (Donahue et al. 2015)
                  [layer 1's hidden state, v]

Each decoder offers, besides a part's two methods, ``start`` and ``advance`` for decoding: they take and give
back a decoding state, ``(recurrent state, image vector)``, and use the cells' step functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnlab.models.cells import Array, Cell, State
from rnnlab.models.encoders import Shapes
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters


class RecurrentDecoder:
    """One recurrent layer over the words and, with ``image_dim``, an image vector at every step."""

    def __init__(
        self, cell: Cell, word_dim: int, hidden_dim: int, *, image_dim: int = 0, layer: str = ""
    ) -> None:
        self.cell, self.word_dim, self.hidden_dim, self.image_dim = cell, word_dim, hidden_dim, image_dim
        self.names = tuple(cell.shapes(1, 1, layer))  # Wx, Wh, b
        self.layer = layer
        self.states = cell.states

    def shapes(self) -> Shapes:
        """Wx, Wh and b."""
        return self.cell.shapes(self.word_dim + self.image_dim, self.hidden_dim, self.layer)

    def forward(
        self, params: Parameters, words: Array, image: Array | None, state: State, lengths: Array | None
    ) -> tuple[Array, Any]:
        """Words (N, T, W), image (N, P) or None, state of arrays (N, H) to hidden states (N, T, H)."""
        return self.cell.forward(_beside(words, image), state, *self._weights(params), lengths)

    def backward(self, dhidden: Array, cache: Any, grads: Parameters) -> tuple[Array, Array | None, State]:
        """Add the parameters' gradients; return dwords (N, T, W), dimage (N, P) or None, dstate."""
        dx, dstate, *_ = self.cell.backward(dhidden, cache, into=self._weights(grads))
        if not self.image_dim:
            return dx, None, dstate
        return _part(dx[:, :, : self.word_dim]), dx[:, :, self.word_dim :].sum(axis=1), dstate

    def start(self, params: Parameters, image: Array | None, state: State) -> tuple[State, Array | None]:
        """The decoding state before the first word."""
        return state, image

    def advance(
        self, params: Parameters, words: Array, state: tuple[State, Array | None]
    ) -> tuple[Array, tuple[State, Array | None]]:
        """Words (N, W) to hidden states (N, H) and the decoding state after them."""
        recurrent, image = state
        recurrent = self.cell.step(_beside(words, image), recurrent, *self._weights(params))
        return recurrent[0], (recurrent, image)

    def _weights(self, params: Parameters) -> tuple[Array, ...]:
        return tuple(params[name] for name in self.names)


class FirstInputDecoder(RecurrentDecoder):
    """One recurrent layer that sees the image vector (N, W) before the first word, and only then."""

    def forward(
        self, params: Parameters, words: Array, image: Array | None, state: State, lengths: Array | None
    ) -> tuple[Array, Any]:
        """As of :class:`RecurrentDecoder`; the hidden state of the image's own step is not among them."""
        N, T, W = words.shape
        inputs = ops_for(words).empty((N, T + 1, W), words.dtype)
        inputs[:, 0], inputs[:, 1:] = image, words
        hidden, cache = super().forward(
            params, inputs, None, state, None if lengths is None else np.asarray(lengths) + 1
        )
        return _part(hidden[:, 1:]), cache

    def backward(self, dhidden: Array, cache: Any, grads: Parameters) -> tuple[Array, Array | None, State]:
        """As of :class:`RecurrentDecoder`."""
        N, T, H = dhidden.shape
        dall = ops_for(dhidden).empty((N, T + 1, H), dhidden.dtype)
        dall[:, 0], dall[:, 1:] = 0, dhidden
        dinputs, _, dstate = super().backward(dall, cache, grads)
        return _part(dinputs[:, 1:]), _part(dinputs[:, 0]), dstate

    def start(self, params: Parameters, image: Array | None, state: State) -> tuple[State, Array | None]:
        """The decoding state after the image."""
        _, started = super().advance(params, image, (state, None))
        return started


class FactoredDecoder:
    """Two recurrent layers: the first sees the words alone, the second its hidden state and the image vector.

    Their states stand one after the other in a state.
    """

    def __init__(self, cell: Cell, word_dim: int, hidden_dim: int, *, image_dim: int) -> None:
        self.first = RecurrentDecoder(cell, word_dim, hidden_dim, layer="1")
        self.second = RecurrentDecoder(cell, hidden_dim, hidden_dim, image_dim=image_dim, layer="2")
        self.states = 2 * cell.states

    def shapes(self) -> Shapes:
        """Wx, Wh and b of both layers, with 1 and 2 after their names."""
        return self.first.shapes() | self.second.shapes()

    def forward(
        self, params: Parameters, words: Array, image: Array | None, state: State, lengths: Array | None
    ) -> tuple[Array, Any]:
        """Words (N, T, W), image (N, P), state (N, H) to the second layer's hidden states (N, T, H)."""
        below, above = self._split(state)
        hidden, first = self.first.forward(params, words, None, below, lengths)
        hidden, second = self.second.forward(params, hidden, image, above, lengths)
        return hidden, (first, second)

    def backward(self, dhidden: Array, cache: Any, grads: Parameters) -> tuple[Array, Array | None, State]:
        """Add the parameters' gradients; return dwords (N, T, W), dimage (N, P), dstate."""
        first, second = cache
        dhidden, dimage, dabove = self.second.backward(dhidden, second, grads)
        dwords, _, dbelow = self.first.backward(dhidden, first, grads)
        return dwords, dimage, dbelow + dabove

    def start(self, params: Parameters, image: Array | None, state: State) -> tuple[State, Array | None]:
        """The decoding state before the first word."""
        return state, image

    def advance(
        self, params: Parameters, words: Array, state: tuple[State, Array | None]
    ) -> tuple[Array, tuple[State, Array | None]]:
        """Words (N, W) to the second layer's hidden states (N, H) and the decoding state after them."""
        recurrent, image = state
        below, above = self._split(recurrent)
        hidden, (below, _) = self.first.advance(params, words, (below, None))
        hidden, (above, _) = self.second.advance(params, hidden, (above, image))
        return hidden, (below + above, image)

    def _split(self, state: State) -> tuple[State, State]:
        return state[: self.first.states], state[self.first.states :]


def _part(view: Array) -> Array:
    """A part of an array, in one piece."""
    out = ops_for(view).empty(view.shape, view.dtype)
    out[...] = view
    return out


def _beside(words: Array, image: Array | None) -> Array:
    """The words (N, W) or (N, T, W) with the image vector (N, P) beside each of them."""
    if image is None:
        return words
    ops = ops_for(words, image)
    out = ops.empty((*words.shape[:-1], words.shape[-1] + image.shape[-1]), words.dtype)
    out[..., : words.shape[-1]] = words
    out[..., words.shape[-1] :] = image if words.ndim == 2 else image[:, None]
    return out
