"""What every test may use."""

from __future__ import annotations

import importlib.util

import matplotlib
import numpy as np
import pytest
from hypothesis import settings

matplotlib.use("Agg")
settings.register_profile(
    "rnnlab", deadline=None, derandomize=True
)  # the same examples everywhere, however slow
settings.load_profile("rnnlab")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with the same seed for every test."""
    return np.random.default_rng(231)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test that asks for a GPU where there is none: a skip would look like a pass."""
    if item.get_closest_marker("gpu") and not _has_gpu():
        pytest.fail("marked gpu, and CuPy finds no CUDA device here", pytrace=False)


def _has_gpu() -> bool:
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    try:
        return cupy.cuda.runtime.getDeviceCount() > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False
