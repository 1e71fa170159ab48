import pytest


@pytest.fixture
def lenient(monkeypatch):
    """Arrays that no kernel takes go to NumPy."""
    monkeypatch.delenv("RNNLAB_STRICT")


@pytest.fixture
def normal(rng, dtype):
    return lambda *shape: rng.standard_normal(shape).astype(dtype)
