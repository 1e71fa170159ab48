"""Parts of a batch, as gradient accumulation has them."""

from __future__ import annotations

import numpy as np

from rnnlab.training.accumulation import balanced


def parts_of(batch, count):
    """A tuple of arrays, None and such tuples in at most ``count`` parts of about as many rows."""
    return [rows_of(batch, rows) for rows in balanced(np.ones(num_rows(batch), int), count)]


def num_rows(entry):
    return num_rows(entry[0]) if isinstance(entry, tuple) else len(entry)


def rows_of(entry, rows):
    if isinstance(entry, tuple):
        return tuple(rows_of(each, rows) for each in entry)
    return None if entry is None else entry[rows]
