"""Fixtures of the tests of the stand-in."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def stream(device: ModuleType) -> Any:
    """A stream that can capture."""
    return device.cuda.Stream(non_blocking=True)


@pytest.fixture
def x(device: ModuleType, rng: np.random.Generator) -> Any:
    """A small matrix."""
    return device.asarray(rng.standard_normal((3, 4)))
