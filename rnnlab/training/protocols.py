"""The members of a model and of a data set that the solver uses."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Protocol

import numpy as np

from rnnlab.parameters import Parameters
from rnnlab.types import Array


class Model(Protocol):
    """A model to train and, if the data have a "val" split, to validate."""

    params: Parameters

    def config(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON can hold them."""
        ...

    @property
    def loss(self) -> Callable[..., tuple[float, Parameters]]:
        """``loss(*batch, rng=None, grads=None)``: the loss of a batch and its gradient.

        Dropout and zoneout only if ``rng`` is given; the gradient is written into ``grads`` if that is given.
        A model for scheduled sampling also takes its probability, as ``sampling``.

        A model for gradient accumulation takes ``part_of``: the numbers of examples and tokens of the batch
        that this one is a part of, or None. If it is given, sums are divided by these numbers instead of the
        part's own, and the gradient is added into ``grads`` instead of overwriting it, so that losses and
        gradients of the parts add up to those of the batch.

        A model for CUDA graphs also has ``padded(*batch, part_of=)``, ``prefetch_padded(padded)`` and
        ``padded_loss(padded, rng=, grads=)``, as the models of :mod:`rnnlab.models` have.
        """
        ...

    @property
    def nll(self) -> Callable[..., tuple[float, int]]:
        """``nll(*batch)``: the negative log-likelihood in nats, summed over tokens, and their number."""
        ...


class Data(Protocol):
    """A data set with a split "train" and, for validation, "val"."""

    @property
    def splits(self) -> Container[str]:
        """The names of the splits."""
        ...

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The indices of each batch; every example occurs once, in random order if ``rng`` is given."""
        ...

    def batch(self, split: str, indices: np.ndarray) -> tuple[Array, ...]:
        """The arguments of :meth:`Model.loss`.

        With the solver's ``prefetch`` above 0 it is called from another thread while the model trains on the
        previous batch, but never by two threads at a time.
        """
        ...

    @property
    def num_tokens(self) -> Callable[..., int]:
        """``num_tokens(batch)``: the number of target tokens in a batch, without padding.

        An accumulated loss that is a mean over tokens is divided by it, so it must be the number that the
        model counts.
        """
        ...
