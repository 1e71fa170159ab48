"""Scheduled sampling: in training, some of the words that are read are the model's own (Bengio et al. 2015).

    w'_0 = w_0                                                      <START> stays
    w'_t = a word from p(. | w'_0 .. w'_{t-1}, source)              with probability ``sampling``
           w_t, the true word                                       otherwise

The coin is thrown for each example and each step. No gradient flows through the choice, so that it can be
made before: a first pass reads word after word by the step functions of decoding, without noise, and the
batch is then taught as ever, with w' as what is read and w as what is to be written. All models have the one
forward and backward, and what is not drawn costs nothing.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from rnnlab.decoding.rollout import draw_tokens
from rnnlab.decoding.search import DecodingState, select
from rnnlab.models.parts.embedding import Readout
from rnnlab.ops import ops_for
from rnnlab.types import Array


def check_sampling(function: str, sampling: float, rng: np.random.Generator | None) -> None:
    """Check a probability of scheduled sampling, and that there is something to draw from.

    Raises
    ------
    ValueError
        If it is outside [0, 1], or above 0 without a generator.
    """
    if not isinstance(sampling, Real) or not 0 <= sampling <= 1:
        raise ValueError(f"{function}: sampling is {sampling!r}, expected a probability in [0, 1]")
    if sampling and rng is None:
        raise ValueError(
            f"{function}: sampling is {sampling} and rng None, expected a generator to draw from"
        )


def choose_places(real: Array, sampling: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Which words are to be the model's own.

    Parameters
    ----------
    real : (N, T)
        True where a real word is read; padding stays padding.
    sampling : float in [0, 1]
    rng : numpy Generator

    Returns
    -------
    places : (N, T) bool
        False for the first word.
    points : (N, T)
        A number in [0, 1) for each place: where in its distribution the word is drawn.
    """
    coins, points = rng.random((2, *real.shape))
    places = real & (coins < sampling)
    places[:, :1] = False
    return places, points


def sampled_inputs(model: Any, state: DecodingState, inputs: Array, places: Array, points: Array) -> Array:
    """The words that are read, those at the places chosen drawn from the model's own distributions.

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
        Any token may be drawn, the special ones too, as the model has them.
    """
    mixed, steps = inputs.astype(np.int64), np.arange(inputs.shape[1])
    last = (places * steps).max(axis=1, initial=0)  # the last step of each row at which a word is drawn
    rows = np.arange(len(inputs))
    for t in steps[:-1]:
        going_on = np.flatnonzero(last[rows] > t)
        if not going_on.size:
            break
        if going_on.size < rows.size:
            rows, state = rows[going_on], select(state, going_on)
        readout, state = model.read(state, mixed[rows, t])
        drawn = np.flatnonzero(places[rows, t + 1])
        if drawn.size:
            at = rows[drawn]
            mixed[at, t + 1] = _draw(model, Readout(*select(readout, drawn)), points[at, t + 1])
    return mixed


def _draw(model: Any, readout: Readout, points: Array) -> Array:
    """A word (m,) of the distribution after each row of a readout."""
    scores, _ = model.output.forward(model.params, readout)
    ops = ops_for(scores)
    return draw_tokens(np.exp(ops.asnumpy(ops.log_softmax(scores))), points)
