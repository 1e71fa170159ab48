"""The members of a model and of a data set that the solver uses, and checks of them.

Some members are optional. The classes below describe those of a kind of training. The others are:

    model.loss_average               "token" if the loss is a mean over tokens, not over examples
    model.prefetch(batch)            the batch on the model's device; called in another thread
    model.loss.announces_gradients   true if its backward calls Parameters.complete, for several ranks
    model.loss_weights               the weights of its losses by name, which are attributes; a CUDA graph
                                     depends on them, and several ranks have those of rank 0
    model.word_to_idx                its vocabulary, which must be that of the data
    model.widened_from(config)       the parameters of which a warm start may fill the first rows only
    data.carries_state               true if the rows of a batch continue those of the batch before: ``loss``
                                     and ``nll`` get the state that they have returned, and begin there
    data.in_memory                   true if no thread is to prepare batches ahead (the option ``prefetch``)
    data.vocabulary                  saved with a run, and compared when it resumes
    data.preprocessing()             likewise: what new inputs need, arrays and JSON values by name
    data.check_model(model)          raises ValueError or TypeError if the model does not fit the data
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from rnnlab.errors import InputTypeError
from rnnlab.options import LossAverage, check_option, described
from rnnlab.parameters import Parameters
from rnnlab.types import Array


class Model(Protocol):
    """A model to train and, if the data have a "val" split, to validate."""

    params: Parameters

    def config(self) -> dict[str, Any]:
        """The constructor's arguments as JSON values."""
        ...

    @property
    def loss(self) -> Callable[..., tuple[float, Parameters]]:
        """``loss(*batch, rng=None, grads=None)``: the loss of a batch and its gradient.

        Dropout and zoneout are applied only if ``rng`` is given. If ``grads`` is given, it is overwritten
        with the gradient and returned.
        A model for scheduled sampling also takes a probability, ``sampling``. Each input word except the
        first is replaced, with this probability, by a word drawn from the model's distribution with ``rng``.
        No gradient flows through the drawn words.

        A model for gradient accumulation takes ``part_of``: the numbers of examples and tokens of the batch
        that this one is a part of, or None. If it is given, sums are divided by these numbers instead of the
        part's own, and the gradient is added into ``grads`` instead of overwriting it, so that losses and
        gradients of the parts add up to those of the batch.

        A model for self-critical training also decodes: it has ``start``, ``advance`` and the tokens
        ``start_token``, ``end_token`` and ``null_token``. Its loss takes the source (N rows), S sampled
        sentences of each, (N, S, T) with <START>, and ``sentence_weights`` and ``sentence_lengths``, both
        (N, S). The loss is the mean over the N S sentences of their weighted negative log-likelihoods. A
        length counts the tokens after <START>, including any sampled ``null_token``.

        A model that adds losses to its main one may have ``last_terms``: the added losses of the last call by
        name, before they were weighted. They become columns of the history. The terms of the parts of a batch
        add up to those of the batch.

        A model for data whose batches continue each other (``carries_state``) takes ``state``, a tuple of
        arrays with a row for each row of the batch, or None for zeros at the beginning of an epoch, and
        ``return_state``. If that is true, the state at the end of the batch is the last result. So does its
        ``nll``.

        A model for CUDA graphs also has ``padded(*batch, part_of=)``, ``prefetch_padded(padded)`` and
        ``padded_loss(padded, rng=, grads=)``, as the models of :mod:`rnnlab.models` have.
        """
        ...

    @property
    def nll(self) -> Callable[..., tuple[float, int]]:
        """``nll(*batch)``: the negative log-likelihood in nats, summed over tokens, and their number."""
        ...


def check_interface(argument: str, value: Any, names: tuple[str, ...], function: str = "Solver") -> None:
    """Raise TypeError unless ``value`` has these attributes."""
    missing = [name for name in names if not hasattr(value, name)]
    if missing:
        raise InputTypeError(
            f"{function}: {argument} is a {type(value).__name__} without {', '.join(missing)}; "
            f"expected an object that has {', '.join(names)}"
        )


def check_takes(model: Any, keyword: str, reason: str, method: str = "loss") -> None:
    """Raise TypeError if a method of the model does not take a keyword, which is needed for this reason."""
    arguments = inspect.signature(getattr(model, method)).parameters
    if keyword not in arguments and all(each.kind is not each.VAR_KEYWORD for each in arguments.values()):
        raise InputTypeError(f"{reason}, but the {method} of this {type(model).__name__} takes no {keyword}")


def averages_tokens(model: Model) -> bool:
    """Whether the loss of a model is a mean over tokens, not over examples.

    Raises
    ------
    ValueError
        If its ``loss_average`` is neither "batch" nor "token".
    """
    found = getattr(model, "loss_average", "batch")
    check_option(type(model).__name__, "loss_average", LossAverage, found)
    return found == "token"


def results_of(model: Model, method: str, found: Any, names: str) -> tuple[Any, ...]:
    """What a method of a model has returned, which has as many results as there are names.

    Raises
    ------
    TypeError
        If it is not a tuple of that many.
    """
    count = len(names.split(", "))
    if not isinstance(found, tuple | list) or len(found) != count:
        raise InputTypeError(
            f"{type(model).__name__}.{method} returned {described(found)}, expected "
            f"{('two', 'three')[count - 2]} results: {names}"
        )
    return tuple(found)


class Rollout(NamedTuple):
    """The arguments of the loss that an objective computes with the model from a batch or a part of one.

    The loss is the mean over the sentences, weighted by ``sentence_weights``, even if the model's
    ``loss_average`` is "token".
    """

    arrays: tuple[Any, ...]  # arguments of the model's loss
    options: Mapping[str, Array]  # keyword arguments of the loss, ``sentence_weights`` among them
    examples: int  # number of sentences
    tokens: int  # number of target tokens
    means: Mapping[str, float]  # columns of the history: means over sentences, the same names in each rollout


class Objective(Protocol):
    """A training objective other than the likelihood of the data, such as a reward.

    It keeps no state from call to call: checkpoints hold its options only, and each rank has its own.
    """

    @property
    def config(self) -> Callable[[], dict[str, Any]]:
        """``config()``: the options as JSON values. A run resumes only with the same options."""
        ...

    @property
    def check(self) -> Callable[[Any], None]:
        """``check(model)``: raises ValueError or TypeError if the model does not support the objective."""
        ...

    @property
    def dropout(self) -> bool:
        """Whether the loss uses the model's dropout and zoneout."""
        ...

    def __call__(self, model: Any, batch: tuple[Array, ...], rng: np.random.Generator) -> Rollout:
        """Compute the batch of the loss from rows of a batch of the data, with the current model.

        It is called once for each part of a batch (``accumulate``), and on each rank for its own parts.
        """
        ...


class Data(Protocol):
    """A data set with a split "train" and, for validation, "val".

    If the loss is a mean over something other than the rows of a batch's last array, such as tokens, the data
    or the model also have ``num_examples(batch)``, the number of items that the loss is averaged over. The
    library's models have it for several sentences of each input. Both ``loss`` and ``nll`` of the model then
    take such batches.

    Data may have ``fingerprint()``, a dict of JSON values by which a run that resumes recognises its data.

    Data may have ``row_lengths(split, indices)``, the number of tokens of each row (N,), those of its source
    included. A batch is then split into parts with about the same number of tokens, otherwise into parts with
    about the same number of rows.
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
