"""Greedy decoding and sampling, one token after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

import numpy as np

from rnnlab.decoding.constraints import Constraints
from rnnlab.decoding.search import (
    ROWS,
    DecodingState,
    Hypothesis,
    StepModel,
    advanced,
    attention_of,
    check_count,
    check_numbers,
    chunks,
    num_rows,
    placed,
    select,
)
from rnnlab.errors import InputTypeError
from rnnlab.ops import ops_for
from rnnlab.ops.arguments import normal_divisor
from rnnlab.options import Positive, Range, check_option
from rnnlab.types import Array

# (log-probabilities (n, V); sources (n,); step) -> (tokens, log-probabilities), (n,)
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
        Tokens that are never chosen, such as <UNK>, <START> and <NULL>.
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
    return [[found] for found in _decode(model, model.start(source), constraints, attention, _best)]


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
        Tokens that are never drawn.
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
    if isinstance(rng, bool) or not isinstance(rng, np.random.Generator | int | np.integer):
        raise InputTypeError(f"sample: rng is {rng!r}, expected a numpy Generator or a seed")
    if not isinstance(rng, np.random.Generator):
        check_count("sample", "rng", int(rng), 0)
    rng = np.random.default_rng(rng)
    check_option("sample", "temperature", Positive, temperature)
    check_option("sample", "top_p", Annotated[float, Range("(0, 1]")], top_p)
    check_count("sample", "top_k", top_k, 0)
    check_count("sample", "count", count, 1)
    attention = attention_of("sample", model, return_alignments)
    state = model.start(source)
    if count > 1:
        state = select(state, np.repeat(np.arange(num_rows(state)), count))
    N, seed = num_rows(state), int(rng.integers(2**63))

    def choose(log_probs: Array, sources: Array, step: int) -> tuple[Array, Array]:
        uniform = np.random.default_rng((seed, step)).random(N)[sources]
        check_numbers("sample", ops_for(log_probs).asnumpy(log_probs.max(axis=1)))
        if 0 < top_k < log_probs.shape[1] or top_p < 1:
            log_probs = _likely(ops_for(log_probs).asnumpy(log_probs), temperature, top_k, top_p)
        ops = ops_for(log_probs)
        tokens = ops.draw(log_probs, ops.asarray(uniform), temperature)
        return ops.asnumpy(tokens), ops.asnumpy(log_probs[ops.asarray(np.arange(len(tokens))), tokens])

    found = _decode(model, state, constraints, attention, choose)
    return [found[row : row + count] for row in range(0, N, count)]


def _best(log_probs: Array, sources: Array, step: int) -> tuple[Array, Array]:
    ops = ops_for(log_probs)
    tokens, values = map(ops.asnumpy, ops.top(log_probs, 1))
    return tokens[:, 0], values[:, 0]


def _likely(log_probs: Array, temperature: float, top_k: int, top_p: float) -> Array:
    """A copy of log-probabilities (n, V), minus infinity for tokens outside ``top_k`` and the nucleus."""
    likely, V = log_probs.copy(), log_probs.shape[1]
    most = log_probs.max(axis=1, keepdims=True)
    if 0 < top_k < V:
        likely[log_probs < np.partition(log_probs, V - top_k, axis=1)[:, V - top_k, None]] = -np.inf
    if top_p < 1:
        with np.errstate(over="ignore"):
            probs = likely - np.where(most > -np.inf, most, 0)
            probs /= normal_divisor(temperature, probs.dtype)
        likely[~_nucleus(np.exp(probs, out=probs), top_p)] = -np.inf
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


def _decode(
    model: StepModel,
    state: DecodingState,
    constraints: Constraints,
    attention: Callable[[DecodingState], Array] | None,
    choose: Choose,
) -> list[Hypothesis]:
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
