"""Checks of the arguments of primitives on CuPy, before a kernel accesses their memory."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import cupy as cp
import numpy as np

from rnnlab.errors import InputTypeError
from rnnlab.ops.arguments import PRIMITIVES, Declaration, add_seen

__all__ = ["checked"]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_STEP = "prev_h (n, H); h! (n, H)"
_BACKWARD = "prev_h (n, H)"
REGULARISED = {
    name: Declaration(text)
    for name, text in {
        "rnn_regularised_forward": f"gates! (n, H); {_STEP}",
        "rnn_regularised_backward": "dh! (n, H); gates (n, H); da! (n, H)",
        "lstm_regularised_forward": (
            "gates! (n, 4H); prev_h (n, H); prev_c (n, H); c! (n, H); tanh_c! (n, H); h! (n, H)"
        ),
        "lstm_regularised_backward": (
            "dh! (n, H); dc! (n, H); gates (n, 4H); prev_c (n, H); tanh_c (n, H); da! (n, 4H)"
        ),
        "gru_candidate_regularised_forward": f"gates! (n, 3H); {_STEP}",
        "gru_candidate_regularised_backward": f"dh! (n, H); gates (n, 3H); {_BACKWARD}; da! (n, 3H)",
        "simplified_gru_regularised_forward": f"gates! (n, 2H); {_STEP}",
        "simplified_gru_regularised_backward": f"dh! (n, H); gates (n, 2H); {_BACKWARD}; da! (n, 2H)",
    }.items()
}


def checked(function: _Function) -> _Function:
    """Check types, dtypes and shapes of a primitive's arrays as :mod:`rnnlab.ops.arguments` declares them.

    Indices are not read, because that would wait for the device. A combination of shapes that has been
    checked is stored and not checked again.
    """
    name = function.__name__
    declaration = REGULARISED.get(name) or PRIMITIVES[name]
    signature = inspect.signature(function)
    positions = {key: place for place, key in enumerate(signature.parameters)}
    places = [positions[argument.name] for argument in declaration.arguments]
    optional = {name for name, each in signature.parameters.items() if each.default is None}
    seen: set[tuple[Any, ...]] = set()

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            key = tuple([(type(a), a.shape, a.dtype) for a in [arguments[place] for place in places]])
        except (AttributeError, IndexError):  # not arrays, or keyword arguments
            key = None
        if key is None or key not in seen:
            given = signature.bind(*arguments, **options).arguments
            left_out = {name for name in optional if given.get(name) is None}
            _check(name, declaration, given, left_out)
            if key is not None:
                add_seen(seen, key)
        return function(*arguments, **options)

    return run  # type: ignore[return-value]


def _check(name: str, declaration: Declaration, arrays: dict[str, Any], left_out: set[str]) -> None:
    for argument in declaration.arguments:
        if argument.name in left_out:
            continue
        array = arrays[argument.name]
        if not isinstance(array, cp.ndarray):
            kind = f"{type(array).__module__}.{type(array).__name__}"
            raise InputTypeError(f"{name}: {argument.name} is {kind}, expected a CuPy array")
        if argument.size and array.dtype != np.int64:
            raise InputTypeError(
                f"{name}: {argument.name} has dtype {array.dtype}, expected int64; ops.indices converts it"
            )
    declaration.check(name, arrays)
