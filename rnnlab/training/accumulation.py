"""Gradient accumulation: a batch in parts, whose gradients are added before the one update.

Only the activations of one part exist at a time. A model that is told how large the whole batch is, as
``part_of``, divides each part's sums by the whole's numbers; losses and gradients then just add up, however
the parts differ in examples and tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Batch = tuple[Any, ...]


def num_examples(batch: Batch) -> int:
    """The examples of a batch: the length of all its arrays.

    Raises
    ------
    ValueError
        If they differ, or there is no array.
    """
    lengths = {len(array) for array in _arrays(batch)}
    if len(lengths) != 1:
        found = ", ".join(map(str, sorted(lengths))) or "none"
        raise ValueError(f"the lengths of the arrays of a batch are {found}, expected one, of its examples")
    return lengths.pop()


def parts_of(batch: Batch, count: int) -> list[Batch]:
    """A batch in ``count`` parts of about equal size, in its order; in as many as it has examples if fewer.

    Parameters
    ----------
    batch : tuple
        Of arrays with an example a row, of None, and of tuples of such.
    count : int

    Returns
    -------
    list of tuple
        Of views, as the batch is made up.

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
