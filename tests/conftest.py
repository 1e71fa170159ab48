"""Fixtures of all tests, and the settings of hypothesis."""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from types import ModuleType

import matplotlib
import numpy as np
import pytest
from hypothesis import settings

from .browsing import browse, browser  # noqa: F401, fixtures
from .one_in import pytest_collection_modifyitems  # noqa: F401, a hook
from .simulated_cupy import install

# Containers often forbid bytecode. Tests start many processes and import modules anew: compile each once.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["RNNLAB_STRICT"] = "1"  # a kernel that does not take an array is an error, not a slower way
matplotlib.use("Agg")
# The default: the same examples in every run. pytest --hypothesis-profile=explore draws new ones.
settings.register_profile("rnnlab", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=500, print_blob=True)
settings.load_profile("rnnlab")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of tests/oracle."""
    group = parser.getgroup("oracle", "random configurations against PyTorch, with -m oracle")
    group.addoption("--oracle-count", type=int, default=1000, help="number of new configurations")
    group.addoption("--oracle-seed", type=int, help="of the one configuration to repeat")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """The garbage collector does not search the many objects of the tests, while they are made or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with the same seed for every test."""
    return np.random.default_rng(231)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """CuPy's stand-in: its arrays are in NumPy's memory, its kernels run on the CPU."""
    if lacking := install.missing():
        pytest.skip(lacking)
    monkeypatch.setenv("RNNLAB_PERSISTENT", "0")  # all blocks at once take long here; some tests ask for them
    with install.installed() as cupy:
        yield cupy


@pytest.fixture(params=["simulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> ModuleType:
    """CuPy to test with: its stand-in everywhere, the real one in the tests that need a GPU."""
    if request.param == "simulated":
        return request.getfixturevalue("simulated")
    return importlib.import_module("cupy")


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs draw nothing: drawing is most of the time that short ones take."""
    monkeypatch.setattr("rnnlab.training.run_directory.RunDirectory.plot", lambda *args, **options: None)


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


@pytest.fixture(scope="session")
def quick_databases() -> Iterator[None]:
    """Let nbgrader ask for the version of its database once: it starts a process for each new database."""
    api = pytest.importorskip("nbgrader.api")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "get_alembic_version", functools.cache(api.get_alembic_version))
        yield
