"""Parts of a batch whose gradients are summed for one update: gradient accumulation, and several ranks.

Parts are contiguous rows with about the same number of tokens. A rank computes the gradients of its parts one
after another, so that only one part's activations are in memory. The model takes the size of the whole batch
as ``part_of`` and divides each part's sums by it, so that losses and gradients of the parts add up to those
of the batch even if the parts differ in examples and tokens. K ranks with A parts each make the same update
as one process with K A parts.
"""

from __future__ import annotations

import numpy as np


def balanced(lengths: np.ndarray, count: int) -> list[slice]:
    """Split rows, in order, into ``count`` parts with about the same number of tokens, or one part per row.

    Parameters
    ----------
    lengths : (N,) integers
        The number of tokens of each row.
    count : int

    Returns
    -------
    list of slice
        The rows of each part, at least one.
    """
    N, lengths = len(lengths), np.asarray(lengths, np.int64)
    count = max(1, min(count, N))
    twice_middle = 2 * np.cumsum(lengths) - lengths  # a row belongs to the part that its middle is in
    ends = np.searchsorted(twice_middle * count, 2 * lengths.sum() * np.arange(1, count))
    bounds = [0]
    for part, end in enumerate(ends, 1):
        bounds.append(min(max(int(end), bounds[-1] + 1), N - (count - part)))
    return [slice(*each) for each in zip(bounds, [*bounds[1:], N], strict=True)]
