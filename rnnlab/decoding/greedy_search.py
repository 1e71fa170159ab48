"""Greedy decoding, and its loop with any choice of the next token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from rnnlab.decoding.constraints import Constraints
from rnnlab.decoding.search import (
    Hypothesis,
    StepModel,
    advanced,
    attention_of,
    check_numbers,
)
from rnnlab.decoding.state_rows import ROWS, DecodingState, chunks, placed, select
from rnnlab.ops import ops_for
from rnnlab.types import Array

Choose = Callable[[Array, Array, int], tuple[Array, Array]]


def greedy(
    model: StepModel,
    source: Any,
    *,
    max_length: int = 30,
    min_length: int = 0,
    forbid: Iterable[int] = (),
    no_repeat_ngram: int = 0,
    return_alignments: bool = False,
) -> list[list[Hypothesis]]:
    """Take the most probable token at every step.

    Parameters
    ----------
    model : StepModel
    source : anything
        The argument of ``model.start``, N rows.
    max_length, min_length : int
        Maximum and minimum number of words in a sentence.
    forbid : tokens
        Tokens that are never chosen, such as <UNK>, <START> and <NULL>. If <END> is one, all sentences have
        ``max_length`` words.
    no_repeat_ngram : int
        N-grams of this length occur at most once in a sentence. 0 means no constraint.
    return_alignments : bool
        Whether hypotheses have an ``alignment``. The model needs ``attention``.

    Returns
    -------
    list of N lists of one Hypothesis
        A sentence after which no token is allowed is returned unfinished.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.
    """
    constraints = Constraints(
        "greedy",
        model,
        max_length=max_length,
        min_length=min_length,
        forbid=forbid,
        no_repeat_ngram=no_repeat_ngram,
    )
    attention = attention_of("greedy", model, return_alignments)
    return [[found] for found in decode_by(model, model.start(source), constraints, attention, _best)]


def _best(log_probs: Array, sources: Array, step: int) -> tuple[Array, Array]:
    ops = ops_for(log_probs)
    tokens, values = map(ops.asnumpy, ops.top(log_probs, 1))
    return tokens[:, 0], values[:, 0]


def decode_by(
    model: StepModel,
    state: DecodingState,
    constraints: Constraints,
    attention: Callable[[DecodingState], Array] | None,
    choose: Choose,
) -> list[Hypothesis]:
    """Take one token after another, as ``choose`` says, from a state of N rows; one sentence for each.

    Parameters
    ----------
    model : StepModel
    state : decoding state
    constraints : Constraints
    attention : callable, optional
        From :func:`~rnnlab.decoding.search.attention_of`.
    choose : callable
        Given log-probabilities (n, V), the rows of their sources (n,) and the number of the step, it returns
        tokens (n,) and their log-probabilities (n,), as NumPy arrays.
    """
    return [
        hypothesis
        for sources, part in chunks(state, ROWS)
        for hypothesis in _decode_chunk(model, sources, part, constraints, attention, choose)
    ]


def _decode_chunk(
    model: StepModel,
    sources: Array,
    state: DecodingState,
    constraints: Constraints,
    attention: Callable[[DecodingState], Array] | None,
    choose: Choose,
) -> Iterator[Hypothesis]:
    n, max_length = len(sources), constraints.max_length
    tokens = np.empty((n, max_length + 1), np.intp)
    steps = np.zeros(n, np.intp)  # tokens of each sentence, <END> included
    finished = np.zeros(n, bool)
    totals = np.zeros(n)
    weights: list[Array] = []  # (n, L) of each step
    active = np.arange(n)  # sentences that are not finished
    last = np.full(n, model.start_token)
    for t in range(max_length + 1):  # one more for <END> after the last word
        log_probs, state = advanced(constraints.function, model, state, last)
        if attention is not None:
            weights.append(placed(attention(state), active, n))
        history = tokens[active, :t] if constraints.no_repeat_ngram else None
        log_probs = constraints.apply(log_probs, t, history)
        last, gained = choose(log_probs, sources[active], t)
        check_numbers(constraints.function, gained)
        ends = last == model.end_token
        taken = (gained > -np.inf) & (ends | (t < max_length))
        rows = active[taken]
        tokens[rows, t] = last[taken]
        totals[rows] += gained[taken]
        steps[rows] += 1
        finished[active[taken & ends]] = True
        unfinished = np.flatnonzero(taken & ~ends)
        if not unfinished.size:
            break
        if unfinished.size < active.size:
            active, last, state = active[unfinished], last[unfinished], select(state, unfinished)
    alignments = np.stack(weights, axis=1) if weights else None  # (n, steps, L)
    for k in range(n):
        words = tuple(tokens[k, : steps[k] - finished[k]].tolist())
        total = float(totals[k])
        alignment = None if alignments is None else alignments[k, : steps[k]]
        yield Hypothesis(words, total, total, bool(finished[k]), alignment)
