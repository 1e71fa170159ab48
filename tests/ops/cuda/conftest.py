"""What the tests of the primitives on CuPy share."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture
def ops(device):
    """The primitives, with the device that they work on."""
    return importlib.import_module("rnnlab.ops.cuda")


@pytest.fixture
def normal(rng, dtype):
    """A function that draws an array of a shape."""
    return lambda *shape: rng.standard_normal(shape).astype(dtype)
