"""One step of beam search: the best continuations of the sentences in each beam."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rnnlab.decoding.search import check_numbers
from rnnlab.ops import ops_for
from rnnlab.types import Array


class Continuations(NamedTuple):
    """The best continuations of b beams by one token, those of a beam in the order in which they were chosen.

    A total of minus infinity says that there is none.
    """

    ended: Array  # (b, K) log-probability of those among the K best that end
    ended_parents: Array  # (b, K) slots that they continue
    totals: Array  # (b, K) log-probability of the K best that go on
    parents: Array  # (b, K) slots that they continue
    words: Array  # (b, K)


def continuations(
    totals: Array, log_probs: Array, K: int, end_token: int, penalty: Array | None = None
) -> Continuations:
    """The continuations of the partial sentences in b beams.

    Parameters
    ----------
    totals : (b, slots)
        Log-probability of each sentence, minus infinity where a slot has none.
    log_probs : (b, slots, V)
        Of the next tokens; overwritten.
    K : int
        The size of the beam.
    end_token : int
    penalty : (b, V), optional
        Taken off a word's log-probability for the choice alone.

    Raises
    ------
    ValueError
        If the log-probabilities hold NaN.
    """
    b, slots, V = log_probs.shape
    ranked = log_probs if penalty is None else log_probs - penalty[:, None]
    # of one sentence's words, K at most go on, and its end may be more probable than they
    ops = ops_for(ranked)
    words, values = map(ops.asnumpy, ops.top(ranked.reshape(b * slots, V), K + 1))
    check_numbers("beam_search", values)
    words, values = words.reshape(b, slots, K + 1), values.reshape(b, slots, K + 1)
    gained = values
    if penalty is not None:
        gained = np.where(values > -np.inf, np.take_along_axis(log_probs, words, axis=2), -np.inf)

    # among equals it is the first word of the first sentence, as in greedy decoding
    candidates = b, slots * (K + 1)
    order = np.argsort(-(totals[:, :, None] + values).reshape(candidates), axis=1, kind="stable")
    totals = np.take_along_axis((totals[:, :, None] + gained).reshape(candidates), order, axis=1)
    words = np.take_along_axis(words.reshape(candidates), order, axis=1)
    parents = order // (K + 1)
    ends = words == end_token
    going_on = np.argsort(ends, axis=1, kind="stable")[:, :K]
    return Continuations(
        np.where(ends, totals, -np.inf)[:, :K],
        parents[:, :K],
        np.take_along_axis(np.where(ends, -np.inf, totals), going_on, axis=1),
        np.take_along_axis(parents, going_on, axis=1),
        np.take_along_axis(words, going_on, axis=1),
    )
