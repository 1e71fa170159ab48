"""The order of the training examples, seeded and resumable at any batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.options import described
from rnnlab.training.carried_state import REASON, carries_state
from rnnlab.training.protocols import Data


class DataOrder:
    """The batches of all epochs, in order.

    The state of the generator before an epoch determines the batches of the epoch. That state and the number
    of batches used are saved, not a permutation.

    Attributes
    ----------
    epoch : int
        The number of epochs finished.
    batch : int
        The number of batches used in the current epoch.
    """

    def __init__(self, data: Data, batch_size: int, rng: np.random.Generator) -> None:
        self.epoch = 0
        self.batch = 0
        self._data = data
        self._batch_size = batch_size
        self._rng = rng
        self._before_epoch = rng.bit_generator.state
        self._num_batches: int | None = None

    def batches(self) -> list[np.ndarray]:
        """All batches of the current epoch, including the used ones; the same at every call.

        Raises
        ------
        ValueError
            If the "train" split is empty, the number of batches is not that of the saved run, or batches that
            continue each other have different numbers of rows.
        TypeError
            If a batch is no array of indices.
        """
        self._rng.bit_generator.state = self._before_epoch
        batches = list(self._data.epoch("train", self._batch_size, self._rng))
        if not batches:
            raise InputError("the data's 'train' split has no examples")
        for each in batches:
            if not hasattr(each, "__len__"):
                raise InputTypeError(
                    f"the data's epoch returned {described(each)}, expected arrays of indices"
                )
        rows = sorted({len(each) for each in batches})
        if len(rows) > 1 and carries_state(self._data):
            raise InputError(
                f"the data's epoch returned batches of {rows[0]} and of {rows[-1]} rows, expected equally "
                f"many in all: {REASON}"
            )
        if self._num_batches not in (None, len(batches)):
            raise InputError(
                f"the data's 'train' split has {len(batches)} batches of {self._batch_size}, expected "
                f"{self._num_batches} as when the run was saved: the data are not the same"
            )
        self._num_batches = len(batches)
        return batches

    @property
    def at_end(self) -> bool:
        """Whether all batches of the current epoch have been used."""
        return self.batch == self._num_batches

    def end_epoch(self) -> None:
        """Begin the next epoch."""
        self.epoch += 1
        self.batch = 0
        self._num_batches = None
        self._before_epoch = self._rng.bit_generator.state

    def state(self) -> dict[str, Any]:
        """The state to save."""
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "num_batches": self._num_batches,
            "generator": self._before_epoch,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Resume from a :meth:`state`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is not a state of an order.
        """
        epoch, batch, num_batches = state["epoch"], state["batch"], state["num_batches"]
        most = 0 if num_batches is None else num_batches
        if not (epoch >= 0 and 0 <= batch <= most):
            raise InputError(
                f"order: epoch is {epoch} and batch is {batch}, expected at least 0, and batch at most {most}"
            )
        np.random.default_rng().bit_generator.state = state["generator"]  # ValueError unless it is a state
        self.epoch, self.batch, self._num_batches = epoch, batch, num_batches
        self._before_epoch = state["generator"]
