"""The noise of one step of a recurrent cell, and steps with it out of a module's own primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnlab.types import Array

__all__ = ["Drawing", "StepMasks", "regularised_lstm", "regularised_mixing", "regularised_rnn"]
Primitive = Callable[..., None]


class StepMasks(NamedTuple):
    """The noise of a step: what of it there is, and what it follows from.

    Attributes
    ----------
    zoneout : (2,) floats
        The probability that a number of h, and of an LSTM's c, stays as it was.
    dropout : float
        The probability that a number of the candidate is dropped; the others are divided by what is left.
    keys : (3,) integers, or None
        Of these draws, in their order. Without keys nothing is drawn: zoneout is its expectation, and nothing
        is dropped.
    start : int
        The step's first number in the whole that is drawn for.
    """

    zoneout: tuple[float, float] = (0.0, 0.0)
    dropout: float = 0.0
    keys: Sequence[int] | None = None
    start: int = 0


class Drawing:
    """The noise of steps, a pass over the arrays for each kind, by a module's own primitives for NumPy's."""

    def __init__(
        self, dropout_mask: Primitive, zoneout_forward: Primitive, zoneout_backward: Primitive
    ) -> None:
        self._keep_mask = dropout_mask
        self._zoneout_forward, self._zoneout_backward = zoneout_forward, zoneout_backward

    def masks(self, like: Array, noise: StepMasks) -> tuple[Array, ...]:
        """The mask of the candidate, if there is one."""
        _, p, keys, start = noise
        if not p or keys is None:
            return ()
        keep = np.empty(like.shape, like.dtype)
        self._keep_mask(p, keys[2], start, keep)
        return (keep,)

    def zoneout(self, k: int, prev: Array, now: Array, noise: StepMasks) -> None:
        """Zoneout of array k of a state, h or c."""
        p = noise.zoneout[k]
        if not p:
            return
        if noise.keys is None:
            now += p * (prev - now)
        else:
            self._zoneout_forward(prev, p, noise.keys[k], noise.start, now)

    def split(self, k: int, dnow: Array, noise: StepMasks) -> Array | None:
        """What of dnow goes past the cell, if anything; the rest, which goes through it, is left in dnow."""
        p = noise.zoneout[k]
        if not p:
            return None
        past = np.empty(dnow.shape, dnow.dtype)
        if noise.keys is None:
            np.multiply(dnow, p, out=past)
            dnow -= past
        else:
            self._zoneout_backward(dnow, p, noise.keys[k], noise.start, past)
        return past


def regularised_rnn(
    drawing: Drawing, forward: Primitive, backward: Primitive
) -> tuple[Callable[..., Any], ...]:
    """``rnn_regularised_forward`` and ``rnn_regularised_backward`` on these primitives."""

    def rnn_regularised_forward(a: Array, prev_h: Array, made: Array, h: Array, noise: StepMasks) -> None:
        """``rnn_forward``, whose h is ``made``, and zoneout from that to h, all (n, H)."""
        forward(a, made)
        h[...] = made
        drawing.zoneout(0, prev_h, h, noise)

    def rnn_regularised_backward(dh: Array, made: Array, da: Array, noise: StepMasks) -> Array | None:
        """Backward of :func:`rnn_regularised_forward`, as :func:`lstm_regularised_backward`."""
        past = drawing.split(0, dh, noise)
        backward(dh, made, da)
        dh[...] = 0
        return past

    return rnn_regularised_forward, rnn_regularised_backward


def regularised_lstm(
    drawing: Drawing,
    forward: Primitive,
    backward: Primitive,
    dropped_forward: Primitive,
    dropped_backward: Primitive,
) -> tuple[Callable[..., Any], ...]:
    """``lstm_regularised_forward`` and ``lstm_regularised_backward`` on these primitives."""

    def lstm_regularised_forward(
        gates: Array, prev_h: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array, noise: StepMasks
    ) -> None:
        """``lstm_forward`` with noise: h is made of the c without zoneout, which is tanh_c's as well."""
        masks = drawing.masks(c, noise)
        (dropped_forward if masks else forward)(gates, *masks, prev_c, c, tanh_c, h)
        drawing.zoneout(0, prev_h, h, noise)
        drawing.zoneout(1, prev_c, c, noise)

    def lstm_regularised_backward(
        dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array, noise: StepMasks
    ) -> Array | None:
        """Backward of :func:`lstm_regularised_forward`: write da (n, 4H), and make dc that of c_{t-1}.

        ``dh`` leaves as what of the gradient of h_{t-1} does not come through products, which are to be added
        to it. What is returned, if anything, (n, H), is a part of it that is to be added after them.
        """
        past, past_c = drawing.split(0, dh, noise), drawing.split(1, dc, noise)
        masks = drawing.masks(dc, noise)
        (dropped_backward if masks else backward)(dh, dc, gates, *masks, prev_c, tanh_c, da)
        dh[...] = 0
        if past_c is not None:
            dc += past_c
        return past

    return lstm_regularised_forward, lstm_regularised_backward


def regularised_mixing(
    drawing: Drawing,
    forward: Primitive,
    backward: Primitive,
    dropped_forward: Primitive,
    dropped_backward: Primitive,
) -> tuple[Callable[..., Any], ...]:
    """A step with noise, and its backward, of a cell that mixes its candidate with h_{t-1}."""

    def noisy_forward(gates: Array, prev_h: Array, h: Array, noise: StepMasks) -> None:
        """The primitive without ``noisy`` in its name, and noise."""
        masks = drawing.masks(h, noise)
        (dropped_forward if masks else forward)(gates, *masks, prev_h, h)
        drawing.zoneout(0, prev_h, h, noise)

    def noisy_backward(dh: Array, gates: Array, prev_h: Array, da: Array, noise: StepMasks) -> Array | None:
        """Its backward, with ``dh`` and what is returned as of :func:`lstm_regularised_backward`."""
        past = drawing.split(0, dh, noise)
        masks = drawing.masks(dh, noise)
        (dropped_backward if masks else backward)(dh, gates, *masks, prev_h, da)
        return past

    return noisy_forward, noisy_backward
