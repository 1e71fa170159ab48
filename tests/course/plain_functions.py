"""The right answers that the tests of rnnlab.course use as a student's functions: those of rnnlab.plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rnnlab.course.student_functions import CELLS, SIGNATURES
from rnnlab.plain import affine, embedding, gru, lstm, rnn, simplified_gru, softmax

_MODULES = (affine, embedding, gru, lstm, rnn, simplified_gru, softmax)

Functions = dict[str, Callable[..., Any]]

PLAIN: Functions = {
    name: next(getattr(module, name) for module in _MODULES if hasattr(module, name)) for name in SIGNATURES
}

SHARED: Functions = {
    name: function for name, function in PLAIN.items() if not any(name in names for names in CELLS.values())
}


def sequences(cell: str) -> Functions:
    """The sequence functions of a cell."""
    return {name: PLAIN[name] for name in (f"{cell}_forward", f"{cell}_backward")}


def steps(cell: str) -> Functions:
    """The step functions of a cell."""
    return {name: PLAIN[name] for name in (f"{cell}_step_forward", f"{cell}_step_backward")}
