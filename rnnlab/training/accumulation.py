"""Gradient accumulation: a batch is split into parts, whose gradients are added before one update.

Only the activations of one part are in memory at a time. The model takes the size of the whole batch as
``part_of`` and divides each part's sums by it, so that losses and gradients of the parts add up to those of
the batch even where the parts differ in examples and tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
        raise ValueError(f"the lengths of the arrays of a batch are {found}, expected one, of its examples")
    return lengths.pop()


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
    N = num_examples(batch)
    count = max(1, min(count, N))
    return [_rows(batch, slice(part * N // count, (part + 1) * N // count)) for part in range(count)]


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
