"""Parameters and gradients by name, as layers with many of them take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.errors import InputError
from rnnlab.layers.checks import gradient_arrays
from rnnlab.types import Array


def select_params(function: str, params: Mapping[str, Array], names: Mapping[str, Any]) -> dict[str, Array]:
    """The parameters of these names.

    Raises
    ------
    ValueError
        If one is missing.
    """
    missing = [name for name in names if name not in params]
    if missing:
        raise InputError(
            f"{function}: params has no {', '.join(missing)}, expected {', '.join(names)}; "
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
    ValueError
        If ``into`` lacks one, or it has another shape or dtype, or the memory of another array.
    """
    given = None if into is None else list(select_params(f"{function}: into", into, params).values())
    return dict(zip(params, gradient_arrays(function, params, like, given, reads), strict=True))
