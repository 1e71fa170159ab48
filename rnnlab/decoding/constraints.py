"""Constraints of a search: forbidden tokens, a minimum length, no repeated n-grams."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from rnnlab.decoding.search import StepModel, check_count, check_step_model
from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops import ops_for
from rnnlab.types import Array


class Constraints:
    """The options that all searches share: their checks, and their effect on log-probabilities.

    Parameters
    ----------
    function : str
        The name of the search, for the errors.
    model : StepModel
    max_length, min_length : int
        Maximum and minimum number of words in a sentence.
    forbid : tokens
        Never chosen. If <END> is one, all sentences have ``max_length`` words and are unfinished.
    no_repeat_ngram : int
        N-grams of this length occur at most once in a sentence. 0 means no constraint.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range, if the model does not write sentences or has no <START> or <END>, or if
        they are the same token.
    """

    def __init__(
        self,
        function: str,
        model: StepModel,
        *,
        max_length: int,
        min_length: int,
        forbid: Iterable[int],
        no_repeat_ngram: int,
    ) -> None:
        check_step_model(function, "model", model)
        self.function, self.end_token = function, model.end_token
        self._copies = not getattr(model.advance, "gives_new_array", False)
        for word, token in (("<START>", model.start_token), ("<END>", model.end_token)):
            if token is None:
                raise InputError(f"{function}: the model's vocabulary has no {word}, which decoding needs")
            check_count(function, f"the model's token {word}", token, 0)
        if model.start_token == model.end_token:
            raise InputError(
                f"{function}: <START> and <END> are both the token {model.end_token}, expected two tokens"
            )
        self.max_length = check_count(function, "max_length", max_length, 1)
        self.min_length = check_count(function, "min_length", min_length, 0, self.max_length)
        self.no_repeat_ngram = check_count(function, "no_repeat_ngram", no_repeat_ngram, 0)
        try:
            self.forbid = sorted({operator.index(token) for token in forbid})
        except TypeError:
            raise InputTypeError(
                f"{function}: forbid is {forbid!r}, expected tokens, which are integers"
            ) from None
        if self.forbid and self.forbid[0] < 0:
            raise InputError(f"{function}: forbid holds {self.forbid[0]}, expected tokens of the vocabulary")
        self._never: dict[tuple[str, bool], Array] = {}  # by library and whether they include <END>

    def apply(self, log_probs: Array, length: int, history: Array | None) -> Array:
        """The log-probabilities, with minus infinity for tokens that are not allowed.

        NaN remains NaN, so that a search also detects it at forbidden tokens.

        Parameters
        ----------
        log_probs : (N, V)
            Log-probabilities of the token after ``length`` words. Overwritten if the model's ``advance``
            gives new arrays.
        length : int
        history : (N, length) or None
            The words so far, which ``no_repeat_ngram`` needs.

        Returns
        -------
        (N, V)

        Raises
        ------
        ValueError
            If <END> or a forbidden token is not in the vocabulary.
        """
        ops, V = ops_for(log_probs), log_probs.shape[1]
        if self.end_token >= V:
            raise InputError(
                f"{self.function}: <END> is the token {self.end_token}, and the model has scores of "
                f"{V} words: no sentence could end"
            )
        if self.forbid and self.forbid[-1] >= V:
            raise InputError(f"{self.function}: forbid holds {self.forbid[-1]}, the vocabulary has {V} words")
        short = length < self.min_length
        never = self.forbid + [self.end_token] * short
        repeats = 0 < self.no_repeat_ngram <= length
        if not never and not repeats:
            return log_probs
        if self._copies:
            log_probs = log_probs.copy()
        if never:
            if (ops.__name__, short) not in self._never:  # cached, since copying to a GPU takes time
                self._never[ops.__name__, short] = ops.asarray(never)
            _forbid(log_probs, (slice(None), self._never[ops.__name__, short]))
        if repeats:
            rows, words = repeated(history, self.no_repeat_ngram)
            _forbid(log_probs, (ops.asarray(rows), ops.asarray(words)))
        return log_probs


def _forbid(log_probs: Array, places: tuple[Any, Any]) -> None:
    """Set log-probabilities to minus infinity in place, except those that are NaN."""
    with np.errstate(invalid="ignore"):  # infinity, which becomes NaN
        log_probs[places] += -np.inf


def repeated(history: Array, n: int) -> tuple[Array, Array]:
    """The words that would complete an n-gram that a sentence already has.

    Parameters
    ----------
    history : (N, length) tokens
    n : int in [1, length]

    Returns
    -------
    rows, words : (M,)
        Pairs of a sentence and a word.
    """
    ngrams = np.lib.stride_tricks.sliding_window_view(history, n, axis=1)  # (N, length - n + 1, n)
    latest = history[:, None, history.shape[1] - n + 1 :]  # the n - 1 words before the next one
    rows, places = np.nonzero((ngrams[:, :, :-1] == latest).all(axis=2))
    return rows, ngrams[rows, places, -1]
