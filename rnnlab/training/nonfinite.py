"""Checks for NaN and infinity, and the error that names the parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rnnlab.errors import RnnlabError
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters


class NonFiniteError(RnnlabError, FloatingPointError):
    """A loss, a gradient, a parameter or a metric became NaN or infinite.

    Attributes
    ----------
    parameter : str or None
        The name of the parameter that has the value, if one has.
    before : list of Recorded
        The unread records of earlier iterations; see :mod:`rnnlab.training.gradient_monitor`.
    """

    def __init__(self, message: str, parameter: str | None = None, before: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.parameter, self.before = parameter, list(before)


def check_iteration(
    iteration: int,
    loss: float,
    norm: float,
    params: Parameters,
    grads: Parameters,
    before: Sequence[Any] = (),
) -> None:
    """Check the loss and the gradient of an iteration, before its update.

    Parameters
    ----------
    iteration : int
        Counted from 1.
    loss : float
    norm : float
        The norm of the gradient, which is not finite if an element is not.
    params, grads : Parameters
        Searched for the first value that is not finite. The gradient may be that of a later iteration.
    before : sequence
        Attribute of the error.

    Raises
    ------
    NonFiniteError
        If the loss or the gradient is not finite; names the first parameter that has such a value.
    """
    if math.isfinite(loss) and math.isfinite(norm):
        return
    found = [] if math.isfinite(loss) else [f"the loss is {loss}"]
    culprits = []
    for what, arrays in (("parameter", params), ("the gradient of", grads)):
        index = ops_for(arrays.flat).first_non_finite(arrays.flat)
        if index is not None:
            culprits.append(arrays.name_at(index))
            found.append(f"{what} {culprits[-1]!r} has {float(arrays.flat[index])}")
    found = found or [f"the gradient's norm is {norm}"]  # the gradient has been overwritten
    raise NonFiniteError(
        f"iteration {iteration}: {', '.join(found)}; a smaller learning rate or clip_norm may help, if "
        "the data are finite",
        culprits[0] if culprits else None,
        before,
    )


def check_parameters(iteration: int, params: Parameters) -> None:
    """Raise NonFiniteError if a parameter is not finite after an iteration; names it."""
    index = ops_for(params.flat).first_non_finite(params.flat)
    if index is not None:
        name = params.name_at(index)
        raise NonFiniteError(
            f"iteration {iteration}: parameter {name!r} has {float(params.flat[index])} and was not saved; "
            "a smaller learning rate or clip_norm may help",
            name,
        )
