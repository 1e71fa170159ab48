"""The sentences of a beam search, stored as back pointers until the search is over."""

from __future__ import annotations

import numpy as np

from rnnlab.decoding.beam_step import BeamStep
from rnnlab.decoding.search import Hypothesis, placed
from rnnlab.types import Array


class BackPointers:
    """The sentences of B beams with K slots each.

    Each step stores, for each slot, the word that was appended and the slot of the sentence that it was
    appended to. A sentence is identified by its beam, its length and its slot after the last word.

    Parameters
    ----------
    beams : int
        B.
    size : int
        K.
    norms : (longest + 1,)
        The divisors of the log-probability of a sentence of 0, 1, ... words that give its score.
    """

    def __init__(self, beams: int, size: int, norms: Array) -> None:
        self.beams, self.size, self.norms = beams, size, norms
        self._words: list[Array] = []  # (B, K) of each step
        self._parents: list[Array] = []  # (B, K) slots before each step
        self._attention: list[Array] = []  # (B, K, L) of the slots before the step; one slot at the first
        # the K best finished sentences of each beam, best first
        self.num_ended = np.zeros(beams, np.intp)
        self.scores, self._ended_totals = np.full((2, beams, size), -np.inf)
        self._ended_lengths, self._ended_slots = np.zeros((2, beams, size), np.intp)
        # unfinished sentences as they were last extended; they are results only where the beam was cut off
        self._cut_off = np.zeros(beams, bool)
        self._open_totals = np.full((beams, size), -np.inf)
        self._open_totals[:, 0] = 0
        self._open_length = np.zeros(beams, np.intp)

    def attend(self, active: Array, weights: Array) -> None:
        """Store the attention (b, slots, L) of the sentences in the active beams (b,)."""
        self._attention.append(placed(weights, active, self.beams))

    def end(self, active: Array, length: int, step: BeamStep) -> None:
        """Add the sentences that ended after ``length`` words to the best finished ones of their beam."""
        some = np.flatnonzero((step.ended > -np.inf).any(axis=1))
        beams, totals, slots = active[some], step.ended[some], step.ended_parents[some]
        self.num_ended[beams] += (totals > -np.inf).sum(axis=1)
        scores = totals / self.norms[length]
        order = np.argsort(-np.hstack([self.scores[beams], scores]), axis=1, kind="stable")[:, : self.size]
        for best, new in (
            (self.scores, scores),
            (self._ended_totals, totals),
            (self._ended_lengths, np.full_like(slots, length)),
            (self._ended_slots, slots),
        ):
            best[beams] = np.take_along_axis(np.hstack([best[beams], new]), order, axis=1)

    def extend(self, active: Array, length: int, step: BeamStep, extended: Array) -> None:
        """Store the next word of each sentence in the active beams; cut off beams not ``extended`` (b,)."""
        self._words.append(placed(step.words, active, self.beams))
        self._parents.append(placed(step.parents, active, self.beams))
        self._open_totals[active[extended]] = step.totals[extended]
        self._open_length[active[extended]] = length + 1
        self._cut_off[active[~extended]] = True

    def history(self, active: Array, slots: int, length: int) -> Array:
        """The words of the sentences in the active beams, (b slots, length)."""
        beams, slot = np.repeat(active, slots), np.tile(np.arange(slots), active.size)
        return self._read(beams, np.full(beams.size, length), slot)[0]

    def hypotheses(self, groups: int, n_best: int) -> list[list[Hypothesis]]:
        """The ``n_best`` best finished sentences of each source, which has ``groups`` consecutive beams.

        Where there are fewer, the best unfinished sentences follow.
        """
        sources = self.beams // groups
        ended = self.scores > -np.inf
        ended[:, n_best:] = False
        unended = (self._open_totals > -np.inf) & self._cut_off[:, None]
        (ended_beams, _), (open_beams, open_slots) = np.nonzero(ended), np.nonzero(unended)

        beams = np.concatenate([ended_beams, open_beams])
        lengths = np.concatenate([self._ended_lengths[ended], self._open_length[open_beams]])
        totals = np.concatenate([self._ended_totals[ended], self._open_totals[unended]])
        words, path = self._read(beams, lengths, np.concatenate([self._ended_slots[ended], open_slots]))
        scores, finished = totals / self.norms[lengths], np.arange(beams.size) < ended_beams.size
        alignments = self._alignments(beams, path)

        found: list[dict[tuple[int, ...], Hypothesis]] = [{} for _ in range(sources)]
        for m in np.lexsort((-scores, ~finished, beams // groups)):
            best, tokens = found[beams[m] // groups], tuple(words[m, : lengths[m]].tolist())
            # a sentence of the maximum length may be finished and unfinished; groups may find the same one
            if len(best) < n_best and tokens not in best:
                alignment = None if alignments is None else alignments[m, : lengths[m] + finished[m]]
                best[tokens] = Hypothesis(
                    tokens, float(totals[m]), float(scores[m]), bool(finished[m]), alignment
                )
        return [list(best.values()) for best in found]

    def _read(self, beams: Array, lengths: Array, slots: Array) -> tuple[Array, Array]:
        """Follow the pointers of M sentences back from their slots after the last word.

        Returns
        -------
        words : (M, longest)
        path : (M, longest + 1)
            The slot after 0, 1, ... words; past the end of a sentence its last slot.
        """
        longest = int(lengths.max(initial=0))
        words = np.zeros((beams.size, longest), np.intp)
        path = np.empty((beams.size, longest + 1), np.intp)
        path[:, longest] = slots
        for t in reversed(range(longest)):
            path[:, t] = path[:, t + 1]
            rows = np.flatnonzero(lengths > t)
            places = beams[rows], path[rows, t + 1]
            words[rows, t] = self._words[t][places]
            path[rows, t] = self._parents[t][places]
        return words, path

    def _alignments(self, beams: Array, path: Array) -> Array | None:
        """The attention along the paths, (M, steps, L); None if it was not stored."""
        if not self._attention:
            return None
        steps = zip(self._attention, path.T, strict=False)
        return np.stack([weights[beams, slots] for weights, slots in steps], axis=1)
