"""The steps of packed sequences: the rows of each step, and the states that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from rnnlab.errors import InputError, InputTypeError
from rnnlab.types import Array

__all__ = ["StepInputs", "Steps", "check_steps"]
Slices = tuple[slice, slice, slice]


class Steps(Sequence[Slices]):
    """The steps of a batch, each as three slices: its packed rows, the states before it and those after it.

    Slicing gives ``Steps`` again, with the same numbering of rows and states.

    Parameters
    ----------
    sequences : int
        The number of sequences, and of initial states.
    alive : (T,) integers
        The number of sequences that have each step: at least one, and never more than at the step before.

    Attributes
    ----------
    table : (T, 4) int64
        The same as numbers, read-only: first row, first state before, first state after, number of rows.

    Raises
    ------
    ValueError
        If ``alive`` is not such an array.
    """

    __slots__ = ("table",)

    def __init__(self, sequences: int, alive: ArrayLike) -> None:
        counts = np.asarray(alive)
        whole = counts.ndim == 1 and (not counts.size or np.issubdtype(counts.dtype, np.integer))
        if not whole or np.any(counts < 1) or np.any(np.diff(counts, prepend=sequences) > 0):
            raise InputError(
                f"Steps: alive is {alive!r}, expected an integer from 1 to {sequences} for each step, "
                "never more than for the step before"
            )
        table = np.empty((len(counts), 4), np.int64)
        row, before, after, count = table.T
        count[...] = counts
        np.cumsum(count[:-1], out=row[1:])
        row[:1] = before[:1] = 0
        after[...] = row + sequences
        before[1:] = after[:-1]
        self.table = table

    @property
    def rows(self) -> slice:
        """The packed rows of all of them."""
        if not len(self.table):
            return slice(0, 0)
        row, _, _, count = self.table[-1].tolist()
        return slice(int(self.table[0, 0]), row + count)

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, index: int) -> Slices: ...
    @overload
    def __getitem__(self, index: slice) -> Steps: ...
    def __getitem__(self, index: Any) -> Any:
        """A step, or consecutive steps."""
        if not isinstance(index, slice):
            return _as_slices(*self.table[index].tolist())
        if index.step not in (None, 1):
            raise InputError(f"Steps: the slice has step {index.step}, expected consecutive steps")
        part = Steps.__new__(Steps)
        part.table = self.table[index]
        return part

    def __iter__(self) -> Iterator[Slices]:
        return (_as_slices(*numbers) for numbers in self.table.tolist())

    def __reversed__(self) -> Iterator[Slices]:
        return (_as_slices(*numbers) for numbers in self.table[::-1].tolist())


class StepInputs(NamedTuple):
    """The factors of the pre-activations x Wx + b of consecutive steps."""

    x: Array  # (m, D), the packed rows of these steps only
    Wx: Array  # (D, G), from prepacked
    b: Array  # (G,)


def check_steps(function: str, steps: Any) -> None:
    """Check that an argument is Steps.

    Raises
    ------
    TypeError
        If it is not.
    """
    if not isinstance(steps, Steps):
        raise InputTypeError(f"{function}: steps is a {type(steps).__name__}, expected Steps")


def _as_slices(row: int, before: int, after: int, count: int) -> Slices:
    return slice(row, row + count), slice(before, before + count), slice(after, after + count)
