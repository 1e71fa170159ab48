"""Batches in the form that an update takes: this rank's parts, on the device, padded for CUDA graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops import device_of, ops_on
from rnnlab.options import described
from rnnlab.training.accumulation import balanced
from rnnlab.training.distributed import ALONE, Communicator
from rnnlab.training.options import Options
from rnnlab.training.protocols import Data, Model, Objective
from rnnlab.types import Array


class Part(NamedTuple):
    """Some rows of a batch."""

    number: int  # among the parts of the batch, from 0
    arrays: tuple[Array, ...]
    options: Mapping[str, Array] = {}  # options of the loss, with a row for each example
    rows: slice = slice(None)  # of the batch


class Prepared(NamedTuple):
    """A batch, or this rank's parts of one, in the form that an update takes."""

    parts: Sequence[Part]
    examples: int
    tokens: int
    padded: Sequence[Any] | None = None  # the padded parts, if steps are launched as CUDA graphs
    means: Mapping[str, float] = {}  # the objective's measurements


class Preparation:
    """Prepares batches of the training data. It may run in another thread, ahead of the updates.

    Parameters
    ----------
    model : Model
    data : Data
    options : Options
    communicator : Communicator
        The ranks that compute the gradient together.
    graphs : bool
        Whether updates are launched as CUDA graphs, which need padded parts.
    objective : Objective, optional
        Computes the batches of the loss from the prepared ones, which therefore have no tokens yet, and are
        not padded yet.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        options: Options,
        communicator: Communicator = ALONE,
        graphs: bool = False,
        objective: Objective | None = None,
    ) -> None:
        self._model, self._data, self._communicator = model, data, communicator
        self._accumulate, self._graphs, self._objective = options.accumulate, graphs, objective

    def __call__(self, indices: np.ndarray) -> Prepared:
        """The parts that this rank computes of the batch with these indices.

        Raises
        ------
        MemoryError
            If the batch does not fit into the memory of the device.
        ValueError, TypeError
            If the numbers of rows, tokens or examples that the data or the model return do not fit.
        """
        data, model = self._data, self._model
        rows_of = self._rows_of_parts(indices)
        parts = {number: batch_of(data, "train", indices[rows]) for number, rows in rows_of.items()}
        of_model = _rows if self._objective is not None else getattr(model, "num_examples", _rows)
        count: Any = getattr(data, "num_examples", of_model)  # an objective's batches are not the model's
        examples = sum(_counted("num_examples", count(part)) for part in parts.values())
        tokens = 0
        if self._objective is None:
            tokens = sum(_counted("num_tokens", data.num_tokens(part)) for part in parts.values())
        ops_on(device_of(model.params.flat))  # makes the device current in this thread
        prefetch = getattr(model, "prefetch", lambda arrays: arrays)
        try:
            on_device = [
                Part(number, prefetch(arrays), rows=rows_of[number]) for number, arrays in parts.items()
            ]
            batch = Prepared(on_device, examples, tokens)
            return padded(model, batch) if self._graphs and self._objective is None else batch
        except MemoryError as error:
            raise MemoryError(
                f"out of memory: {error}; for a batch of {examples} examples and {tokens} tokens: a smaller "
                "batch_size needs less"
            ) from error

    def _rows_of_parts(self, indices: np.ndarray) -> dict[int, slice]:
        """The rows of each of this rank's parts of a batch, by the number of the part."""
        lengths = np.ones(len(indices), int)
        if hasattr(self._data, "row_lengths"):
            lengths = _checked_lengths(self._data.row_lengths("train", indices), len(indices))
        rank, size = self._communicator.rank, self._communicator.size
        parts = balanced(lengths, size * self._accumulate)
        first, end = (len(parts) * each // size for each in (rank, rank + 1))
        return {number: parts[number] for number in range(first, end)}


def batch_of(data: Data, split: str, indices: np.ndarray) -> tuple[Any, ...]:
    """The arguments of a model's loss.

    Raises
    ------
    TypeError
        If the data return something else.
    """
    batch = data.batch(split, indices)
    if not isinstance(batch, tuple | list):
        raise InputTypeError(
            f"Solver: data.batch returned a {type(batch).__name__}, expected a tuple of the arguments of "
            "model.loss"
        )
    return tuple(batch)


def _checked_lengths(found: Any, rows: int) -> np.ndarray:
    lengths = np.asarray(found)
    fit = lengths.shape == (rows,) and lengths.dtype.kind in "iuf"
    if not fit or (lengths != np.abs(np.rint(lengths))).any():
        shown = lengths if lengths.shape == (rows,) else described(found)
        raise InputError(
            f"Solver: data.row_lengths returned {shown}, expected the number of tokens of each of {rows} rows"
        )
    return lengths


def _counted(name: str, found: Any) -> int:
    """A number that data or a model have counted; a sum of floats may be one."""
    number = found if np.ndim(found) == 0 and isinstance(found, int | float | np.number | np.ndarray) else -1
    if not (number >= 0 and number == int(number)):
        shown = found if isinstance(found, int | float) else described(found)
        raise InputTypeError(f"Solver: {name} returned {shown}, expected an integer of at least 0")
    return int(number)


def _rows(batch: Sequence[Any]) -> int:
    """The rows of the last array of a batch; arguments that are left out are None."""
    return len(next(array for array in reversed(batch) if array is not None))


def padded(model: Any, batch: Prepared) -> Prepared:
    """The batch with padded parts on the device of the model."""
    size = batch.examples, batch.tokens
    parts = (model.padded(*part.arrays, part_of=size, **part.options) for part in batch.parts)
    return batch._replace(padded=[model.prefetch_padded(part) for part in parts])
