"""BLEU of translations, computed by sacrebleu.

    BLEU = BP exp(1/4 sum_n log p_n)      BP = 1 if c > r, else exp(1 - r / c)

p_n is the clipped precision of n-grams over the corpus. c and r are the numbers of words of the candidates
and of the references closest in length (Papineni et al. 2002; Xia et al. 2017, eq. 12). There is no
smoothing: if no n-gram of some length is correct, BLEU is 0. Words are compared as they are (one with a space
counts as several), unless the sentences are plain text, which sacrebleu's tokenizer 13a splits.

Scores are from 0 to 100, as papers print them. Those of :mod:`rnnlab.metrics.captions` have other scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.metrics.bleu import bleu_of
from rnnlab.metrics.bootstrap import Statistics
from rnnlab.metrics.scorers import TRANSLATION_SCORERS

Words = Sequence[str]

TranslationMetric = Literal["BLEU", "CS-k"]

# The scores of each metric of translations. CS-k is in rnnlab.metrics.keystrokes.
TRANSLATION_METRICS: dict[TranslationMetric, tuple[str, ...]] = {
    "BLEU": ("BLEU", "precision-1", "precision-2", "precision-3", "precision-4", "brevity", "length"),
    "CS-k": ("CS-1", "CS-2", "CS-3", "CS-4", "CS-5"),
}


class LengthScore(NamedTuple):
    """BLEU of the sentences whose lengths are in a range."""

    least: int
    most: int | None  # None: no longest one
    sentences: int
    bleu: float | None  # None without sentences

    def range(self) -> str:
        """The lengths in words, such as "10 to 19"."""
        return f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"


@dataclass(frozen=True)
class TranslationScores:
    """The result of :func:`corpus_bleu`.

    Attributes
    ----------
    corpus : dict of str to float
        BLEU; precision-1 to precision-4; brevity, which is 100 BP; and length, which is 100 c / r.
    signature : str
        sacrebleu's signature, which identifies the computation and should be quoted with the score.
    bleu_counts : (sentences, 10) list of list of int
        Those of :func:`~rnnlab.metrics.bleu.bleu_counts`.
    """

    corpus: dict[str, float]
    signature: str
    bleu_counts: list[list[int]]

    def statistics(self) -> dict[str, Statistics]:
        """The statistics of BLEU for :func:`~rnnlab.metrics.paired_bootstrap`."""
        bleu = bleu_of(self.bleu_counts)
        return {"BLEU": bleu._replace(score=lambda means: 100 * bleu.score(means))}

    def by_length(self, lengths: Sequence[int], starts: Sequence[int]) -> list[LengthScore]:
        """BLEU of short and of long sentences (Xia et al. 2017, figure 2).

        Parameters
        ----------
        lengths : sequence of int
            The length of each sentence, such as the number of words of its source.
        starts : sequence of int
            The shortest length of each range but the first, which starts at 0. A range ends where the next
            one starts; the last one has no end.

        Raises
        ------
        ValueError
            If there is not one length per sentence, or the starts are not positive and increasing.
        """
        if len(lengths) != len(self.bleu_counts):
            raise InputError(
                f"by_length: found {len(lengths)} lengths, expected one per sentence, {len(self.bleu_counts)}"
            )
        bounds = [0, *starts]
        if any(end <= start for start, end in pairwise(bounds)):
            raise InputError(f"by_length: starts is {list(starts)}, expected positive, increasing integers")
        places, found = np.searchsorted(bounds, lengths, side="right") - 1, []
        counts, score = self.statistics()["BLEU"]
        for k, start in enumerate(bounds):
            some = counts[places == k]
            # the score is a function of the mean over all sentences
            bleu = float(score(some.sum(axis=0, keepdims=True) / len(counts))[0]) if len(some) else None
            most = bounds[k + 1] - 1 if k < len(starts) else None
            found.append(LengthScore(start, most, len(some), bleu))
        return found


def corpus_bleu(
    candidates: Sequence[Words],
    references: Sequence[Sequence[Words]],
    *,
    tokenize: Literal["none", "13a"] = "none",
) -> TranslationScores:
    """BLEU of a corpus.

    Parameters
    ----------
    candidates : sequence of sequences of str
        The words of each translation.
    references : sequence of sequences of sequences of str
        The words of the references: at least one for each candidate, and the same number for all.
    tokenize : "none" or "13a"
        How sacrebleu splits the words further: not at all, or by 13a, the standard for written text.

    Raises
    ------
    ImportError
        If the extra ``translation`` is not installed.
    ValueError
        If there are no candidates, the lengths differ, or the candidates have different numbers of references
        or none.
    TypeError
        If a sentence is a string rather than a list of words.
    """
    if not candidates:
        raise InputError("corpus_bleu: candidates is empty, expected at least one translation")
    if len(candidates) != len(references):
        raise InputError(
            f"corpus_bleu: references are of {len(references)} sentences, "
            f"expected as many as candidates, {len(candidates)}"
        )
    for name, sentences in (("candidates", candidates), *(("references", some) for some in references)):
        for words in sentences:
            if isinstance(words, str):
                raise InputTypeError(f"corpus_bleu: {name} has {words!r}, expected a list of its words")
    most = len(references[0])
    for k, some in enumerate(references):
        if len(some) != most or not some:
            raise InputError(
                f"corpus_bleu: references[{k}] has {len(some)} sentences, expected {most or 'at least 1'}"
            )
    # force=True, because sacrebleu would warn about tokenised sentences
    metric = TRANSLATION_SCORERS.module("metrics").BLEU(tokenize=tokenize, smooth_method="none", force=True)
    streams = [[" ".join(some[number]) for some in references] for number in range(most)]
    texts = [" ".join(words) for words in candidates]
    score = metric.corpus_score(texts, streams)
    corpus = {"BLEU": score.score}
    corpus |= {f"precision-{n}": precision for n, precision in enumerate(score.precisions, 1)}
    corpus |= {"brevity": 100 * score.bp, "length": 100 * score.sys_len / max(1, score.ref_len)}
    signature = str(metric.get_signature())
    # effective_order changes the score of a sentence, which is not used, and not its counts
    by_sentence = TRANSLATION_SCORERS.module("metrics").BLEU(
        tokenize=tokenize, effective_order=True, force=True
    )
    parts = [
        by_sentence.sentence_score(text, list(some)) for text, *some in zip(texts, *streams, strict=True)
    ]
    counts = [[*part.counts, *part.totals, part.sys_len, part.ref_len] for part in parts]
    return TranslationScores({name: float(value) for name, value in corpus.items()}, signature, counts)
