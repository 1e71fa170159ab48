"""Batches in few shapes: sequences padded to lengths of which there are few, and masks to tell what is real.

A step that is captured as a CUDA graph does the same work each time, so that all it does has to follow from
the shapes of its arrays. Here every sequence of a batch has as many steps as the longest, rounded up, and
what the steps past an end compute counts for nothing. The places that are scored are rounded up on their own.
Losses and gradients are those of the model's ``loss`` but for rounding; the noise is drawn for the padding as
well, so that it is another draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rnnlab.types import Array

MULTIPLE = 8  # what lengths are rounded up to


class Padded(NamedTuple):
    """A batch, or a part of one, of which the shapes tell all that is not in its arrays."""

    arrays: Mapping[str, Array]
    share: float  # of the whole's examples
    losses: tuple[float, ...]  # the weights that the model gives to its losses

    @property
    def shape(self) -> tuple[Any, ...]:
        """What two batches have in common that one graph can work on."""
        return self.share, self.losses, *((name, *array.shape) for name, array in self.arrays.items())

    def on(self, send: Callable[[Array], Array]) -> Padded:
        """The same with each array sent somewhere."""
        return self._replace(arrays={name: send(array) for name, array in self.arrays.items()})


def rounded_up(length: int) -> int:
    """The length that sequences of at most ``length`` steps are padded to."""
    return max(1, -(-length // MULTIPLE)) * MULTIPLE


def rounded_count(count: int, most: int) -> int:
    """How many of ``most`` places are scored where ``count`` have a target: one of 16 numbers or fewer."""
    step = max(64, -(-most // 16))
    return min(most, max(1, -(-count // step)) * step)


def padded_tokens(tokens: Array, length: int, null_token: int) -> np.ndarray:
    """Tokens (N, L) cut or padded to (N, length), int64; what is cut off has to be padding."""
    out = np.full((len(tokens), length), null_token, np.int64)
    kept = tokens[:, :length]
    out[:, : kept.shape[1]] = kept
    return out


def real_steps(lengths: Array, length: int, dtype: Any) -> np.ndarray:
    """1 for the real steps of sequences of these lengths (N,), 0 past their ends: (N, length)."""
    return (np.arange(length) < np.reshape(lengths, (-1, 1))).astype(dtype)
