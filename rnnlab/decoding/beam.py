"""Beam search over a batch: length normalisation, n-best lists, diverse groups.

Length normalisation and n-best lists are those of Chen, Dong and Li (2016, 4.3), the other normalisation is
that of GNMT (Wu et al. 2016, eq. 14), diverse groups are those of Vijayakumar et al. (2016).

Each group of each source is a *beam*, B of them in all, with K slots for partial sentences. The rows of the
model's state are the slots of the beams that go on, beam by beam.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from rnnlab.decoding.back_pointers import Sentences
from rnnlab.decoding.beam_step import Continuations, continuations
from rnnlab.decoding.constraints import Constraints
from rnnlab.decoding.search import (
    ROWS,
    Array,
    Hypothesis,
    State,
    StepModel,
    attention_of,
    check_count,
    chunks,
    select,
)
from rnnlab.ops import ops_for

_NORMALISATIONS = {
    "power": lambda length, exponent: length**exponent,
    "gnmt": lambda length, exponent: ((5 + length) / 6) ** exponent,
}


def beam_search(
    model: StepModel,
    source: Any,
    *,
    beam_size: int = 3,
    max_length: int = 30,
    min_length: int = 0,
    length_penalty: float = 0.0,
    normalisation: str = "power",
    n_best: int = 1,
    num_groups: int = 1,
    diversity: float = 0.5,
    forbid: Iterable[int] = (),
    no_repeat_ngram: int = 0,
    return_alignments: bool = False,
) -> list[list[Hypothesis]]:
    """Keep the most probable partial sentences, ``beam_size`` of them for each source.

    At each step the best ``beam_size`` continuations of all partial sentences are found. Those among them
    that end are set aside; the best that go on fill the beam. A source is done when as many sentences have
    ended as the beam is wide, or when none that goes on can still beat the ones that ended. With
    ``beam_size`` 1 this is greedy decoding.

    Parameters
    ----------
    model : StepModel
    source : anything
        What ``model.start`` takes, N rows.
    beam_size : int
    max_length, min_length : int
        The most and the fewest words in a sentence.
    length_penalty : float >= 0
        A: sentences are ranked by log-probability over a length to this power. 0 is no normalisation.
    normalisation : "power" or "gnmt"
        With ``len``, the number of words and <END>, the score is log_prob / len^A, which is the mean where
        A = 1, or log_prob / ((5 + len) / 6)^A.
    n_best : int <= beam_size
        How many sentences to return for each source.
    num_groups : int
        The beam is divided into so many groups, each a beam search of its own. At every step, a group finds
        words that earlier groups have just chosen for the same source less probable.
    diversity : float >= 0
        By how much, in nats for each time a word was chosen. It has no part in ``log_prob`` and ``score``.
    forbid : tokens
        Never chosen.
    no_repeat_ngram : int
        So many words in a row come no second time in a sentence; 0 lets them.
    return_alignments : bool
        Whether hypotheses have an ``alignment``, which needs a model with ``attention``.

    Returns
    -------
    list of N lists of Hypothesis
        Up to ``n_best`` each (fewer only where fewer sentences exist, or several groups found the same), best
        score first. Where too few have ended, the best that have not are returned after them.

    Raises
    ------
    ValueError, TypeError
        If an option does not fit.
    """
    constraints = Constraints(
        "beam_search",
        model,
        max_length=max_length,
        min_length=min_length,
        forbid=forbid,
        no_repeat_ngram=no_repeat_ngram,
    )
    check_count("beam_search", "beam_size", beam_size, 1)
    check_count("beam_search", "num_groups", num_groups, 1)
    if beam_size % num_groups:
        raise ValueError(
            f"beam_search: num_groups is {num_groups}, expected a divisor of beam_size = {beam_size}"
        )
    check_count("beam_search", "n_best", n_best, 1, beam_size)
    for name, value in (("length_penalty", length_penalty), ("diversity", diversity)):
        if not 0 <= value < np.inf:
            raise ValueError(f"beam_search: {name} is {value}, expected 0 or more")
    if normalisation not in _NORMALISATIONS:
        raise ValueError(f"beam_search: normalisation is {normalisation!r}, expected 'power' or 'gnmt'")
    lengths = np.arange(1, constraints.max_length + 2, dtype=np.float64)  # words and <END>
    options = _Options(
        size=beam_size // num_groups,
        groups=num_groups,
        diversity=float(diversity),
        n_best=n_best,
        norms=_NORMALISATIONS[normalisation](lengths, length_penalty),
        constraints=constraints,
        attention=attention_of("beam_search", model, return_alignments),
    )
    return [
        hypotheses
        for sources, state in chunks(model.start(source), max(1, ROWS // beam_size))
        for hypotheses in _search(model, sources.size, state, options)
    ]


class _Options(NamedTuple):
    """What :func:`beam_search` was asked for."""

    size: int  # K, of one group
    groups: int  # G
    diversity: float
    n_best: int
    norms: Array  # (max_length + 1,) what the log-probability of 0, 1, ... words and <END> is divided by
    constraints: Constraints
    attention: Callable[[State], Array] | None


def _search(model: StepModel, sources: int, state: State, options: _Options) -> list[list[Hypothesis]]:
    """Search for the sentences of some sources, all at once."""
    K, groups, constraints, attention = options.size, options.groups, options.constraints, options.attention
    B = sources * groups
    if groups > 1:
        state = select(state, np.repeat(np.arange(sources), groups))
    sentences = Sentences(B, K, options.norms)
    active = np.arange(B)  # beams that go on, b of them
    totals = np.zeros((B, 1))  # (b, slots) log-probability of each partial sentence
    last = np.full(B, model.start_token)  # (b slots,)
    for t in range(constraints.max_length + 1):  # one more for <END> after the last word
        log_probs, state = model.advance(state, last)
        b, slots = totals.shape
        if attention is not None:
            weights = attention(state)
            sentences.attend(active, weights.reshape(b, slots, weights.shape[1]))
        history = sentences.history(active, slots, t) if constraints.no_repeat_ngram else None
        log_probs = constraints.apply(log_probs, t, history).reshape(b, slots, -1)
        step = _step(totals, log_probs, model.end_token, active, sentences.num_ended[active], options)

        best = step.totals.max(axis=1)
        extended = (best > -np.inf) & (t < constraints.max_length)
        sentences.end(active, t, step)
        sentences.extend(active, t, step, extended)
        # a log-probability only falls, and no sentence is longer than the longest
        worst = sentences.scores[active, min(options.n_best, K) - 1]
        can_improve = best / options.norms[-1] > worst
        going_on = np.flatnonzero(extended & can_improve & (sentences.num_ended[active] < K))
        if not going_on.size:
            break
        rows = going_on[:, None] * slots + step.parents[going_on]
        state = select(state, rows.reshape(-1))
        active, totals, last = active[going_on], step.totals[going_on], step.words[going_on].reshape(-1)
    return sentences.hypotheses(groups, options.n_best)


def _step(
    totals: Array, log_probs: Array, end_token: int, active: Array, num_ended: Array, options: _Options
) -> Continuations:
    """The continuations of all active beams; later groups of a source see what earlier ones chose."""
    K, groups = options.size, options.groups
    if groups == 1:
        return continuations(totals, log_probs, K, end_token)
    log_probs = ops_for(log_probs).asnumpy(log_probs)
    sources = active // groups
    chosen = np.zeros((sources[-1] + 1, log_probs.shape[2]), log_probs.dtype)  # how often each word was
    parts, order = [], []
    for group in range(groups):
        rows = np.flatnonzero(active % groups == group)
        penalty = options.diversity * chosen[sources[rows]]
        part = continuations(totals[rows], log_probs[rows], K, end_token, penalty)
        full = num_ended[rows] + (part.ended > -np.inf).sum(axis=1) >= K  # those beams go no further
        beam, slot = np.nonzero((part.totals > -np.inf) & ~full[:, None])
        np.add.at(chosen, (sources[rows][beam], part.words[beam, slot]), 1)
        parts.append(part)
        order.append(rows)
    back = np.argsort(np.concatenate(order))
    return Continuations(*(np.concatenate(arrays)[back] for arrays in zip(*parts, strict=True)))
