"""The base class of data sets: splits by name, and epochs in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from rnnlab.errors import InputError, InputTypeError, MissingDataError
from rnnlab.layers.checks import as_array, check_rng
from rnnlab.types import Indices

Split = TypeVar("Split")


class SplitData(Generic[Split]):
    """A data set by splits.

    Attributes
    ----------
    name : str
        The name of the data set, for messages.
    splits : dict of str to split
    """

    name: str
    splits: dict[str, Split]

    def split(self, name: str) -> Split:
        """The split of that name.

        Raises
        ------
        KeyError
            If there is none.
        """
        try:
            return self.splits[name]
        except KeyError:
            raise MissingDataError(
                f"{self.name} has the splits {', '.join(self.splits)}, not {name!r}"
            ) from None

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The rows of one pass over ``split``, a batch at a time; the last batch may be smaller.

        Parameters
        ----------
        split : str
        batch_size : int
        rng : Generator, optional
            Shuffles the rows. Without it they are in their original order.
        """
        check_rng("epoch", rng)
        rows = self._rows(split)
        return batches(np.arange(rows) if rng is None else rng.permutation(rows), batch_size)

    def _rows(self, split: str) -> int:
        """The number of rows of a split, for :meth:`epoch`."""
        found: Any = self.split(split)
        return len(found)


def as_rows(data: Any, indices: Indices, *, axes: Sequence[str] = ("N",)) -> np.ndarray:
    """The argument ``indices`` of ``data.batch``, as an array of integers.

    Parameters
    ----------
    data : data set
        Errors begin with the name of its class.
    indices : array or sequence of int
    axes : sequence of str
        The names of the axes that they must have.

    Raises
    ------
    ValueError
        If they have other axes.
    TypeError
        If they are not integers; a mask is not.
    """
    argument = f"{type(data).__name__}.batch: indices"
    shape = "(N,)" if len(axes) == 1 else f"({', '.join(axes)})"
    rows = as_array(argument, indices)
    if rows.size and rows.dtype.kind not in "iu":  # an empty list is an array of floats
        raise InputTypeError(f"{argument} have dtype {rows.dtype}, expected integers")
    if not rows.ndim:
        raise InputTypeError(f"{argument} is {indices!r:.60}, expected an array {shape} of integers")
    if rows.ndim != len(axes):
        raise InputError(f"{argument} have shape {rows.shape}, expected {shape}")
    return rows.astype(np.intp, copy=False)


def drawn(count: int, most: int) -> np.ndarray:
    """Which of ``count`` examples to use: ``most`` of them, drawn with seed 0; (count,) bool.

    These are all if there are fewer.
    """
    kept = np.zeros(count, bool)
    kept[np.random.default_rng(0).permutation(count)[:most]] = True
    return kept


def check_batch_size(batch_size: int) -> None:
    """Raise ValueError if ``batch_size`` is less than 1."""
    if batch_size < 1:
        raise InputError(f"epoch: batch_size is {batch_size}, expected at least 1")


def batches(order: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """The examples ``order`` (N,), a batch at a time; the last batch may be smaller.

    Raises
    ------
    ValueError
        If ``batch_size`` is less than 1.
    """
    check_batch_size(batch_size)
    return np.split(order, range(batch_size, len(order), batch_size)) if len(order) else []
