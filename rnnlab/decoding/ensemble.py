"""Several models as one: the average of their distributions at every step.

    p(w | w_1 ... w_{t-1}) = 1/K sum_k p_k(w | w_1 ... w_{t-1})                 "probabilities"
    log p = 1/K sum_k log p_k - log Z                                           "log_probabilities"

The first is the mixture of the members (Sutskever, Vinyals and Le 2014). The second is their geometric mean,
which Z normalises: a word needs the support of all members. All members read the same words.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from rnnlab.decoding.search import StepModel, attends, check_step_model, gives_new_array
from rnnlab.decoding.state_rows import DecodingState
from rnnlab.decoding.teacher_forcing import sentences_nll
from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops import ops_for
from rnnlab.types import Array

Average: TypeAlias = Literal["probabilities", "log_probabilities"]
ENSEMBLE_AVERAGES: tuple[Average, ...] = get_args(Average)


class Ensemble:
    """A model whose distribution of the next token is the average of its members'.

    Parameters
    ----------
    models : sequence of StepModel
        At least one. All of them have the same vocabulary.
    average : "probabilities" or "log_probabilities"
        What is averaged; log-probabilities are normalised again.
    num_arrays : sequence of int, optional
        For models that read different features of the same images: the number of arrays that each model
        reads. The source is then a tuple of all these arrays, those of the first model first. By default all
        models read the same source.

    Attributes
    ----------
    models : tuple of StepModel
    average : str
    start_token, end_token, null_token : int
    word_to_idx, source_word_to_idx : dict of str to int, or None
        The vocabularies; None if the members have none.
    attention : function or None
        The mean of the attention of those members that attend to their source; None if no member does.

    Raises
    ------
    TypeError
        If a model lacks ``start``, ``advance``, ``start_token`` or ``end_token``.
    ValueError
        If there is no model, a vocabulary lacks <START> or <END>, an option is invalid, or two models differ
        in ``start_token``, ``end_token``, ``word_to_idx`` or ``source_word_to_idx``.
    """

    def __init__(
        self,
        models: Sequence[StepModel],
        *,
        average: Average = "probabilities",
        num_arrays: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(models, Iterable):
            raise InputTypeError(f"Ensemble: models is a {type(models).__name__}, expected a list of models")
        self.models = tuple(models)
        if not self.models:
            raise InputError("Ensemble: models is empty, expected at least one")
        for k, model in enumerate(self.models):
            check_step_model("Ensemble", f"models[{k}]", model)
            if None in (model.start_token, model.end_token):
                raise InputError(f"Ensemble: models[{k}] has no <START> or no <END>, which decoding needs")
        check_average("Ensemble", average)
        if num_arrays is not None and (len(num_arrays) != len(self.models) or min(num_arrays) < 1):
            raise InputError(
                f"Ensemble: num_arrays is {list(num_arrays)}, "
                f"expected {len(self.models)} numbers of at least 1, one for each model"
            )
        for name in ("start_token", "end_token", "word_to_idx", "source_word_to_idx"):
            found = [(k, getattr(model, name, None)) for k, model in enumerate(self.models)]
            given = [(k, value) for k, value in found if value is not None]  # a model need not know its words
            for k, value in given[1:]:
                if value != given[0][1]:
                    raise InputError(
                        f"Ensemble: models[{k}] has another {name} than models[{given[0][0]}], expected one "
                        "vocabulary"
                    )
        self.average, self._num_arrays = average, num_arrays
        self.start_token, self.end_token = self.models[0].start_token, self.models[0].end_token
        self.null_token, self.word_to_idx, self.source_word_to_idx = map(
            self._of_first, ("null_token", "word_to_idx", "source_word_to_idx")
        )
        self._attending = [k for k, model in enumerate(self.models) if attends(model)]
        self.attention: Callable[[DecodingState], Array] | None = self._attention if self._attending else None

    def __repr__(self) -> str:
        members = ", ".join(type(model).__name__ for model in self.models)
        return f"Ensemble({members}; average={self.average!r})"

    def _of_first(self, name: str) -> Any:
        """An attribute of the first member that has it, None if none does."""
        found = (getattr(model, name, None) for model in self.models)
        return next((value for value in found if value is not None), None)

    def start(self, source: Any) -> DecodingState:
        """The members' states before the first token.

        Raises
        ------
        ValueError
            If the source is not a tuple of ``sum(num_arrays)`` arrays, where ``num_arrays`` is given.
        """
        if self._num_arrays is None:
            return tuple(model.start(source) for model in self.models)
        wanted = sum(self._num_arrays)
        if not isinstance(source, tuple) or len(source) != wanted:
            found = f"{len(source)} arrays" if isinstance(source, tuple) else type(source).__name__
            raise InputError(f"Ensemble: source is {found}, expected a tuple of {wanted} arrays")
        states, arrays = [], iter(source)
        for model, count in zip(self.models, self._num_arrays, strict=True):
            own = tuple(next(arrays) for _ in range(count))
            states.append(model.start(own if count > 1 else own[0]))
        return tuple(states)

    @gives_new_array
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
                raise InputError(
                    f"Ensemble: models[{k}] has {each.shape[1]} words, models[0] {log_probs[0].shape[1]}, "
                    "expected one vocabulary"
                )
        mean = log_probs[0].copy() if len(log_probs) == 1 else averaged(log_probs, self.average)
        return mean, tuple(part for _, part in advanced)

    def nll(self, *batch: Any) -> tuple[float, int]:
        """The negative log-likelihood of a batch under the averaged distributions.

        Parameters
        ----------
        *batch
            A source, as :meth:`start` takes it, and sentences: ``<START>``, the words, ``<END>``, then
            padding, (N, L) integers, or (N, S, L) for S sentences of each row of the source. Of language
            models sentences (N, L) alone.

        Returns
        -------
        total : float
            Summed over all real tokens, in nats.
        tokens : int
            Number of real tokens. exp(total / tokens) is the perplexity.

        Raises
        ------
        ValueError
            If the models have no ``null_token``, which marks padding.
        TypeError
            If there are more or fewer arguments.
        """
        if self.null_token is None:
            raise InputError(
                "Ensemble.nll: no model has a null_token, expected the token of the padding, which is not "
                "predicted"
            )
        if len(batch) not in (1, 2):
            raise InputTypeError(
                f"Ensemble.nll: found {len(batch)} arguments, expected a source and sentences, or sentences"
            )
        source, sentences = batch if len(batch) == 2 else (np.asarray(batch[0])[:, :1], *batch)
        return sentences_nll(self, source, sentences, null_token=self.null_token)

    def _attention(self, state: DecodingState) -> Array:
        """The mean of the attention (N, L) of the members that attend."""
        weights = [self.models[k].attention(state[k]) for k in self._attending]  # type: ignore[attr-defined]
        for k, each in zip(self._attending, weights, strict=True):
            if each.shape != weights[0].shape:
                raise InputError(
                    f"Ensemble: models[{k}] attends to {each.shape[1]} vectors, "
                    f"models[{self._attending[0]}] to {weights[0].shape[1]}: "
                    "their attention cannot be averaged"
                )
        return sum(weights[1:], weights[0]) / len(weights)


def check_average(function: str, average: str) -> None:
    """Raise ValueError if ``average`` is not one of ``ENSEMBLE_AVERAGES``."""
    if average not in ENSEMBLE_AVERAGES:
        raise InputError(
            f"{function}: average is {average!r}, expected one of {', '.join(ENSEMBLE_AVERAGES)}"
        )


def averaged(log_probs: Sequence[Array], average: Average) -> Array:
    """The average of distributions.

    Parameters
    ----------
    log_probs : sequence of arrays (N, V)
        Log-probabilities, which may be minus infinity. They are not changed.
    average : "probabilities" or "log_probabilities"

    Returns
    -------
    (N, V)
        Its log-probabilities. Those of a single distribution are returned as they are.
    """
    if len(log_probs) == 1:
        return log_probs[0]
    if average == "log_probabilities":
        mean: Array = sum(log_probs[1:], log_probs[0]) / len(log_probs)
        impossible = mean.max(axis=1) == -np.inf  # no word is possible under all members
        mean[impossible] = 0
        mean = ops_for(mean).log_softmax(mean, out=mean)
        mean[impossible] = -np.inf
        return mean
    return _log_mean(log_probs)


def _log_mean(log_probs: Sequence[Array]) -> Array:
    """log(mean(exp(...))) over the arrays, which may hold minus infinity."""
    most = functools.reduce(np.maximum, log_probs)
    most = np.maximum(most, np.finfo(most.dtype).min)  # minus infinity cannot be subtracted
    total, part = np.zeros_like(most), np.empty_like(most)
    for each in log_probs:
        total += np.exp(np.subtract(each, most, out=part), out=part)
    with np.errstate(divide="ignore"):
        np.log(total, out=total)
    total -= math.log(len(log_probs))
    total += most
    return total
