"""Hypotheses as rows of tokens, in the form of the sentences that a model trains on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnlab.decoding.search import Hypothesis


def token_rows(
    model: Any, hypotheses: Sequence[Hypothesis], *, start: bool = False, max_length: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of sentences, with <END> where a sentence is finished.

    Parameters
    ----------
    model : StepModel
        Has ``start_token``, ``end_token`` and ``null_token``.
    hypotheses : sequence of N Hypothesis
    start : bool
        Whether rows begin with <START>.
    max_length : int, optional
        The search's maximum number of words. A sentence of that many words then counts as cut, and has no
        <END>, even if its next token was <END>.

    Returns
    -------
    tokens : (N, T) int64
        T is the length of the longest row, at least 1. Shorter rows end with <NULL>.
    lengths : (N,) int64
        The numbers of tokens, <START> and <END> included.
    """
    rows = [
        [model.start_token] * start
        + list(each.tokens)
        + [model.end_token] * (each.finished and len(each.tokens) != max_length)
        for each in hypotheses
    ]
    lengths = np.array([len(row) for row in rows], np.int64)
    tokens = np.full((len(rows), lengths.max(initial=1)), model.null_token, np.int64)
    tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = [token for row in rows for token in row]
    return tokens, lengths
