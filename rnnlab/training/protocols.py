"""What the solver needs of a model and of a data set, and nothing more."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Protocol

import numpy as np

from rnnlab.parameters import Parameters

Array = Any


class Model(Protocol):
    """A model that can be trained and, if the data have a "val" split, validated."""

    params: Parameters

    def config(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON can hold them."""
        ...

    def loss(
        self, *batch: Array, rng: np.random.Generator | None = None, grads: Parameters | None = None
    ) -> tuple[float, Parameters]:
        """The loss of a batch and its gradient; noise such as dropout only if ``rng`` is given."""
        ...

    def nll(self, *batch: Array) -> tuple[float, int]:
        """The negative log-likelihood of a batch in nats, and the number of its tokens."""
        ...


class Data(Protocol):
    """A data set that is split into "train" and, if it is to be validated on, "val"."""

    splits: Container[str]

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The indices of each batch, every example once; shuffled if ``rng`` is given."""
        ...

    def batch(self, split: str, indices: np.ndarray) -> tuple[Array, ...]:
        """The arguments of :meth:`Model.loss`."""
        ...

    def num_tokens(self, batch: tuple[Array, ...]) -> int:
        """The number of target tokens in a batch, padding left out."""
        ...
