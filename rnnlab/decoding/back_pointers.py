"""The sentences of a beam search, stored as back pointers until the search is over."""

from __future__ import annotations

import numpy as np

from rnnlab.decoding.search import Hypothesis
from rnnlab.decoding.state_rows import placed
from rnnlab.ops import Primitives
from rnnlab.ops.beams import GOING, BeamStep, Found
from rnnlab.types import Array

_STEPS = 32  # number of steps for which memory is allocated initially


class BackPointers:
    """The sentences of B beams with K slots each, in the memory of a library.

    Each step stores, for each slot, the word that was appended and the slot of the sentence that it was
    appended to. A sentence is identified by its beam, its length and its slot after the last word.

    Parameters
    ----------
    ops : Primitives
        The primitives of the arrays' library.
    beams : int
        B.
    size : int
        K.
    norms : (longest + 1,)
        The divisors of the log-probability of a sentence of 0, 1, ... words that give its score.

    Attributes
    ----------
    start : BeamStep
        The empty sentence of each beam, before the first step.
    found : Found
        Updated by each step.
    """

    def __init__(self, ops: Primitives, beams: int, size: int, norms: Array) -> None:
        self._ops, self._beams, self._norms = ops, beams, norms
        # arrays of one shape are parts of one array, so that fewer are copied to the device
        scores, totals, open_totals = ops.asarray(np.full((3, beams, size), -np.inf))
        lengths, slots = ops.asarray(np.zeros((2, beams, size), np.int64))
        rows = np.zeros((5, beams), np.int64)
        rows[2], rows[3] = np.arange(beams), GOING
        counts, open_lengths, numbers, status, words = ops.asarray(rows)
        self.found = Found(scores, totals, open_totals, lengths, slots, counts, open_lengths)
        empty = ops.zeros((beams, 1))
        self.start = BeamStep(numbers, status, empty, words[:, None], numbers[:, None], empty[:, 0])
        self._pointers = ops.empty((_STEPS, 2, beams, size), np.int64)
        self._attention: list[Array] = []  # (B, K, L) of the slots before each step; (B, 1, L) at the first

    def of(self, step: int) -> Array:
        """Memory for the pointers (2, B, K) of a step: words, and slots before the step."""
        if step == len(self._pointers):
            longer = self._ops.empty((2 * step, *self._pointers.shape[1:]), np.int64)
            longer[:step] = self._pointers
            self._pointers = longer
        return self._pointers[step]

    def attend(self, active: Array, weights: Array) -> None:
        """Store the attention (b, slots, L) of the sentences in the active beams (b,)."""
        self._attention.append(placed(weights, active, self._beams))

    def history(self, active: Array, slots: int, length: int) -> Array:
        """The words of the sentences in the active beams, (b slots, length)."""
        beams, slot = np.repeat(active, slots), np.tile(np.arange(slots), active.size)
        return self._words(beams, np.full(beams.size, length), slot)[0]

    def hypotheses(self, groups: int, n_best: int) -> list[list[Hypothesis]]:
        """The ``n_best`` best finished sentences of each source, which has ``groups`` consecutive beams.

        If there are fewer, the best unfinished sentences of beams with fewer than K finished ones follow.
        """
        all_scores, all_totals, open_totals, all_lengths, slots, _, open_lengths = map(
            self._ops.asnumpy, self.found
        )
        ended = all_scores > -np.inf
        # a full beam may have dropped the finished form of a sentence that is open
        unended = (open_totals > -np.inf) & ~ended.all(axis=1, keepdims=True)
        ended[:, n_best:] = False
        (ended_beams, _), (open_beams, open_slots) = np.nonzero(ended), np.nonzero(unended)

        beams = np.concatenate([ended_beams, open_beams])
        lengths = np.concatenate([all_lengths[ended], open_lengths[open_beams]])
        totals = np.concatenate([all_totals[ended], open_totals[unended]])
        words, path = self._words(beams, lengths, np.concatenate([slots[ended], open_slots]))
        scores, finished = totals / self._norms[lengths], np.arange(beams.size) < ended_beams.size
        alignments = self._alignments(beams, path) if self._attention else None

        found: list[dict[tuple[int, ...], Hypothesis]] = [{} for _ in range(self._beams // groups)]
        order = np.lexsort((-scores, ~finished, beams // groups))
        words, lengths = words[order], lengths[order]
        joined = words[np.arange(words.shape[1]) < lengths[:, None]].tolist()  # one sentence after another
        in_order = (each[order] for each in (beams // groups, totals, scores, finished))
        lists = [each.tolist() for each in (np.cumsum(lengths), lengths, order, *in_order)]
        for stop, length, m, source, total, score, end in zip(*lists, strict=True):
            best, sentence = found[source], tuple(joined[stop - length : stop])
            # a sentence of the maximum length may occur finished and unfinished, and several groups may find
            # it
            if len(best) < n_best and sentence not in best:
                alignment = None if alignments is None else alignments[m, : length + end]
                best[sentence] = Hypothesis(sentence, total, score, end, alignment)
        return [list(best.values()) for best in found]

    def _words(self, beams: Array, lengths: Array, slots: Array) -> tuple[Array, Array]:
        """The result of :meth:`~rnnlab.ops.Primitives.beam_words`, with the words in host memory."""
        indices = self._ops.asarray(np.stack([beams, lengths, slots]).astype(np.int64, copy=False))
        words, path = self._ops.beam_words(self._pointers[: int(lengths.max(initial=0))], *indices)
        return self._ops.asnumpy(words), path

    def _alignments(self, beams: Array, path: Array) -> Array:
        """The attention along the paths, (M, steps, L)."""
        steps = zip(self._attention, self._ops.asnumpy(path).T, strict=False)
        return np.stack([weights[beams, slots] for weights, slots in steps], axis=1)
