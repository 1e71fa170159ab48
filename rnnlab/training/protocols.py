"""What the solver needs of a model and of a data set, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Protocol

import numpy as np

from rnnlab.parameters import Parameters
from rnnlab.types import Array


class Model(Protocol):
    """A model that can be trained and, if the data have a "val" split, validated."""

    params: Parameters

    def config(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON can hold them."""
        ...

    @property
    def loss(self) -> Callable[..., tuple[float, Parameters]]:
        """``loss(*batch, rng=None, grads=None)``: the loss of a batch and its gradient.

        Noise such as dropout only if ``rng`` is given; the gradient is written into ``grads`` if that is. A
        model that can be trained with scheduled sampling takes its probability as ``sampling`` too.

        One whose gradient can be accumulated takes ``part_of``: the numbers of examples and tokens of the
        batch that this one is a part of, or None. If it is given, sums are divided by these numbers rather
        than the part's own, and the gradient is added into ``grads`` instead of overwriting it, so that
        losses and gradients of the parts add up to the batch's.

        One whose steps can be launched as CUDA graphs has, besides, ``padded(*batch, part_of=)``,
        ``staged_whole(padded)`` and ``padded_loss(padded, rng=, grads=)``, as those of
        :mod:`rnnlab.models` have.
        """
        ...

    @property
    def nll(self) -> Callable[..., tuple[float, int]]:
        """``nll(*batch)``: its negative log-likelihood in nats, and how many tokens that is the sum over."""
        ...


class Data(Protocol):
    """A data set that is split into "train" and, if it is to be validated on, "val"."""

    @property
    def splits(self) -> Container[str]:
        """The names of the splits."""
        ...

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The indices of each batch, every example once; shuffled if ``rng`` is given."""
        ...

    def batch(self, split: str, indices: np.ndarray) -> tuple[Array, ...]:
        """The arguments of :meth:`Model.loss`.

        Called from another thread while the model trains on the batch before, but never twice at a time,
        unless the solver is told ``prefetch=0``.
        """
        ...

    @property
    def num_tokens(self) -> Callable[..., int]:
        """``num_tokens(batch)``: the number of target tokens in a batch, padding left out.

        It is what an accumulated loss that is a mean over tokens is divided by, so that it has to be the
        number that the model counts.
        """
        ...
