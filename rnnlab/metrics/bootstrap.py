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

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import as_generator
from rnnlab.options import Count, check_option

_ROUNDING = 1e-12  # the largest difference of equal scores, relative to them
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
    """The statistics of a score that is a mean over examples, from the scores (N,).

    Raises
    ------
    ValueError
        If the scores have more than one axis, or one is not finite.
    """
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 1:
        raise InputError(f"mean_of: scores have shape {scores.shape}, expected (N,)")
    if not np.isfinite(scores).all():
        raise InputError("mean_of: scores hold NaN or infinity, expected finite numbers")
    return Statistics(scores[:, None], lambda means: means[:, 0])


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
    rng : numpy Generator or seed
        Draws the samples.

    Raises
    ------
    TypeError
        If ``first`` or ``second`` are not Statistics, or ``rng`` is None.
    ValueError
        If there are no examples or samples, the models have different numbers of examples, or a statistic is
        not finite.
    """
    for name, given in (("first", first), ("second", second)):
        if not isinstance(given, Statistics):
            raise InputTypeError(
                f"paired_bootstrap: {name} is a {type(given).__name__}, expected Statistics, such as "
                "mean_of(scores)"
            )
        if not np.isfinite(given.examples).all():
            raise InputError(f"paired_bootstrap: {name} holds NaN or infinity, expected finite numbers")
    N, others = len(first.examples), len(second.examples)
    if not N or N != others:
        raise InputError(
            f"paired_bootstrap: first has {N} examples and second {others}, expected the same number, at "
            "least 1"
        )
    check_option("paired_bootstrap", "samples", Count, samples)
    rng, found = as_generator("paired_bootstrap", rng), []
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
    before, after = (each.score(shares @ each.examples) for each in (first, second))
    difference = after - before
    return np.where(np.abs(difference) <= _ROUNDING * np.abs(before), 0.0, difference)
