"""The members of a model and of a data set that the solver uses."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple, Protocol

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

        Dropout and zoneout only if ``rng`` is given. If ``grads`` is given, the gradient overwrites what it
        holds, and it is returned.
        A model for scheduled sampling also takes its probability, as ``sampling``: each word that is read
        after the first is replaced with it, by one that is drawn with ``rng`` from the model's distribution.
        The drawn words are constants to the gradient.

        A model for gradient accumulation takes ``part_of``: the numbers of examples and tokens of the batch
        that this one is a part of, or None. If it is given, sums are divided by these numbers instead of the
        part's own, and the gradient is added into ``grads`` instead of overwriting it, so that losses and
        gradients of the parts add up to those of the batch.

        A model for self-critical training decodes: it has ``start``, ``advance`` and the tokens
        ``start_token``, ``end_token`` and ``null_token``. Its loss takes the source, N rows, S sampled
        sentences of each, (N, S, T) with <START>, and ``sentence_weights`` and ``sentence_lengths``, both
        (N, S). It is the mean over the N S sentences of their weighted negative log-likelihoods. A length
        counts the tokens after <START>; any of them may be ``null_token``, if it was sampled.

        A model that adds losses to its first one may have ``last_terms``: those of the last call by name,
        before they were weighted. They become columns of the history. A part's add up to those of the batch.

        A model for CUDA graphs also has ``padded(*batch, part_of=)``, ``prefetch_padded(padded)`` and
        ``padded_loss(padded, rng=, grads=)``, as the models of :mod:`rnnlab.models` have.
        """
        ...

    @property
    def nll(self) -> Callable[..., tuple[float, int]]:
        """``nll(*batch)``: the negative log-likelihood in nats, summed over tokens, and their number."""
        ...


class Rollout(NamedTuple):
    """What an objective has made of a batch or a part of one, by the model itself.

    The loss is the mean over the sentences, weighted by ``sentence_weights``, also where the model's own
    ``loss_average`` is "token".
    """

    arrays: tuple[Any, ...]  # arguments of the model's loss
    options: Mapping[str, Array]  # keyword arguments of the loss, ``sentence_weights`` among them
    examples: int  # number of sentences
    tokens: int  # number of target tokens
    means: Mapping[str, float]  # columns of the history: means over sentences, the same names in each rollout


class Objective(Protocol):
    """What a model is trained for, if not for the likelihood of the batches of the data."""

    @property
    def config(self) -> Callable[[], dict[str, Any]]:
        """``config()``: the options as JSON can hold them; a run resumes with equal ones only."""
        ...

    @property
    def check(self) -> Callable[[Any], None]:
        """``check(model)``: raises ValueError or TypeError if the model cannot be trained for it."""
        ...

    @property
    def dropout(self) -> bool:
        """Whether the loss has the model's dropout and zoneout."""
        ...

    def __call__(self, model: Any, batch: tuple[Array, ...], rng: np.random.Generator) -> Rollout:
        """From rows of a batch of the data to those of the loss, by the model as it is at this iteration.

        It is called once for each part of a batch (``accumulate``), and on each rank for its own parts.
        """
        ...


class Data(Protocol):
    """A data set with a split "train" and, for validation, "val".

    Where a row of a batch is several examples, such as an image with five captions, the data also have
    ``num_examples(batch)``, the number that the loss is averaged over. Both ``loss`` and ``nll`` of the model
    then take such batches.

    Data may have ``fingerprint()``, a table that JSON can hold, by which a run that resumes knows its data.

    Data may have ``row_lengths(split, indices)``, the number of tokens of each row (N,), those of its source
    included: batches are split into parts with about the same number. Without it, parts have as many rows.
    """

    @property
    def splits(self) -> Container[str]:
        """The names of the splits."""
        ...

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The indices of each batch; every example occurs once, in random order if ``rng`` is given."""
        ...

    def batch(self, split: str, indices: np.ndarray) -> tuple[Array, ...]:
        """The arguments of :meth:`Model.loss`, or of :meth:`Model.nll` for other splits than "train".

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
