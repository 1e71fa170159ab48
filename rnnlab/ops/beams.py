"""What the primitives of beam search read and write: partial sentences, finished ones, the rules of a step.

There are B beams with at most K sentences each. A step works on b of them, each with S partial sentences in
slots. A log-probability of minus infinity marks an empty slot.
"""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.types import Array

__all__ = ["GOING", "LARGEST", "OVER", "REFUSED", "BeamRules", "BeamStep", "Found"]

OVER, GOING, REFUSED = 0, 1, 2  # whether the search of a beam goes on
LARGEST = 1e-2  # of a log-probability in single precision, by rounding; larger ones are refused


class BeamStep(NamedTuple):
    """The partial sentences of b beams after a step."""

    beams: Array  # (b,) int64, the number of each beam
    status: Array  # (b,) int64: OVER, GOING, or REFUSED for log-probabilities that are NaN or too large
    totals: Array  # (b, S) float64, the log-probability of each partial sentence, the largest first
    words: Array  # (b, S) int64, its last word; 0 in an empty slot
    rows: Array  # (b, S) int64, the row of the log-probabilities that it continues
    largest: Array  # (b,) the largest log-probability that was looked at in each beam, NaN if one is


class Found(NamedTuple):
    """The K best finished sentences of each of B beams, best first, and the unfinished ones.

    A sentence is identified by its beam, its length, and its slot after the last word.
    """

    scores: Array  # (B, K) float64, minus infinity where there is none
    totals: Array  # (B, K) float64, log-probabilities
    open_totals: Array  # (B, K) float64, of the unfinished sentences of a beam that ended without others
    lengths: Array  # (B, K) int64, words
    slots: Array  # (B, K) int64
    counts: Array  # (B,) int64, how many sentences have finished
    open_lengths: Array  # (B,) int64


class BeamRules(NamedTuple):
    """The options of one step."""

    end_token: int
    length: int  # words before this step
    last: bool  # whether <END> is the only continuation
    norm: float  # the divisor of the log-probability of a sentence that ends at this step
    largest_norm: float  # that of the longest sentence
    n_best: int  # the search of a beam is over when no sentence can be better than this many
