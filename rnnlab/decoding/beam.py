"""Beam search over a batch, with length normalisation and n-best lists (Chen, Dong and Li 2016, 4.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rnnlab.decoding.search import Array, Hypothesis, StepModel, checked, forbidden, num_rows, select


def beam_search(
    model: StepModel,
    source: Any,
    *,
    beam_size: int = 3,
    max_length: int = 30,
    length_penalty: float = 0.0,
    n_best: int = 1,
    forbid: Iterable[int] = (),
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
    max_length : int
        The most words in a sentence.
    length_penalty : float >= 0
        Sentences are ranked by log-probability over (number of words + 1) to this power: 0 is no
        normalisation, 1 is the mean over the words and <END>.
    n_best : int <= beam_size
        How many sentences to return for each source.
    forbid : tokens
        Never chosen.

    Returns
    -------
    list of N lists of Hypothesis
        Up to ``n_best`` each (fewer only where fewer sentences exist), best score first. Where too few have
        ended, the best that have not are returned after them.

    Raises
    ------
    ValueError
        If an option does not fit.
    """
    tokens = checked("beam_search", model, max_length, forbid)
    if beam_size < 1:
        raise ValueError(f"beam_search: beam_size is {beam_size}, expected at least 1")
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"beam_search: n_best is {n_best}, expected 1 to beam_size = {beam_size}")
    if not length_penalty >= 0:
        raise ValueError(f"beam_search: length_penalty is {length_penalty}, expected 0 or more")

    state = model.start(source)
    N = num_rows(state)
    beams = [_Beam(beam_size, n_best, max_length, length_penalty) for _ in range(N)]
    searching = np.arange(N)
    totals = np.zeros((N, 1))  # (sources, K) log-probability of each partial sentence
    last = np.full(N, model.start_token)
    for _ in range(max_length + 1):  # one more for <END> after the last word
        if not searching.size:
            break
        log_probs, state = model.advance(state, last)
        best, parents, words = _best_continuations(totals, forbidden(log_probs, tokens), 2 * beam_size)
        going_on = [
            beams[n].extend(best[k], parents[k], words[k], model.end_token) for k, n in enumerate(searching)
        ]
        keep = [k for k, n in enumerate(searching) if not beams[n].done]
        K = totals.shape[1]
        searching = searching[keep]
        chosen = np.array([going_on[k] for k in keep], dtype=np.intp).reshape(len(keep), beam_size)
        rows = np.arange(len(keep))[:, None]
        best, parents, words = best[keep], parents[keep], words[keep]
        totals = best[rows, chosen]
        last = words[rows, chosen].reshape(-1)
        state = select(
            state, (np.array(keep, dtype=np.intp)[:, None] * K + parents[rows, chosen]).reshape(-1)
        )
    return [beam.results() for beam in beams]


def _best_continuations(totals: Array, log_probs: Array, count: int) -> tuple[Array, Array, Array]:
    """The ``count`` best (total, parent, word) of each source, best first, each (sources, count).

    Among equals it is the first word of the first parent, as in greedy decoding. Where there are fewer
    continuations, the list is filled up with impossible ones (total minus infinity).
    """
    sources, K = totals.shape
    V = log_probs.shape[1]
    scores = (totals[:, :, None] + log_probs.reshape(sources, K, V)).reshape(sources, K * V)
    rows = np.arange(sources)
    best, top = np.empty((sources, count)), np.empty((sources, count), dtype=np.intp)
    for rank in range(count):  # few passes; a partition is not faster, and picks any of several equals
        top[:, rank] = scores.argmax(axis=1)
        best[:, rank] = scores[rows, top[:, rank]]
        scores[rows, top[:, rank]] = -np.inf
    return best, top // V, top % V


class _Beam:
    """The partial and the ended sentences of one source."""

    def __init__(self, size: int, n_best: int, max_length: int, length_penalty: float) -> None:
        self.size, self.n_best, self.max_length, self.length_penalty = (
            size,
            n_best,
            max_length,
            length_penalty,
        )
        self.sentences: list[tuple[int, ...]] = [()]
        self.totals = [0.0]
        self.ended: list[Hypothesis] = []
        self.done = False

    def extend(self, totals: Array, parents: Array, words: Array, end_token: int) -> list[int]:
        """Take the continuations, best first; return which of them go on, ``size`` of them."""
        going_on: list[int] = []
        length = len(self.sentences[0])
        for rank in range(len(totals)):
            if words[rank] != end_token:
                going_on.append(rank)
            elif rank < self.size and totals[rank] > -np.inf:
                self.ended.append(self._hypothesis(self.sentences[parents[rank]], float(totals[rank]), True))
        going_on = going_on[: self.size]
        going_on += [len(totals) - 1] * (self.size - len(going_on))  # impossible ones, total minus infinity
        if length < self.max_length:
            self.sentences = [(*self.sentences[parents[rank]], int(words[rank])) for rank in going_on]
            self.totals = [float(totals[rank]) for rank in going_on]
        self.done = length >= self.max_length or len(self.ended) >= self.size or not self._can_improve()
        return going_on

    def _can_improve(self) -> bool:
        if len(self.ended) < self.n_best:
            return max(self.totals) > -np.inf
        worst = sorted((h.score for h in self.ended), reverse=True)[self.n_best - 1]
        # a log-probability only falls, and no sentence is longer than the longest
        return max(self.totals) / (self.max_length + 1) ** self.length_penalty > worst

    def _hypothesis(self, tokens: tuple[int, ...], total: float, finished: bool) -> Hypothesis:
        return Hypothesis(tokens, total, total / (len(tokens) + 1) ** self.length_penalty, finished)

    def results(self) -> list[Hypothesis]:
        """The best sentences that ended, then, where they are too few, the best that did not."""
        ended = sorted(self.ended, key=lambda h: -h.score)[: self.n_best]
        found = {h.tokens for h in ended}  # the longest sentences may be among both
        unfinished = [
            self._hypothesis(tokens, total, False)
            for tokens, total in zip(self.sentences, self.totals, strict=True)
            if total > -np.inf and tokens not in found
        ]
        unfinished.sort(key=lambda h: -h.score)
        return ended + unfinished[: self.n_best - len(ended)]
