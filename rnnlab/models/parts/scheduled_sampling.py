"""Scheduled sampling: the decoder sometimes reads its own predictions in training (Bengio et al. 2015).

    w'_0 = w_0                                                      <START> is never replaced
    w'_t = a word drawn from p(. | w'_0 .. w'_{t-1}, source)        with probability ``sampling``
           w_t, the true word                                       otherwise

The choice is independent for each example and each step. No gradient flows through it, so the inputs w' can
be drawn before the training step: a first pass runs the step functions of decoding, without dropout and
zoneout. The training step is then that of teacher forcing, with w' as inputs and w as targets. The first
pass stops at the last drawn word of each row.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from rnnlab.decoding.state_rows import DecodingState, select
from rnnlab.errors import InputError
from rnnlab.models.parts.output import OutputInputs
from rnnlab.ops import ops_for
from rnnlab.types import Array


def check_sampling(function: str, sampling: float, rng: np.random.Generator | None) -> None:
    """Check the probability of scheduled sampling, and that there is a generator if it is above 0.

    Raises
    ------
    ValueError
        If it is outside [0, 1], or above 0 without a generator.
    """
    if not isinstance(sampling, Real) or not 0 <= sampling <= 1:
        raise InputError(f"{function}: sampling is {sampling!r}, expected a probability in [0, 1]")
    if sampling and rng is None:
        raise InputError(
            f"{function}: sampling is {sampling} and rng None, expected a generator to draw from"
        )


def choose_places(mask: Array, sampling: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Choose which input words are drawn from the model.

    Parameters
    ----------
    mask : (N, T)
        True for real input words. Padding is never replaced.
    sampling : float in [0, 1]
    rng : numpy Generator

    Returns
    -------
    places : (N, T) bool
        True for the words to draw; false for the first word.
    points : (N, T)
        A uniform number in [0, 1) for each word, for inverse transform sampling.
    """
    coins, points = rng.random((2, *mask.shape))
    places = mask & (coins < sampling)
    places[:, :1] = False
    return places, points


def sampled_inputs(model: Any, state: DecodingState, inputs: Array, places: Array, points: Array) -> Array:
    """The input words, with those at the chosen places drawn from the model's distributions.

    Parameters
    ----------
    model : EncoderDecoder
        Has ``read(state, tokens)``, ``output`` and ``params``.
    state : decoding state
        Of N rows, before the first word.
    inputs : (N, T) integers
        The true words.
    places, points : (N, T)
        From :func:`choose_places`.

    Returns
    -------
    (N, T) integers
        Any token may be drawn, special tokens too.
    """
    mixed, steps = inputs.astype(np.int64), np.arange(inputs.shape[1])
    last = (places * steps).max(axis=1, initial=0)  # the last step of each row at which a word is drawn
    rows = np.arange(len(inputs))
    for t in steps[:-1]:
        unfinished = np.flatnonzero(last[rows] > t)
        if not unfinished.size:
            break
        if unfinished.size < rows.size:
            rows, state = rows[unfinished], select(state, unfinished)
        output_inputs, state = model.read(state, mixed[rows, t])
        drawn = np.flatnonzero(places[rows, t + 1])
        if drawn.size:
            at = rows[drawn]
            mixed[at, t + 1] = _draw(model, select(output_inputs, drawn), points[at, t + 1])
    return mixed


def _draw(model: Any, output_inputs: OutputInputs, points: Array) -> Array:
    """Draw the next word of each row, (m,)."""
    scores, _ = model.output.forward(model.params, output_inputs)
    ops = ops_for(scores)
    return ops.asnumpy(ops.draw(scores, ops.asarray(points)))
