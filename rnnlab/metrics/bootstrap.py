"""The difference of two models' scores on the same examples, by the paired bootstrap (Koehn 2004).

A score of a corpus is a function of the mean of some statistics of its N examples: the score of an image, or
the numbers of n-grams of a sentence. A bootstrap sample has N examples, drawn with replacement from those of
the corpus, the same for both models. The difference of the two scores is computed on many samples.

    interval    from the 2.5th to the 97.5th percentile of the differences
    p           min(1, 2 (1 + m) / (1 + samples)), where m is the smaller of the numbers of samples whose
                difference is at most 0, and at least 0

They describe the chance in the choice of the examples, not that of the training. The document frequencies of
CIDEr are those of the whole corpus in every sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError

ORDER = 4  # the longest n-grams of BLEU
_TINY, _SMALL = 1e-15, 1e-9  # what COCO's evaluation adds to the numbers of BLEU
_AT_ONCE = 100  # samples whose counts of examples are in memory at the same time


class Statistics(NamedTuple):
    """The statistics of a corpus, and the score that is a function of their mean."""

    examples: np.ndarray  # (N, K)
    score: Callable[[np.ndarray], np.ndarray]  # means (S, K) -> scores (S,)


class Difference(NamedTuple):
    """The score of the second model minus that of the first."""

    value: float  # of the corpus itself
    low: float  # the interval in which 95 % of the samples are
    high: float
    p: float  # the p-value of the hypothesis that there is no difference, two-sided


def mean_of(scores: Sequence[float] | np.ndarray) -> Statistics:
    """The statistics of a score that is a mean over examples."""
    return Statistics(np.asarray(scores, np.float64).reshape(-1, 1), lambda means: means[:, 0])


def bleu_of(
    counts: Sequence[Sequence[int]] | np.ndarray, order: int = ORDER, *, coco: bool = False
) -> Statistics:
    """The statistics of BLEU-n, from the counts (N, 10) of :func:`bleu_counts`.

    Without correct n-grams BLEU is 0, but with ``coco`` a small number: COCO's evaluation adds 1e-15 to the
    numbers of correct n-grams and 1e-9 to those of all n-grams.
    """
    counts = np.asarray(counts, np.float64)
    tiny, small = (_TINY, _SMALL) if coco else (0.0, 0.0)
    return Statistics(counts, lambda means: _bleu(means * len(counts), order, tiny, small))


def bleu_counts(candidate: Sequence[str], references: Sequence[Sequence[str]]) -> list[int]:
    """The numbers of which BLEU is made (Papineni et al. 2002), for one sentence.

    Parameters
    ----------
    candidate : sequence of str
    references : sequence of sequences of str
        At least one.

    Returns
    -------
    list of int
        The numbers of correct n-grams, clipped, for n from 1 to 4; the numbers of all n-grams of the
        candidate; its length; and the length of the closest reference, the shorter of two.

    Raises
    ------
    ValueError
        If there are no references.
    """
    if not references:
        raise InputError("bleu_counts: found no references, expected at least one")
    correct, total = [], []
    for n in range(1, ORDER + 1):
        found, allowed = _ngrams(candidate, n), Counter[tuple[str, ...]]()
        for reference in references:
            allowed |= _ngrams(reference, n)
        correct.append((found & allowed).total())
        total.append(found.total())
    closest = min((len(reference) for reference in references), key=lambda r: (abs(r - len(candidate)), r))
    return [*correct, *total, len(candidate), closest]


def paired_bootstrap(
    first: Statistics, second: Statistics, *, samples: int = 1000, rng: int | np.random.Generator = 0
) -> Difference:
    """The difference of two models' scores, with its interval and p-value.

    Parameters
    ----------
    first, second : Statistics
        Of two models on the same examples, in the same order.
    samples : int
        The number of bootstrap samples.
    rng : int or Generator
        Draws the samples.

    Raises
    ------
    TypeError
        If ``first`` or ``second`` are not Statistics.
    ValueError
        If there are no examples or samples, or the models have different numbers of examples.
    """
    for name, given in (("first", first), ("second", second)):
        if not isinstance(given, Statistics):
            raise InputTypeError(
                f"paired_bootstrap: {name} is a {type(given).__name__}, expected Statistics, such as "
                "mean_of(scores)"
            )
    N, others = len(first.examples), len(second.examples)
    if not N or N != others:
        raise InputError(
            f"paired_bootstrap: first has {N} examples and second {others}, expected the same number, at "
            "least 1"
        )
    if samples < 1:
        raise InputError(f"paired_bootstrap: samples is {samples}, expected an integer of at least 1")
    rng, found = np.random.default_rng(rng), []
    for start in range(0, samples, _AT_ONCE):
        shares = rng.multinomial(N, np.full(N, 1 / N), size=min(_AT_ONCE, samples - start)) / N
        found.append(_difference(first, second, shares))
    differences = np.concatenate(found)
    low, high = np.percentile(differences, (2.5, 97.5))
    fewer = min((differences <= 0).sum(), (differences >= 0).sum())
    value = _difference(first, second, np.full((1, N), 1 / N))[0]
    return Difference(float(value), float(low), float(high), float(min(1, 2 * (1 + fewer) / (1 + samples))))


def _difference(first: Statistics, second: Statistics, shares: np.ndarray) -> np.ndarray:
    """The difference of the scores for each row of shares (S, N) of the examples."""
    return second.score(shares @ second.examples) - first.score(shares @ first.examples)


def _bleu(sums: np.ndarray, order: int, tiny: float, small: float) -> np.ndarray:
    correct, total = sums[:, :order] + tiny, sums[:, ORDER : ORDER + order] + small
    length, closest = sums[:, 2 * ORDER] + tiny, sums[:, 2 * ORDER + 1] + small
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.exp(np.log(correct / total).mean(axis=1))
        brevity = np.exp(np.minimum(0, 1 - closest / length))
    return np.where((correct > 0).all(axis=1), precision * brevity, 0.0)


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[k : k + n]) for k in range(len(words) - n + 1))
