"""The rows of a decoding state: one for each source at first, then one for each partial sentence.

A state is an array whose first axis is the row, or a tuple or named tuple of states. Anything else in it,
such as None or an object with prepacked weights, belongs to all rows and is passed on unchanged; lists and
dicts of arrays are refused, because their rows would not be selected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops import device_of, ops_for
from rnnlab.types import Array

DecodingState = Any

# A search advances at most this many rows at a time, so that memory is bounded: scores (1024, V) on a CPU.
ROWS = 1024
TIMES_ON_GPU = 8  # as many rows on a GPU, where the time of a step hardly depends on their number


def select(state: DecodingState, rows: Array) -> DecodingState:
    """The rows ``rows`` of a state, in that order. ``rows`` may be on its device or in host memory."""
    if isinstance(state, tuple):
        parts = (select(part, rows) for part in state)
        return state._make(parts) if hasattr(state, "_make") else tuple(parts)
    if not hasattr(state, "shape"):
        return state
    return state[ops_for(rows).asnumpy(rows) if device_of(state) == "cpu" else ops_for(state).asarray(rows)]


def repeated_rows(state: DecodingState, count: int) -> DecodingState:
    """A state with each row ``count`` times, one copy after the other."""
    return state if count == 1 else select(state, np.repeat(np.arange(num_rows(state)), count))


def num_rows(state: DecodingState) -> int:
    """The number of rows of a state.

    Raises
    ------
    ValueError
        If the state has no array.
    TypeError
        If it has arrays in a list or a dict.
    """
    array = _first_array(state)
    if array is None:
        raise InputError("the state has no array in it, expected at least one with a row for each source")
    return int(array.shape[0])


def _first_array(state: DecodingState) -> Array | None:
    if isinstance(state, tuple):
        arrays = [array for part in state if (array := _first_array(part)) is not None]
        return arrays[0] if arrays else None
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, list) else ()
    if any(hasattr(part, "shape") for part in parts):
        raise InputTypeError(
            f"the state has a {type(state).__name__} of arrays in it, whose rows would not be selected; "
            "expected a tuple, or an object of a class for arrays that belong to all rows"
        )
    return state if hasattr(state, "shape") else None


def chunks(state: DecodingState, most: int, slots: int = 1) -> Iterator[tuple[Array, DecodingState]]:
    """Split a state into nearly equal parts: yield the rows and their state.

    Each row of a part becomes ``slots`` rows of the search. A part has at most ``most`` such rows in total,
    on a GPU eight times as many, and at least one row.
    """
    N = num_rows(state)
    on_cpu = device_of(_first_array(state)) == "cpu"
    size = max(1, (most if on_cpu else most * TIMES_ON_GPU) // slots)
    if 0 < N <= size:
        yield np.arange(N), state
    elif N:
        for rows in np.array_split(np.arange(N), math.ceil(N / size)):
            yield rows, select(state, rows)


def placed(values: Array, rows: Array, count: int) -> Array:
    """An array of ``count`` rows: ``values`` at ``rows``, zero elsewhere."""
    out = np.zeros((count, *values.shape[1:]), values.dtype)
    out[rows] = values
    return out
