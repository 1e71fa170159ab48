"""The maximum over a set of vectors, and the multi-label margin loss, on NumPy."""

from __future__ import annotations

import numpy as np

from rnnlab.ops.arguments import checked
from rnnlab.types import Array


@checked
def max_pool(x: Array, values: Array) -> Array:
    slots = x.argmax(axis=1)  # the first of equal numbers; NaN counts as the largest
    values[...] = np.take_along_axis(x, slots[:, None], axis=1)[:, 0]
    return slots


@checked
def max_pool_gradient(dvalues: Array, slots: Array, dx: Array) -> None:
    dx.fill(0)
    np.put_along_axis(dx, slots[:, None], dvalues[:, None], axis=1)


@checked
def multilabel_margin(scores: Array, words: Array, scale: float, dscores: Array) -> Array:
    (M, K), rows = words.shape, np.arange(len(words))
    losses, counts, others = (
        np.zeros(M, scores.dtype),
        np.zeros(scores.shape, scores.dtype),
        ~_is_in(words, scores),
    )
    for k in range(K):  # one column of words at a time, so that no array is larger than the scores
        word = np.maximum(words[:, k], -1)  # those below 0 are no words
        new = (word >= 0) & (words[:, :k] != word[:, None]).all(axis=1)
        gaps = scores + (1 - scores[rows, word])[:, None]
        active = ~(gaps <= 0) & others & new[:, None]  # NaN is active, so that it reaches the loss
        losses += np.where(active, gaps, 0).sum(axis=1)
        counts += active
        counts[rows[new], word[new]] -= active[new].sum(axis=1)
    np.multiply(counts, scale, out=dscores)
    return losses


def _is_in(words: Array, scores: Array) -> Array:
    """Whether each column of a row is one of the row's words, (M, V)."""
    found = np.zeros(scores.shape, bool)
    rows, places = np.nonzero(words >= 0)
    found[rows, words[rows, places]] = True
    return found
