"""A step of beam search on NumPy, and the sentences along back pointers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rnnlab.ops.beams import (
    GOING,
    LARGEST,
    OVER,
    REFUSED,
    BeamRules,
    BeamStep,
    Found,
    check_step,
    check_words,
)
from rnnlab.ops.numpy.scores import top
from rnnlab.types import Array

Ends = tuple[Array, Array]  # (b, K) log-probabilities, minus infinity in an empty entry, and slots


def beam_step(
    log_probs: Array,
    before: BeamStep,
    found: Found,
    pointers: Array,
    rules: BeamRules,
    places: Array | None = None,
    penalty: Array | None = None,
) -> BeamStep:
    return step_by(top, log_probs, before, found, pointers, rules, places, penalty)


def beam_words(pointers: Array, beams: Array, lengths: Array, slots: Array) -> tuple[Array, Array]:
    check_words(pointers, beams, lengths, slots)
    longest = len(pointers)
    words = np.zeros((beams.size, longest), np.int64)
    path = np.empty((beams.size, longest + 1), np.int64)
    path[:, longest] = slots
    for t in reversed(range(longest)):
        path[:, t] = path[:, t + 1]
        rows = np.flatnonzero(lengths > t)
        places = beams[rows], path[rows, t + 1]
        words[rows, t] = pointers[t, 0][places]
        path[rows, t] = pointers[t, 1][places]
    return words, path


def step_by(
    top: Callable[[Array, int], tuple[Array, Array]],
    log_probs: Array,
    before: BeamStep,
    found: Found,
    pointers: Array,
    rules: BeamRules,
    places: Array | None,
    penalty: Array | None,
) -> BeamStep:
    """:func:`beam_step` with a given function that finds the largest scores."""
    check_step(log_probs, before, found, pointers, rules, places, penalty)
    S, K, V = before.totals.shape[1], pointers.shape[2], log_probs.shape[1]
    beams, status, totals = before.beams, before.status, before.totals
    log_probs = log_probs.reshape(-1, S, V)
    if places is None:
        places = np.arange(len(beams))
    else:
        beams, status, totals, log_probs = beams[places], status[places], totals[places], log_probs[places]
    going = status == GOING
    totals = np.where(going[:, None], totals, -np.inf)
    with np.errstate(invalid="ignore"):  # from log-probabilities that are refused
        if rules.last:
            largest, ends, open_totals, parents, words = _last(totals, log_probs, K, rules.end_token)
        else:
            largest, ends, open_totals, parents, words = _continuations(
                top, totals, log_probs, K, rules.end_token, penalty
            )
    largest[~going] = -np.inf
    _finish(found, beams, ends, rules)
    best = open_totals.max(axis=1)
    extended = best > -np.inf
    cut_off = np.flatnonzero(going & ~extended)
    found.open_totals[beams[cut_off], :S] = totals[cut_off]
    found.open_lengths[beams[cut_off]] = rules.length
    pointers[0, beams], pointers[1, beams] = words, parents
    # log-probabilities only decrease, and the norm of the longest sentence is the largest divisor
    can_improve = best / rules.largest_norm > found.scores[beams, min(rules.n_best, K) - 1]
    status = np.where(extended & can_improve & (found.counts[beams] < K), GOING, OVER)
    status[~(largest <= LARGEST)] = REFUSED
    return BeamStep(beams, status, open_totals, words, places[:, None] * S + parents, largest)


def _continuations(
    top: Callable[[Array, int], tuple[Array, Array]],
    totals: Array,
    log_probs: Array,
    K: int,
    end_token: int,
    penalty: Array | None,
) -> tuple[Array, Ends, Array, Array, Array]:
    """The largest log-probability, the K best continuations that end, and the K best others.

    A continuation is a log-probability, the slot that it continues, and a word.
    """
    b, S, V = log_probs.shape
    ranked = log_probs if penalty is None else log_probs - penalty[:, None]
    # of the V continuations of a sentence, at most K and <END> are needed; in total at least K are returned
    most = min(K + 1, max(V, -(-K // S)))
    words, values = (each.reshape(b, S, most) for each in top(ranked.reshape(b * S, V), most))
    gained = values
    if penalty is not None:
        gained = np.where(values > -np.inf, np.take_along_axis(log_probs, words, axis=2), -np.inf)

    # among equal ones, the first word of the first sentence is taken, as in greedy decoding
    candidates = b, S * most
    order = np.argsort(-(totals[:, :, None] + values).reshape(candidates), axis=1, kind="stable")
    rows = np.arange(b)[:, None]  # indexing with these takes half the time of take_along_axis for few beams
    found = (totals[:, :, None] + gained).reshape(candidates)[rows, order]
    words = words.reshape(candidates)[rows, order]
    parents = order // most
    ends = words == end_token
    others = np.argsort(ends, axis=1, kind="stable")[:, :K]
    open_totals = np.where(ends, -np.inf, found)[rows, others]
    empty = open_totals == -np.inf
    parents_of_others, words = parents[rows, others], words[rows, others]
    parents_of_others[empty] = words[empty] = 0
    largest = values[:, :, 0].max(axis=1)
    ended = np.where(ends, found, -np.inf)[:, :K]
    return largest, (ended, parents[:, :K]), open_totals, parents_of_others, words


def _last(totals: Array, log_probs: Array, K: int, end_token: int) -> tuple[Array, Ends, Array, Array, Array]:
    """The same if <END> is the only continuation."""
    b, S = totals.shape
    values = log_probs[:, :, end_token]
    slots = np.broadcast_to(np.arange(S), (b, S))
    nothing = np.zeros((b, K), np.int64)
    ends = totals + values, slots
    return values.max(axis=1), ends, np.full((b, K), -np.inf), nothing, nothing


def _finish(found: Found, beams: Array, ends: Ends, rules: BeamRules) -> None:
    """Add the sentences that ended to the best finished ones of their beams."""
    some = np.flatnonzero((ends[0] > -np.inf).any(axis=1))
    beams, totals, slots = beams[some], ends[0][some], ends[1][some]
    found.counts[beams] += (totals > -np.inf).sum(axis=1)
    scores = totals / rules.norm
    both = np.hstack([found.scores[beams], scores])
    order = np.argsort(-both, axis=1, kind="stable")[:, : found.scores.shape[1]]
    rows = np.arange(len(both))[:, None]
    found.scores[beams] = both[rows, order]
    for best, new in (
        (found.totals, totals),
        (found.lengths, np.full_like(slots, rules.length)),
        (found.slots, slots),
    ):
        best[beams] = np.hstack([best[beams], new])[rows, order]
