"""Padded batches: lengths rounded up, so that batches have few different shapes, with masks for real steps.

A training step that is captured as a CUDA graph does the same work each time, so its work may depend on the
shapes of its arrays alone. All sequences of a padded batch have the length of the longest one, rounded up.
Steps past the end of a sequence are computed, and masks exclude them from the losses. The number of scored
targets is rounded up separately. Losses and gradients equal those of the model's ``loss`` up to rounding.
Dropout and zoneout masks are drawn for padding as well, so they differ from those of ``loss``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rnnlab.types import Array

MULTIPLE = 8  # lengths are rounded up to a multiple of it


class Padded(NamedTuple):
    """A padded batch, or a part of a batch."""

    arrays: Mapping[str, Array]
    share: float  # the part's share of the batch's examples

    @property
    def shape(self) -> tuple[Any, ...]:
        """Equal for two batches that one CUDA graph can process."""
        return self.share, *((name, *array.shape) for name, array in self.arrays.items())

    def on(self, send: Callable[[Array], Array]) -> Padded:
        """The same with ``send`` applied to each array, such as a copy to a device."""
        return self._replace(arrays={name: send(array) for name, array in self.arrays.items()})


def rounded_up(length: int) -> int:
    """The length that sequences of at most ``length`` steps are padded to."""
    return max(1, -(-length // MULTIPLE)) * MULTIPLE


def rounded_count(count: int, most: int) -> int:
    """``count`` targets, out of at most ``most``, rounded up to one of at most 16 different numbers."""
    step = max(64, -(-most // 16))
    return min(most, max(1, -(-count // step)) * step)


def padded_tokens(tokens: Array, length: int, null_token: int) -> np.ndarray:
    """Tokens (N, L) cut or padded to (N, length), int64. Only padding may be cut off."""
    out = np.full((len(tokens), length), null_token, np.int64)
    cut = tokens[:, :length]
    out[:, : cut.shape[1]] = cut
    return out


def real_steps(lengths: Array, length: int, dtype: np.dtype) -> np.ndarray:
    """The mask (N, length) of sequences of lengths (N,): 1 for real steps, 0 for padding."""
    return (np.arange(length) < np.reshape(lengths, (-1, 1))).astype(dtype)
