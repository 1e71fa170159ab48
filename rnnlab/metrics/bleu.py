"""BLEU (Papineni et al. 2002), from counts for each sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.metrics.bootstrap import Statistics
from rnnlab.options import Range, check_option

ORDER = 4  # the longest n-grams
_TINY, _SMALL = 1e-15, 1e-9  # what COCO's evaluation adds to the numbers


def bleu_counts(candidate: Sequence[str], references: Sequence[Sequence[str]]) -> list[int]:
    """The numbers of which BLEU is made, for one sentence.

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
    TypeError
        If a sentence is a string.
    """
    if not references:
        raise InputError("bleu_counts: found no references, expected at least one")
    for words in (candidate, references, *references):
        if isinstance(words, str):
            raise InputTypeError(f"bleu_counts: found {words!r}, expected a list of words")
    correct, total = [], []
    for n in range(1, ORDER + 1):
        found, allowed = _ngrams(candidate, n), Counter[tuple[str, ...]]()
        for reference in references:
            allowed |= _ngrams(reference, n)
        correct.append((found & allowed).total())
        total.append(found.total())
    closest = min((len(reference) for reference in references), key=lambda r: (abs(r - len(candidate)), r))
    return [*correct, *total, len(candidate), closest]


def bleu_of(
    counts: Sequence[Sequence[int]] | np.ndarray, order: int = ORDER, *, coco: bool = False
) -> Statistics:
    """The statistics of BLEU-n, from the counts (N, 10) of :func:`bleu_counts`.

    Without correct n-grams BLEU is 0, but with ``coco`` a small number: COCO's evaluation adds 1e-15 to the
    numbers of correct n-grams and 1e-9 to those of all n-grams.

    Raises
    ------
    ValueError
        If the counts have another shape, or the order is not between 1 and 4.
    """
    counts = np.asarray(counts, np.float64)
    if counts.ndim != 2 or counts.shape[1] != 2 * ORDER + 2:
        raise InputError(f"bleu_of: counts have shape {counts.shape}, expected (N, {2 * ORDER + 2})")
    check_option("bleu_of", "order", Annotated[int, Range(f"[1, {ORDER}]")], order)
    tiny, small = (_TINY, _SMALL) if coco else (0.0, 0.0)
    return Statistics(counts, lambda means: _bleu(means * len(counts), order, tiny, small))


def brevity(length: float | np.ndarray, closest: float | np.ndarray) -> np.ndarray:
    """The penalty, from 0 to 1, on candidates with fewer words in all than the closest references."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        return np.exp(np.minimum(0, 1 - np.divide(closest, length)))


def _bleu(sums: np.ndarray, order: int, tiny: float, small: float) -> np.ndarray:
    correct, total = sums[:, :order] + tiny, sums[:, ORDER : ORDER + order] + small
    length, closest = sums[:, 2 * ORDER] + tiny, sums[:, 2 * ORDER + 1] + small
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.exp(np.log(correct / total).mean(axis=1))
    return np.where((correct > 0).all(axis=1), precision * brevity(length, closest), 0.0)


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[k : k + n]) for k in range(len(words) - n + 1))
