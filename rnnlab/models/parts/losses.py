"""The losses that models add to the cross-entropy, and label smoothing, which changes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.errors import InputError, InputTypeError
from rnnlab.options import described
from rnnlab.types import Array


class LossPart(NamedTuple):
    """A part of a model that computes a loss and has parameters.

    Attributes
    ----------
    name : str
        The model's attribute.
    size : str
        The option that sets its size. If it is left out, a model has the part only if the weight of the loss
        is not 0.
    """

    name: str
    size: str


class LossTerm(NamedTuple):
    """What a loss needs.

    Attributes
    ----------
    part : LossPart, optional
    true_sentences : bool
        Whether the loss needs human sentences. On sampled ones it would train a model to repeat its samples.
    """

    part: LossPart | None = None
    true_sentences: bool = False


# By the options and attributes of models that weight them.
LOSSES: Mapping[str, LossTerm] = {
    "reconstruction": LossTerm(LossPart("reconstructor", "reconstructor_dim")),
    "encoder_reconstruction": LossTerm(LossPart("encoder_reconstructor", "encoder_reconstructor_dim")),
    "label_smoothing": LossTerm(true_sentences=True),
    "doubly_stochastic": LossTerm(),
    "discriminative": LossTerm(LossPart("discriminator", "discriminative_words"), true_sentences=True),
}


def checked_loss(function: str, found: Any, *, like: Array) -> tuple[Any, Array]:
    """What a loss of a subclass has returned: its value, and a gradient that is like an array.

    Raises
    ------
    ValueError, TypeError
        If it is something else. The error begins with ``function``.
    """
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise InputTypeError(f"{function} returned {described(found)}, expected two results: loss, gradient")
    loss, gradient = found
    if not isinstance(loss, int | float) and getattr(loss, "shape", None) != ():
        raise InputTypeError(f"{function}: its loss is {described(loss)}, expected a number")
    expected = f"{like.dtype} of shape {like.shape}"
    if not hasattr(gradient, "dtype"):
        raise InputTypeError(f"{function}: its gradient is {described(gradient)}, expected {expected}")
    if (gradient.shape, gradient.dtype) != (like.shape, like.dtype):
        raise InputError(
            f"{function}: its gradient is {gradient.dtype} of shape {gradient.shape}, expected {expected}"
        )
    return loss, gradient


def check_sampled_losses(prefix: str, weights: Mapping[str, Any]) -> None:
    """Check that no loss of true sentences is added in training on sampled sentences.

    Parameters
    ----------
    prefix : str
        The beginning of the error, before the name of the loss.
    weights : mapping of str to float
        The weights of losses.

    Raises
    ------
    ValueError
        If a loss that needs true sentences has a weight other than 0.
    """
    for name, weight in weights.items():
        if weight and LOSSES[name].true_sentences:
            raise InputError(
                f"{prefix}{name} is {weight}, expected 0 in self-critical training: it is a loss of true "
                "sentences, and there are only sampled ones"
            )
