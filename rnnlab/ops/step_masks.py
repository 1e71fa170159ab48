"""Dropout and zoneout in one step of a recurrent cell, composed of a library's own primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnlab.types import Array

__all__ = ["ChunkMasks", "RegularisedSteps", "StepMasks", "regularised_steps"]
Primitive = Callable[..., Any]


class StepMasks(NamedTuple):
    """The masks of one step of a cell: their probabilities and their seeds.

    Attributes
    ----------
    zoneout : (2,) floats in [0, 1)
        The probability that a unit of h, and of an LSTM's c, keeps its previous value (Krueger et al. 2017).
    dropout : float in [0, 1)
        The probability that a unit of the candidate is dropped; the others are divided by 1 - dropout
        (Semeniuta et al. 2016).
    seeds : (3,) integers in [0, 2^63), or None
        The seeds of the masks of h, c and the candidate. None means inference: zoneout takes its expectation,
        and nothing is dropped.
    start : int
        The index of the step's first unit in the masks of all steps together.
    """

    zoneout: tuple[float, float] = (0.0, 0.0)
    dropout: float = 0.0
    seeds: Sequence[int] | None = None
    start: int = 0


class ChunkMasks(NamedTuple):
    """The dropout and zoneout of all steps of packed sequences.

    Attributes
    ----------
    steps : StepMasks
        The masks of the steps; ``start`` is 0, the first unit of the first packed row.
    state : (N, H), optional
        What multiplies the states that the recurrent weights read: 0 or 1 / (1 - p), the same at each step.
    """

    steps: StepMasks
    state: Array | None = None


class RegularisedSteps(NamedTuple):
    """The steps with dropout and zoneout; :class:`rnnlab.ops.api.Primitives` documents each."""

    rnn_regularised_forward: Primitive
    rnn_regularised_backward: Primitive
    lstm_regularised_forward: Primitive
    lstm_regularised_backward: Primitive
    gru_candidate_regularised_forward: Primitive
    gru_candidate_regularised_backward: Primitive
    simplified_gru_regularised_forward: Primitive
    simplified_gru_regularised_backward: Primitive


def regularised_steps(cells: Any, masks: Any) -> RegularisedSteps:
    """The steps with dropout and zoneout, in one pass over the arrays for each mask.

    Parameters
    ----------
    cells : module
        Has the steps of the cells, and their variants ``..._dropped_...`` that take a mask of the candidate.
    masks : module
        Has ``dropout_mask``, ``zoneout_forward`` and ``zoneout_backward``.
    """
    return RegularisedSteps(
        *_rnn(cells, masks),
        *_lstm(cells, masks),
        *_interpolating(cells, masks, "gru_candidate"),
        *_interpolating(cells, masks, "simplified_gru"),
    )


def _rnn(cells: Any, module: Any) -> tuple[Primitive, Primitive]:
    zoneout = _Zoneout(module)

    def rnn_regularised_forward(gates: Array, prev_h: Array, h: Array, masks: StepMasks) -> None:
        cells.rnn_forward(gates, h)
        zoneout.forward(0, prev_h, h, masks)

    def rnn_regularised_backward(dh: Array, gates: Array, da: Array, masks: StepMasks) -> Array | None:
        skipped = zoneout.split(0, dh, masks)
        cells.rnn_backward(dh, gates, da)
        dh[...] = 0
        return skipped

    return rnn_regularised_forward, rnn_regularised_backward


def _lstm(cells: Any, module: Any) -> tuple[Primitive, Primitive]:
    zoneout = _Zoneout(module)

    def lstm_regularised_forward(
        gates: Array, prev_h: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array, masks: StepMasks
    ) -> None:
        mask = _candidate_mask(module, c, masks)
        (cells.lstm_dropped_forward if mask else cells.lstm_forward)(gates, *mask, prev_c, c, tanh_c, h)
        zoneout.forward(0, prev_h, h, masks)
        zoneout.forward(1, prev_c, c, masks)

    def lstm_regularised_backward(
        dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array, masks: StepMasks
    ) -> Array | None:
        skipped, skipped_c = zoneout.split(0, dh, masks), zoneout.split(1, dc, masks)
        mask = _candidate_mask(module, dc, masks)
        backward = cells.lstm_dropped_backward if mask else cells.lstm_backward
        backward(dh, dc, gates, *mask, prev_c, tanh_c, da)
        dh[...] = 0
        if skipped_c is not None:
            dc += skipped_c
        return skipped

    return lstm_regularised_forward, lstm_regularised_backward


def _interpolating(cells: Any, module: Any, cell: str) -> tuple[Primitive, Primitive]:
    """The steps of a cell whose h interpolates between its candidate and h_{t-1}."""
    zoneout = _Zoneout(module)
    plain_forward, plain_backward = getattr(cells, f"{cell}_forward"), getattr(cells, f"{cell}_backward")
    dropped_forward = getattr(cells, f"{cell}_dropped_forward")
    dropped_backward = getattr(cells, f"{cell}_dropped_backward")

    def regularised_forward(gates: Array, prev_h: Array, h: Array, masks: StepMasks) -> None:
        mask = _candidate_mask(module, h, masks)
        (dropped_forward if mask else plain_forward)(gates, *mask, prev_h, h)
        zoneout.forward(0, prev_h, h, masks)

    def regularised_backward(
        dh: Array, gates: Array, prev_h: Array, da: Array, masks: StepMasks
    ) -> Array | None:
        skipped = zoneout.split(0, dh, masks)
        mask = _candidate_mask(module, dh, masks)
        (dropped_backward if mask else plain_backward)(dh, gates, *mask, prev_h, da)
        return skipped

    return regularised_forward, regularised_backward


def _candidate_mask(module: Any, like: Array, masks: StepMasks) -> tuple[Array, ...]:
    """The mask of the candidate, or nothing if nothing is dropped."""
    if not masks.dropout or masks.seeds is None:
        return ()
    mask = np.empty(like.shape, like.dtype)
    module.dropout_mask(masks.dropout, masks.seeds[2], masks.start, mask)
    return (mask,)


class _Zoneout:
    """Zoneout of array k of a cell's state: 0 is h, 1 is c."""

    def __init__(self, module: Any) -> None:
        self._forward, self._backward = module.zoneout_forward, module.zoneout_backward

    def forward(self, k: int, prev: Array, now: Array, masks: StepMasks) -> None:
        """Replace units of ``now`` by those of ``prev``; in inference, write the expectation."""
        p = masks.zoneout[k]
        if not p:
            return
        if masks.seeds is None:
            now += p * (prev - now)
        else:
            self._forward(prev, p, masks.seeds[k], masks.start, now)

    def split(self, k: int, dnow: Array, masks: StepMasks) -> Array | None:
        """Keep in ``dnow`` the gradient through the cell; return the part that bypasses it, or None."""
        p = masks.zoneout[k]
        if not p:
            return None
        skipped = np.empty(dnow.shape, dnow.dtype)
        if masks.seeds is None:
            np.multiply(dnow, p, out=skipped)
            dnow -= skipped
        else:
            self._backward(dnow, p, masks.seeds[k], masks.start, skipped)
        return skipped
