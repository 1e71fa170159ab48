"""One token after another: greedy decoding and sampling from the model's distribution."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rnnlab.decoding.search import Array, Hypothesis, StepModel, checked, forbidden, num_rows


def greedy(
    model: StepModel, source: Any, *, max_length: int = 30, forbid: Iterable[int] = ()
) -> list[list[Hypothesis]]:
    """Take the most probable token at every step.

    Parameters
    ----------
    model : StepModel
    source : anything
        What ``model.start`` takes, N rows.
    max_length : int
        The most words in a sentence.
    forbid : tokens
        Never chosen: the <UNK>, <START> and <NULL> tokens, say.

    Returns
    -------
    list of N lists of one Hypothesis

    Raises
    ------
    ValueError
        If an option does not fit.
    """
    tokens = checked("greedy", model, max_length, forbid)
    return _rollout(model, source, max_length, tokens, lambda log_probs: log_probs.argmax(axis=1))


def sample(
    model: StepModel,
    source: Any,
    *,
    rng: np.random.Generator,
    max_length: int = 30,
    temperature: float = 1.0,
    forbid: Iterable[int] = (),
) -> list[list[Hypothesis]]:
    """Draw every token from the model's distribution.

    Parameters
    ----------
    model : StepModel
    source : anything
        What ``model.start`` takes, N rows.
    rng : numpy Generator
    max_length : int
        The most words in a sentence.
    temperature : float > 0
        Log-probabilities are divided by it: below 1 the likely words gain, above 1 the others.
    forbid : tokens
        Never drawn.

    Returns
    -------
    list of N lists of one Hypothesis
        ``log_prob`` is the model's own, at temperature 1.

    Raises
    ------
    ValueError
        If an option does not fit.
    """
    tokens = checked("sample", model, max_length, forbid)
    if not temperature > 0:
        raise ValueError(f"sample: temperature is {temperature}, expected a number above 0")

    def draw(log_probs: Array) -> Array:
        # The largest of log-probabilities with Gumbel noise is a draw from the distribution.
        return (log_probs / temperature + rng.gumbel(size=log_probs.shape)).argmax(axis=1)

    return _rollout(model, source, max_length, tokens, draw)


def _rollout(
    model: StepModel,
    source: Any,
    max_length: int,
    forbid: tuple[int, ...],
    choose: Callable[[Array], Array],
) -> list[list[Hypothesis]]:
    state = model.start(source)
    N = num_rows(state)
    last = np.full(N, model.start_token)
    words: list[list[int]] = [[] for _ in range(N)]
    total = np.zeros(N)
    alive = np.ones(N, dtype=bool)
    for _ in range(max_length + 1):  # one more for <END> after the last word
        if not alive.any():
            break
        log_probs, state = model.advance(state, last)
        last = choose(forbidden(log_probs, forbid))
        for n in np.flatnonzero(alive):
            token = int(last[n])
            if token == model.end_token:
                alive[n] = False
            elif len(words[n]) == max_length:
                continue
            else:
                words[n].append(token)
            total[n] += float(log_probs[n, token])
    return [[Hypothesis(tuple(words[n]), float(total[n]), float(total[n]), not alive[n])] for n in range(N)]
