"""The parameters that a layer reads, and the arrays that its backward adds their gradients to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.overlap import in_same_memory
from rnnlab.ops import ops_for
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


def gradient_arrays(
    function: str,
    params: Mapping[str, Array],
    like: Array,
    into: Sequence[Array] | None,
    reads: Mapping[str, Array | None] = MappingProxyType({}),
) -> Sequence[Array]:
    """Return the arrays that a backward adds its parameter gradients to.

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors.
    params : mapping of str to array
        The parameter that each gradient belongs to, by the gradient's name, such as ``{"dW": W}``.
    like : array
        An array of the library and the dtype that the gradients must have.
    into : tuple or list of arrays, or None
        The arrays that the caller gave; None for new arrays of zeros.
    reads : mapping of str to array, optional
        Other arrays that the backward reads, by their names.

    Returns
    -------
    sequence of arrays
        ``into`` itself, or one array of zeros for each parameter.

    Raises
    ------
    ValueError
        If ``into`` is not a tuple of one array for each parameter, or an array has another shape or dtype or
        shares memory with a parameter, with an array that is read or with another one of ``into``.
    TypeError
        If an entry of ``into`` is not an array.
    """
    if into is None:
        return [ops_for(like).zeros(param.shape, like.dtype) for param in params.values()]
    if not isinstance(into, tuple | list) or len(into) != len(params):
        found = f"{len(into)} arrays" if isinstance(into, tuple | list) else type(into).__name__
        raise InputError(f"{function}: into is {found}, expected a tuple of {', '.join(params)}")
    for (name, param), array in zip(params.items(), into, strict=True):
        if not hasattr(array, "shape"):
            raise InputTypeError(
                f"{function}: into has a {type(array).__name__} for {name}, expected an array"
            )
        if array.shape != param.shape or array.dtype != like.dtype:
            raise InputError(
                f"{function}: into has {name} of shape {array.shape} and dtype {array.dtype}, "
                f"expected {param.shape} and {like.dtype}"
            )
    # tied parameters, which are one array, may have one gradient
    own = {(id(array), id(param)): name for (name, param), array in zip(params.items(), into, strict=True)}
    given = dict(zip(params, into, strict=True))
    read = {f"the parameter of {name}": param for name, param in params.items()} | dict(reads)
    if shared := in_same_memory({name: given[name] for name in own.values()}, read):
        raise InputError(f"{function}: into has {shared[0]} in the memory of {shared[1]}, expected its own")
    return into


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
