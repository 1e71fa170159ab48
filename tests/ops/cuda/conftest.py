"""What the tests of the primitives on CuPy share."""

from __future__ import annotations

import importlib
import os

import pytest


@pytest.fixture(autouse=True)
def _no_pool(request):
    """With RNNLAB_TEST_RAW_MEMORY, each array has memory of its own: the tools see accesses outside it.

    A pool rounds sizes up, and gives out memory that another array has initialised.
    """
    if not (os.environ.get("RNNLAB_TEST_RAW_MEMORY") and request.node.get_closest_marker("gpu")):
        yield
        return
    cupy = importlib.import_module("cupy")
    cupy.cuda.set_allocator(None)  # cudaMalloc
    yield
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


@pytest.fixture
def ops(device):
    """The primitives, with the device that they work on."""
    return importlib.import_module("rnnlab.ops.cuda")


@pytest.fixture(params=[4096, 2], ids=["many blocks", "two blocks"])
def blocks(request, ops, monkeypatch):
    """At most so many blocks of a kernel: of two, each works on several rows."""
    monkeypatch.setattr(importlib.import_module("rnnlab.ops.cuda.launch"), "_BLOCKS", request.param)
    monkeypatch.setattr(importlib.import_module("rnnlab.ops.cuda.beams"), "_MOST_BLOCKS", request.param)


@pytest.fixture
def normal(rng, dtype):
    """A function that draws an array of a shape."""
    return lambda *shape: rng.standard_normal(shape).astype(dtype)
