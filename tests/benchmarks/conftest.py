import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks is not installed

from benchmarks import making, turns
from tests.benchmarks.small_table import ROOT, FakeCommand


@pytest.fixture(autouse=True)
def same_threads(monkeypatch):
    """Leave the environment alone: numba does not compile if it asks for another number of threads."""
    monkeypatch.setattr(turns, "THREADS", ())


@pytest.fixture
def command(monkeypatch):
    """The command, which trains nothing; the working directory is the project's."""
    fake = FakeCommand()
    monkeypatch.setattr(making, "rnnlab", fake)
    monkeypatch.setattr(making, "declined", lambda: "")
    monkeypatch.chdir(ROOT)
    return fake
