"""The class of the cases of :mod:`rnnlab.gradcheck.run`, and the sizes of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rnnlab.types import Array

CELLS = ("rnn", "lstm", "gru", "simplified_gru")  # the built-in cells
N, T, D, H, V = 3, 4, 5, 4, 6  # three sequences, of which one is empty
LENGTHS = np.array([2, T, 0])
A, L = 2, 3  # units of additive scores, slots of a memory; all slots of one sequence are masked
MEMORY_MASK = np.array([[True, False, True], [False, False, False], [True, True, True]])


class Case(NamedTuple):
    """A layer to check."""

    name: str
    forward: Callable[..., tuple[Any, ...]]  # (**inputs) -> (*outs, cache)
    backward: Callable[..., Any]  # (*douts, cache) -> the inputs' gradients, in their order
    inputs: dict[str, Array]
