"""The models of the gradient check, one of each architecture, by name."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from rnnlab.gradcheck.model_cases import model_cases

_CASES = {name: case for name, *case in model_cases(np.random.default_rng(0))}
NAMES = list(_CASES)


def case_called(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A copy of the case's model, which a test may move to a device, and its batch."""
    model, batch = _CASES[name]
    return copy.deepcopy(model), batch
