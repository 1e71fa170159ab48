"""Validation: the metrics after every epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rnnlab.errors import InputError, InputTypeError
from rnnlab.options import Count, check_option
from rnnlab.training.carried_state import carries_state, check_takes_state
from rnnlab.training.distributed import ALONE, Communicator, in_shares
from rnnlab.training.monitor import MONITOR
from rnnlab.training.protocols import Data, Model, check_interface, results_of
from rnnlab.training.schedules import Schedule
from rnnlab.types import Array

Evaluate = Callable[[Any], Mapping[str, float]]

DEFAULT_METRICS = ("val_loss", "val_perplexity")  # those of validation_loss for the split "val"


def validation_loss(
    model: Model, data: Data, batch_size: int, split: str = "val", *, communicator: Communicator = ALONE
) -> dict[str, float]:
    """The loss of a split in nats per token, and its perplexity, exp(loss).

    The ranks of a communicator share the batches, and all of them return the same numbers. Batches that
    continue each other are not shared.

    Returns
    -------
    dict
        ``{"val_loss": ..., "val_perplexity": ...}``, prefixed with the name of the split.

    Raises
    ------
    ValueError
        If the split has no tokens, or ``batch_size`` is not a positive integer.
    TypeError
        If the batches continue each other, and the model's ``nll`` takes no ``state``.
    """
    check_option("validation_loss", "batch_size", Count, batch_size)
    nats, tokens = total_nll(model, data, split, list(data.epoch(split, batch_size, None)), communicator)
    if tokens == 0:
        raise InputError(f"validation_loss: split {split!r} has no tokens")
    loss = nats / tokens
    return {f"{split}_loss": loss, f"{split}_perplexity": math.exp(loss) if loss < 700 else math.inf}


def total_nll(
    model: Model, data: Data, split: str, batches: Sequence[Array], communicator: Communicator
) -> tuple[float, int]:
    """The negative log-likelihood in nats and the number of tokens of some batches, which the ranks share.

    Parameters
    ----------
    model : Model
    data : Data
    split : str
    batches : sequence of (N,) integers
        The indices of each batch.
    communicator : Communicator

    Raises
    ------
    TypeError
        If the batches continue each other, and the model's ``nll`` takes no ``state``.
    """

    def nll(indices: Array) -> tuple[Any, ...]:
        found = model.nll(*data.batch(split, indices))
        return results_of(model, "nll", found, "total, tokens")

    def continued(batches: Sequence[Array]) -> tuple[float, int]:
        state, total, counted = None, 0.0, 0
        for indices in batches:
            found = model.nll(*data.batch(split, indices), state=state, return_state=True)
            nats, tokens, state = results_of(model, "nll", found, "total, tokens, state")
            total, counted = total + nats, counted + tokens
        return total, counted

    if carries_state(data):
        check_takes_state(model, "nll")
        totals = in_shares(communicator, [batches], continued)
    else:
        totals = in_shares(communicator, batches, nll)
    return sum(nats for nats, _ in totals), sum(tokens for _, tokens in totals)


def metrics_of(evaluate: Evaluate, model: Model) -> dict[str, float]:
    """The metrics that a function returns for a model, as floats.

    Raises
    ------
    TypeError
        If it returns no mapping, or a value is not a number.
    """
    metrics = evaluate(model)
    if not isinstance(metrics, Mapping):
        raise InputTypeError(f"evaluate returned {metrics!r}, expected a mapping of names to numbers")
    return {name: _number(name, value) for name, value in metrics.items()}


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputTypeError(f"evaluate returned {name} = {value!r}, expected a number") from None


def has_validation(data: Data, batch_size: int) -> bool:
    """Whether there are examples to validate on, in a split "val"."""
    return "val" in data.splits and bool(list(data.epoch("val", batch_size, None)))


def default_evaluate(
    model: Model, data: Data, batch_size: int, monitor: str, communicator: Communicator
) -> Evaluate | None:
    """The default metrics after every epoch: the loss of the "val" split. None if there is no such split.

    Raises
    ------
    ValueError
        If ``monitor`` is not one of the metrics.
    TypeError
        If the model lacks ``nll``, or it takes no ``state`` where batches continue each other.
    """
    if not has_validation(data, batch_size):
        return None
    check_interface("model", model, ("nll",))
    if carries_state(data):
        check_takes_state(model, "nll")
    if monitor not in DEFAULT_METRICS:
        raise InputError(
            f"Solver: monitor is {monitor!r}, expected {' or '.join(DEFAULT_METRICS)}, "
            "or the argument evaluate, a function that returns it"
        )
    return partial(validation_loss, data=data, batch_size=batch_size, communicator=communicator)


def check_without_validation(options: Any, schedule: Schedule) -> None:
    """Check that the options of a solver without validation need none; the default monitor may be given.

    Raises
    ------
    ValueError
        If one of them needs the monitored metric. The error names it.
    """
    needs_validation = {
        "patience": options.patience is not None,
        "ema_decay": options.ema_decay is not None,
        "schedule": schedule.needs_validation,
        "monitor": options.monitor != MONITOR,
    }
    for name, needs in needs_validation.items():
        if needs:
            value = getattr(options, name)
            raise InputError(f"Solver: {name} is {value!r}, which needs a 'val' split or evaluate")
