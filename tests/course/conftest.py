"""What the tests with nbgrader share."""

import functools

import pytest


@pytest.fixture(scope="session")
def quick_databases():
    """Let nbgrader ask for the version of its database once: it starts a process for each new database."""
    api = pytest.importorskip("nbgrader.api")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "get_alembic_version", functools.cache(api.get_alembic_version))
        yield
