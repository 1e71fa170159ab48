"""Sampling: every token is drawn from the model's distribution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np

from rnnlab.decoding.constraints import Constraints
from rnnlab.decoding.greedy_search import decode_by
from rnnlab.decoding.search import (
    Hypothesis,
    StepModel,
    attention_of,
    check_count,
    check_numbers,
)
from rnnlab.decoding.state_rows import num_rows, repeated_rows
from rnnlab.layers.checks import as_generator
from rnnlab.ops import ops_for
from rnnlab.ops.arguments import normal_divisor
from rnnlab.options import Positive, Range, check_option
from rnnlab.types import Array


def sample(
    model: StepModel,
    source: Any,
    *,
    rng: np.random.Generator | int,
    count: int = 1,
    max_length: int = 30,
    min_length: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    forbid: Iterable[int] = (),
    no_repeat_ngram: int = 0,
    return_alignments: bool = False,
) -> list[list[Hypothesis]]:
    """Draw every token from the model's distribution, or from its most probable part.

    Parameters
    ----------
    model : StepModel
    source : anything
        The argument of ``model.start``, N rows.
    rng : numpy Generator or seed
        A sentence depends on the generator and on the row of its source, not on the other sources.
    count : int
        The number of sentences for each row of ``source``. The source is encoded once.
    max_length, min_length : int
        Maximum and minimum number of words in a sentence.
    temperature : float > 0
        Log-probabilities are divided by it. Below 1, probable words become more probable.
    top_k : int
        Draw from the k most probable tokens and any that are as probable as the k-th. 0 means all tokens.
    top_p : float in (0, 1]
        Draw from the nucleus (Holtzman et al. 2020): the smallest set of most probable tokens whose
        probabilities, after ``temperature`` and ``top_k``, sum to at least ``top_p``. Among equally probable
        tokens those with the lower numbers come first.
    forbid : tokens
        Tokens that are never drawn. If <END> is one, all sentences have ``max_length`` words.
    no_repeat_ngram : int
        N-grams of this length occur at most once in a sentence. 0 means no constraint.
    return_alignments : bool
        Whether hypotheses have an ``alignment``. The model needs ``attention``.

    Returns
    -------
    list of N lists of ``count`` Hypothesis
        ``log_prob`` is the model's own, at temperature 1. A sentence after which no token is allowed is
        returned unfinished.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.
    """
    constraints = Constraints(
        "sample",
        model,
        max_length=max_length,
        min_length=min_length,
        forbid=forbid,
        no_repeat_ngram=no_repeat_ngram,
    )
    rng = as_generator("sample", rng)
    check_option("sample", "temperature", Positive, temperature)
    check_option("sample", "top_p", Annotated[float, Range("(0, 1]")], top_p)
    check_count("sample", "top_k", top_k, 0)
    check_count("sample", "count", count, 1)
    attention = attention_of("sample", model, return_alignments)
    state = repeated_rows(model.start(source), count)
    N, seed = num_rows(state), int(rng.integers(2**63))

    def choose(log_probs: Array, sources: Array, step: int) -> tuple[Array, Array]:
        uniform = np.random.default_rng((seed, step)).random(N)[sources]
        check_numbers("sample", ops_for(log_probs).asnumpy(log_probs.max(axis=1)))
        if 0 < top_k < log_probs.shape[1] or top_p < 1:
            log_probs = _likely(ops_for(log_probs).asnumpy(log_probs), temperature, top_k, top_p)
        ops = ops_for(log_probs)
        tokens = ops.draw(log_probs, ops.asarray(uniform), temperature)
        return ops.asnumpy(tokens), ops.asnumpy(log_probs[ops.asarray(np.arange(len(tokens))), tokens])

    found = decode_by(model, state, constraints, attention, choose)
    return [found[row : row + count] for row in range(0, N, count)]


def _likely(log_probs: Array, temperature: float, top_k: int, top_p: float) -> Array:
    """A copy of log-probabilities (n, V), minus infinity for tokens outside ``top_k`` and the nucleus."""
    likely, V = log_probs.copy(), log_probs.shape[1]
    most = log_probs.max(axis=1, keepdims=True)
    if 0 < top_k < V:
        likely[log_probs < np.partition(log_probs, V - top_k, axis=1)[:, V - top_k, None]] = -np.inf
    if top_p < 1:
        with np.errstate(over="ignore", under="ignore"):
            probs = likely - np.where(most > -np.inf, most, 0)
            probs /= normal_divisor(temperature, probs.dtype)
            np.exp(probs, out=probs)
        likely[~_nucleus(probs, top_p)] = -np.inf
    return likely


def _nucleus(probs: Array, top_p: float) -> Array:
    """(n, V) bool: the smallest set of most probable tokens of each row that sum to at least ``top_p``."""
    V = probs.shape[1]
    ascending = np.sort(probs, axis=1)
    # the probability of each token and all less probable ones, summed from the smallest number on
    removed = np.cumsum(ascending, axis=1, dtype=np.float64)
    # equal probabilities may sum to slightly less than top_p
    rounding = 8 * np.finfo(probs.dtype).eps + V * np.finfo(np.float64).eps
    allowed = (1 - top_p + rounding) * removed[:, -1:]
    size = V - np.minimum((removed <= allowed).sum(axis=1, keepdims=True), V - 1)
    least = np.take_along_axis(ascending, V - size, axis=1)
    inside, equal = probs > least, probs == least
    inside |= equal & (np.cumsum(equal, axis=1) <= size - inside.sum(axis=1, keepdims=True))
    return inside
