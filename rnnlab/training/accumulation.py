"""Parts of a batch, whose gradients are added before one update: gradient accumulation, and several ranks.

Parts are contiguous rows with about the same number of tokens. A rank computes the gradients of its parts one
after another, with the activations of one part in memory. The model takes the size of the whole batch as
``part_of`` and divides each part's sums by it, so that losses and gradients of the parts add up to those of
the batch even where the parts differ in examples and tokens. K ranks with A parts each make the update of one
process with K A parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rnnlab.errors import InputError

Batch = tuple[Any, ...]


def num_examples(batch: Batch) -> int:
    """The number of examples in a batch, which is the length of each of its arrays.

    Raises
    ------
    ValueError
        If the lengths differ, or there is no array.
    """
    lengths = {len(array) for array in _arrays(batch)}
    if len(lengths) != 1:
        found = ", ".join(map(str, sorted(lengths))) or "none"
        raise InputError(f"the lengths of the arrays of a batch are {found}, expected one, of its examples")
    return lengths.pop()


def balanced(lengths: np.ndarray, count: int) -> list[slice]:
    """Split rows into ``count`` parts, in order, with about as many tokens each; at most one part per row.

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


def parts_of(batch: Batch, count: int) -> list[Batch]:
    """Split a batch into ``count`` parts of about equal size, in order; at most one part per example.

    Parameters
    ----------
    batch : tuple
        Arrays whose rows are examples, None, and tuples of these.
    count : int
        The number of parts.

    Returns
    -------
    list of tuple
        Each with the structure of the batch; its arrays are views.

    Raises
    ------
    ValueError
        As :func:`num_examples`.
    """
    rows_of_parts = balanced(np.ones(num_examples(batch), np.int64), count)
    return [_rows(batch, rows) for rows in rows_of_parts]


def _arrays(batch: Batch) -> Iterator[Any]:
    for entry in batch:
        if isinstance(entry, tuple):
            yield from _arrays(entry)
        elif entry is not None:
            yield entry


def _rows(entry: Any, rows: slice) -> Any:
    if isinstance(entry, tuple):
        return tuple(_rows(each, rows) for each in entry)
    return None if entry is None else entry[rows]
