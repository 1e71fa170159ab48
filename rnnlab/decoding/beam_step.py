"""A step of beam search: the best continuations of the sentences in each beam, or their ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rnnlab.decoding.search import check_numbers
from rnnlab.ops import ops_for
from rnnlab.types import Array


class BeamStep(NamedTuple):
    """The best continuations of b beams by one token, for each beam in the order in which they were chosen.

    A log-probability of minus infinity marks an empty entry.
    """

    ended: Array  # (b, K) log-probabilities of the continuations by <END> among the K best
    ended_parents: Array  # (b, K) the slots that they continue
    totals: Array  # (b, K) log-probabilities of the K best continuations by other tokens
    parents: Array  # (b, K) the slots that they continue
    words: Array  # (b, K)


def beam_step(
    totals: Array, log_probs: Array, K: int, end_token: int, penalty: Array | None = None
) -> BeamStep:
    """The best continuations of the partial sentences in b beams.

    Parameters
    ----------
    totals : (b, slots)
        Log-probability of each partial sentence, minus infinity in an empty slot.
    log_probs : (b, slots, V)
        Of the next token.
    K : int
        The size of the beam.
    end_token : int
    penalty : (b, V), optional
        Subtracted from the log-probabilities for the ranking only.

    Raises
    ------
    ValueError
        If the log-probabilities hold NaN.
    """
    b, slots, V = log_probs.shape
    ranked = log_probs if penalty is None else log_probs - penalty[:, None]
    # K continuations of one sentence are needed, and <END>; there are V, but K in all are returned
    most = min(K + 1, max(V, -(-K // slots)))
    ops = ops_for(ranked)
    words, values = map(ops.asnumpy, ops.top(ranked.reshape(b * slots, V), most))
    check_numbers("beam_search", values)
    words, values = words.reshape(b, slots, most), values.reshape(b, slots, most)
    gained = values
    if penalty is not None:
        gained = np.where(values > -np.inf, np.take_along_axis(log_probs, words, axis=2), -np.inf)

    # of equals, the first word of the first sentence is taken, as in greedy decoding
    candidates = b, slots * most
    order = np.argsort(-(totals[:, :, None] + values).reshape(candidates), axis=1, kind="stable")
    totals = np.take_along_axis((totals[:, :, None] + gained).reshape(candidates), order, axis=1)
    words = np.take_along_axis(words.reshape(candidates), order, axis=1)
    parents = order // most
    ends = words == end_token
    others = np.argsort(ends, axis=1, kind="stable")[:, :K]
    return BeamStep(
        np.where(ends, totals, -np.inf)[:, :K],
        parents[:, :K],
        np.take_along_axis(np.where(ends, -np.inf, totals), others, axis=1),
        np.take_along_axis(parents, others, axis=1),
        np.take_along_axis(words, others, axis=1),
    )


def last_step(totals: Array, log_probs: Array, end_token: int) -> BeamStep:
    """The continuations of the partial sentences in b beams by <END> alone.

    Parameters
    ----------
    totals : (b, K)
        Log-probability of each partial sentence, minus infinity in an empty slot.
    log_probs : (b, K, V)
        Of the next token.
    end_token : int

    Raises
    ------
    ValueError
        If the log-probabilities hold NaN.
    """
    ends = log_probs[:, :, end_token]
    ends = ops_for(ends).asnumpy(ends)
    check_numbers("beam_search", ends)
    ended, slots = totals + ends, np.broadcast_to(np.arange(totals.shape[1]), totals.shape)
    return BeamStep(ended, slots, np.full(totals.shape, -np.inf), slots, np.full(totals.shape, end_token))
