"""The state of a model at the end of a batch, at which the next batch of the data begins.

Data whose ``carries_state`` is true have batches whose rows continue those of the batch before. The first
batch of an epoch begins at zeros.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rnnlab.ops import ops_for
from rnnlab.training.checkpoint import Checkpoint, CheckpointError
from rnnlab.training.distributed import Communicator
from rnnlab.training.protocols import Data, check_takes
from rnnlab.types import Array, State

REASON = "the batches of the data continue each other"  # for errors


def carries_state(data: Data) -> bool:
    """Whether the rows of a batch continue those of the batch before."""
    return bool(getattr(data, "carries_state", False))


def check_takes_state(model: Any, method: str) -> None:
    """Raise TypeError if the "loss" or the "nll" of a model takes no ``state`` or no ``return_state``."""
    for keyword in ("state", "return_state"):
        check_takes(model, keyword, REASON, method)


class CarriedState:
    """The state of all rows of a batch, which the parts of the next batch begin at.

    Attributes
    ----------
    arrays : tuple of (N, H) arrays, or None
        None for zeros.
    """

    def __init__(self) -> None:
        self.arrays: State | None = None

    def of(self, rows: slice) -> State | None:
        """The state of some rows."""
        return None if self.arrays is None else tuple(each[rows] for each in self.arrays)

    def begin_epoch(self) -> None:
        """Begin at zeros."""
        self.arrays = None

    def load(self, path: str | os.PathLike[str], checkpoint: Checkpoint, *, within_epoch: bool) -> None:
        """Resume from a checkpoint.

        Raises
        ------
        CheckpointError
            If there is no state at the end of a batch ``within_epoch``.
        """
        if within_epoch and not checkpoint.state:
            raise CheckpointError(path, "state", "nothing", "the state at the end of the last batch")
        self.arrays = tuple(checkpoint.state) or None


def joined(parts: Sequence[State], communicator: Communicator) -> State:
    """The state of all rows of a batch, of which each rank has some parts, in order."""
    if communicator.size > 1:
        on_host = [tuple(ops_for(each).asnumpy(each) for each in part) for part in parts]
        parts = [part for own in communicator.gather(on_host) for part in own]
    return tuple(_joined(rows) for rows in zip(*parts, strict=True))


def _joined(parts: Sequence[Array]) -> Array:
    """The rows of several arrays as one array."""
    if len(parts) == 1:
        return parts[0]
    ops = ops_for(*parts)
    out, first = ops.empty((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype), 0
    for part in parts:
        out[first : first + len(part)] = part
        first += len(part)
    return out
