"""A batch of sentences as teacher forcing wants it: what is read, and what is to be predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers.checks import as_tokens
from rnnlab.layers.recurrent.packing import as_rows
from rnnlab.models.parts.padding import padded_tokens, real_steps, rounded_count, rounded_up
from rnnlab.ops import ops_for
from rnnlab.types import Array


class Teaching(NamedTuple):
    """Sentences: all but the last token are read, all but the first are targets; padding is no target.

    The arrays of M are NumPy's until :meth:`on` has brought them to a device.
    """

    inputs: Array  # (N, T) tokens that are read
    lengths: Array  # (N,) how many steps are to be computed: up to the last real target
    real: Array  # (M,) places of the real targets in an (N T,) array
    targets: Array  # (M,) the tokens there
    weights: Array | None = None  # (M,) of their losses, of a batch that is padded: 0 for what is no target
    mask: Array | None = None  # (N, T), then, 1 up to the last real target

    @classmethod
    def of(cls, tokens: Array, null_token: int) -> Teaching:
        """Sentences (N, L), L at least 2, then padding."""
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

    def on(self, ops: Any) -> Teaching:
        """The same with what the losses need on the device of these primitives."""
        return self._replace(real=ops.indices(self.real), targets=ops.indices(self.targets))

    def padded(self, divisor: float, null_token: int, dtype: Any) -> dict[str, np.ndarray]:
        """Arrays for :meth:`of_padded`; each real target's loss counts for 1 / ``divisor``.

        M is rounded up as well, by places that have no target: what is scored is the most of many a step.
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
    def of_padded(cls, arrays: Mapping[str, Array]) -> Teaching:
        """From what :meth:`padded` gave, brought to a device: all steps are computed, the weights tell."""
        read, *others = (arrays[name] for name in ("read", "places", "targets", "weights", "mask"))
        N, T = read.shape
        return cls(read, np.full(N, T), *others)

    @property
    def is_padded(self) -> bool:
        """Whether it is from :meth:`of_padded`."""
        return self.weights is not None

    def gather(self, array: Array) -> Array:
        """Of what was made at each step, (N, T, D), the rows of the targets, (M, D)."""
        ops = ops_for(array)
        out = ops.empty((len(self.real), array.shape[2]), array.dtype)
        ops.take(as_rows(array), self.real, out)
        return out

    def spread(self, rows: Array) -> Array:
        """The inverse of :meth:`gather`, zero elsewhere: (M, D) to (N, T, D)."""
        (N, T), D, ops = self.inputs.shape, rows.shape[1], ops_for(rows)
        out = ops.zeros((N * T, D), rows.dtype)
        ops.put(rows, self.real, out)
        return out.reshape(N, T, D)


def check_sentences(function: str, name: str, tokens: Array, rows: int, vocabulary_size: int) -> np.ndarray:
    """Sentences (N, L) as a NumPy array of int64.

    Raises
    ------
    ValueError, IndexError, TypeError
        If they are not so many rows of 2 tokens or more, or no tokens of the vocabulary.
    """
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or tokens.shape[0] != rows or tokens.shape[1] < 2:
        raise ValueError(
            f"{function}: {name} has shape {tokens.shape}, "
            f"expected (N, L) with N = {rows} as the inputs and L of at least 2"
        )
    return as_tokens(function, name, tokens, vocabulary_size)
