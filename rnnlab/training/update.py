"""One update: the gradient of a batch, looked at and clipped, and the update rule's step."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from rnnlab.parameters import Parameters
from rnnlab.training.clipping import clip_by_value, gradient_norm, norm_scale
from rnnlab.training.finite import check_iteration
from rnnlab.training.freezing import Trained
from rnnlab.training.options import Options
from rnnlab.training.protocols import Array, Model
from rnnlab.training.state import TrainingState


def check_sampled(model: Model, scheduled_sampling: Mapping[str, Any] | None) -> None:
    """Raise TypeError if there is to be scheduled sampling, and the model's loss takes no ``sampling``."""
    if scheduled_sampling is None:
        return
    arguments = inspect.signature(model.loss).parameters
    if "sampling" not in arguments and all(each.kind is not each.VAR_KEYWORD for each in arguments.values()):
        raise TypeError(
            f"scheduled_sampling is given, but the loss of this {type(model).__name__} takes no sampling"
        )


class Update:
    """Updates the parameters of a model, batch after batch, with room for the gradient of its own.

    Parameters
    ----------
    model : Model
    options : Options

    Raises
    ------
    ValueError
        If ``trains`` has a pattern that matches no parameter.
    TypeError
        If there is to be scheduled sampling, and the model's loss takes no ``sampling``.
    """

    def __init__(self, model: Model, options: Options) -> None:
        self._trained = Trained(model.params, options.trains)
        check_sampled(model, options.scheduled_sampling)
        self._model, self._options = model, options
        self._grads = model.params.zeros_like()

    def __call__(self, batch: tuple[Array, ...], state: TrainingState) -> tuple[float, float]:
        """Update by a batch; return the loss, and the norm of the gradient before clipping.

        Raises
        ------
        NonFiniteError
            If the loss or the gradient is not finite. Nothing is updated then.
        """
        params, options = self._model.params, self._options
        sampling: dict[str, Any] = {} if state.sampling is None else {"sampling": state.sampling}
        loss, grads = self._model.loss(*batch, rng=state.noise, grads=self._grads, **sampling)
        self._trained.clear_frozen(grads)
        loss, norm = float(loss), gradient_norm(grads)
        check_iteration(state.iteration + 1, loss, norm, params, grads)
        state.rule.step(
            params.flat,
            grads.flat,
            scale=_clip(grads, norm, options),
            rate=state.multiplier,
            parts=self._trained.parts,
        )
        return loss, norm


def _clip(grads: Parameters, norm: float, options: Options) -> float:
    """Clip by value in place; return the factor that clips by norm."""
    if options.clip_value is not None:
        clip_by_value(grads, options.clip_value)
        if options.clip_norm is not None:
            norm = gradient_norm(grads)
    return norm_scale(norm, options.clip_norm)
