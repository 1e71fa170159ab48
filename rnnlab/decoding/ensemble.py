"""Several models as one: the mean of their probabilities (Sutskever, Vinyals and Le 2014)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rnnlab.decoding.search import DecodingState, StepModel, attends
from rnnlab.types import Array


class Ensemble:
    """A model whose probability of a token is the mean of its members'.

    Parameters
    ----------
    models : sequence of StepModel
        At least one. All of them read the same source and have the same vocabulary.

    Attributes
    ----------
    models : tuple of StepModel
    start_token, end_token : int
    attention : function or None
        The mean of the members' attention, if all of them attend.

    Raises
    ------
    ValueError
        If there is no model, or their ``start_token``, ``end_token`` or ``word_to_idx`` differ.
    """

    def __init__(self, models: Sequence[StepModel]) -> None:
        self.models = tuple(models)
        if not self.models:
            raise ValueError("Ensemble: models is empty, expected at least one")
        for name in ("start_token", "end_token", "word_to_idx"):
            first, *others = (getattr(model, name, None) for model in self.models)
            for k, other in enumerate(others, 1):
                if other != first:
                    raise ValueError(
                        f"Ensemble: models[{k}] has another {name} than models[0], expected one vocabulary"
                    )
        self.start_token, self.end_token = self.models[0].start_token, self.models[0].end_token
        all_attend = all(map(attends, self.models))
        self.attention: Callable[[DecodingState], Array] | None = self._attention if all_attend else None

    def start(self, source: Any) -> DecodingState:
        """The members' states before the first token."""
        return tuple(model.start(source) for model in self.models)

    def advance(self, state: DecodingState, tokens: Array) -> tuple[Array, DecodingState]:
        """Log-probabilities (N, V) of the token after ``tokens`` (N,), and the members' states after them.

        Raises
        ------
        ValueError
            If the members' vocabularies differ in size.
        """
        advanced = [model.advance(part, tokens) for model, part in zip(self.models, state, strict=True)]
        log_probs = [each for each, _ in advanced]
        for k, each in enumerate(log_probs):
            if each.shape != log_probs[0].shape:
                raise ValueError(
                    f"Ensemble: models[{k}] has {each.shape[1]} words, models[0] {log_probs[0].shape[1]}, "
                    "expected one vocabulary"
                )
        return _log_mean(log_probs), tuple(part for _, part in advanced)

    def _attention(self, state: DecodingState) -> Array:
        """The mean of the members' attention (N, L)."""
        weights = [model.attention(part) for model, part in zip(self.models, state, strict=True)]  # type: ignore[attr-defined]
        return sum(weights[1:], weights[0]) / len(weights)


def _log_mean(log_probs: Sequence[Array]) -> Array:
    """log(mean(exp(...))) over the arrays, which may hold minus infinity."""
    most = functools.reduce(np.maximum, log_probs)
    most = np.maximum(most, np.finfo(most.dtype).min)  # minus infinity cannot be subtracted
    total = np.zeros_like(most)
    for each in log_probs:
        total += np.exp(each - most)
    with np.errstate(divide="ignore"):
        np.log(total, out=total)
    total -= math.log(len(log_probs))
    total += most
    return total
