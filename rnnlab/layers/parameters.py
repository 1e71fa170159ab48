"""Parameters and gradients by name, as layers with many of them take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import gradient_arrays
from rnnlab.types import Array


def select_params(
    function: str, params: Mapping[str, Array], names: Mapping[str, Any], *, argument: str = "params"
) -> dict[str, Array]:
    """The parameters of these names; ``argument`` is the caller's name for ``params``.

    Raises
    ------
    TypeError
        If they are not a mapping.
    ValueError
        If one is missing.
    """
    if not isinstance(params, Mapping):
        raise InputTypeError(
            f"{function}: {argument} is a {type(params).__name__}, expected a dict of arrays"
        )
    missing = [name for name in names if name not in params]
    if missing:
        raise InputError(
            f"{function}: {argument} has no {', '.join(missing)}, expected {', '.join(names)}; "
            f"found {', '.join(params) or 'nothing'}"
        )
    return {name: params[name] for name in names}


def gradients_of(
    function: str,
    params: Mapping[str, Array],
    like: Array,
    into: Mapping[str, Array] | None,
    **reads: Array | None,
) -> dict[str, Array]:
    """Arrays to add the gradients of these parameters into: those of ``into`` after a check, or zeros.

    ``reads`` are other arrays that the backward reads, by their names.

    Raises
    ------
    TypeError
        If ``into`` is not a mapping.
    ValueError
        If ``into`` lacks one, or it has another shape or dtype, or the memory of another array.
    """
    given = None if into is None else list(select_params(function, into, params, argument="into").values())
    return dict(zip(params, gradient_arrays(function, params, like, given, reads), strict=True))
