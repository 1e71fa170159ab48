"""The options that only one method of search has, and the options that need a value of another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.errors import InputError

# The names are those of the arguments of `beam_search` and `sample`.
METHOD_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "greedy": (),
    "beam": ("beam_size", "n_best", "length_penalty", "normalisation", "num_groups", "diversity"),
    "sample": ("temperature", "top_k", "top_p"),
}


class Need(NamedTuple):
    """What an option needs to have an effect: ``values`` of another ``option``, in words."""

    option: str
    values: str


def unmet_needs(values: Mapping[str, Any]) -> dict[str, Need]:
    """The options that have no effect beside the others, and what each of them needs.

    Parameters
    ----------
    values : mapping
        ``method``, ``num_groups`` and ``length_penalty``; other options have no influence.
    """
    method = values["method"]
    unmet = {
        option: Need("method", of)
        for of, options in METHOD_OPTIONS.items()
        for option in options
        if of != method
    }
    if values["num_groups"] == 1:
        unmet.setdefault("diversity", Need("num_groups", "of at least 2"))
    if not values["length_penalty"]:
        unmet.setdefault("normalisation", Need("length_penalty", "above 0"))
    return unmet


def check_needs(prefix: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Check that the options that have no effect beside the others have their defaults.

    Parameters
    ----------
    prefix : str
        The beginning of the error.
    values : mapping
        The argument of :func:`unmet_needs`, and the options to check.
    defaults : mapping
        The default of each option to check.

    Raises
    ------
    ValueError
        If an option without effect has another value.
    """
    for option, need in unmet_needs(values).items():
        if option in defaults and values[option] != defaults[option]:
            raise InputError(
                f"{prefix}{option} is {values[option]!r}, which needs {need.option} {need.values}, "
                f"found {values[need.option]!r}; expected {defaults[option]!r}, the default"
            )
