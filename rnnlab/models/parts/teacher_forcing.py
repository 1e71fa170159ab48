"""Teacher forcing: a batch of sentences as input tokens and target tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers.checks import as_tokens
from rnnlab.layers.recurrent.packing import as_rows
from rnnlab.models.parts.padding import padded_tokens, real_steps, rounded_count, rounded_up
from rnnlab.ops import ops_for
from rnnlab.types import Array


class TeacherForced(NamedTuple):
    """Inputs and targets of sentences: inputs are all tokens but the last, targets all but the first.

    There are M real targets; padding is no target. The arrays are NumPy's until :meth:`on` copies those that
    the losses need to a device.
    """

    inputs: Array  # (N, T) input tokens
    lengths: Array  # (N,) number of steps to compute: up to the last real target
    real: Array  # (M,) indices of the real targets in an array (N T,)
    targets: Array  # (M,) the real targets
    weights: Array | None = None  # (M,) weights of the losses of a padded batch, 0 for padding
    mask: Array | None = None  # (N, T) of a padded batch, 1 up to the last real target

    @classmethod
    def of(cls, tokens: Array, null_token: int) -> TeacherForced:
        """From sentences (N, L) that end with padding; L is at least 2."""
        targets = tokens[:, 1:]
        real = targets != null_token
        lengths = (real * np.arange(1, real.shape[1] + 1)).max(axis=1)
        T = int(lengths.max(initial=0))
        places = np.flatnonzero(real[:, :T])
        return cls(tokens[:, :T], lengths, places, targets[:, :T].reshape(-1)[places])

    @property
    def num_targets(self) -> int:
        """M."""
        return len(self.targets)

    def on(self, ops: Any) -> TeacherForced:
        """The same with ``real`` and ``targets`` on the device of these primitives."""
        return self._replace(real=ops.indices(self.real), targets=ops.indices(self.targets))

    def padded(self, divisor: float, null_token: int, dtype: Any) -> dict[str, np.ndarray]:
        """The padded arrays for :meth:`of_padded`. Each real target has a weight of 1 / ``divisor``.

        M is rounded up too, with indices of padding whose weight is 0, since scoring is often most of the
        work of a step.
        """
        (N, T), longer = self.inputs.shape, rounded_up(self.inputs.shape[1])
        rows, columns = np.divmod(self.real, max(T, 1))
        places = rows * longer + columns
        others = np.setdiff1d(np.arange(N * longer), places, assume_unique=True)
        places = np.concatenate([places, others[: rounded_count(len(places), N * longer) - len(places)]])
        targets, weights = np.full(len(places), null_token, np.int64), np.zeros(len(places), dtype)
        targets[: self.num_targets], weights[: self.num_targets] = self.targets, 1 / divisor
        return {
            "read": padded_tokens(self.inputs, longer, null_token),
            "places": places,
            "targets": targets,
            "weights": weights,
            "mask": real_steps(self.lengths, longer, dtype),
        }

    @classmethod
    def of_padded(cls, arrays: Mapping[str, Array]) -> TeacherForced:
        """From the arrays of :meth:`padded`, on a device. All steps are computed."""
        read, *others = (arrays[name] for name in ("read", "places", "targets", "weights", "mask"))
        N, T = read.shape
        return cls(read, np.full(N, T), *others)

    @property
    def is_padded(self) -> bool:
        """Whether the batch was made by :meth:`of_padded`."""
        return self.weights is not None

    def gather(self, array: Array) -> Array:
        """The rows of the targets, (M, D), of an array with a row for each step, (N, T, D)."""
        ops = ops_for(array)
        out = ops.empty((len(self.real), array.shape[2]), array.dtype)
        ops.take(as_rows(array), self.real, out)
        return out

    def spread(self, rows: Array) -> Array:
        """The inverse of :meth:`gather`: (M, D) to (N, T, D), zero in all other rows."""
        (N, T), D, ops = self.inputs.shape, rows.shape[1], ops_for(rows)
        out = ops.zeros((N * T, D), rows.dtype)
        ops.put(rows, self.real, out)
        return out.reshape(N, T, D)


def check_sentences(function: str, name: str, tokens: Array, rows: int, vocabulary_size: int) -> np.ndarray:
    """Check sentences (N, L) and convert them to a NumPy array of int64.

    Raises
    ------
    ValueError
        If the number of rows is not ``rows``, or L is less than 2.
    IndexError, TypeError
        If a token is out of range or not an integer.
    """
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or tokens.shape[0] != rows or tokens.shape[1] < 2:
        raise ValueError(
            f"{function}: {name} has shape {tokens.shape}, "
            f"expected (N, L) with N = {rows} as the inputs and L of at least 2"
        )
    return as_tokens(function, name, tokens, vocabulary_size)
