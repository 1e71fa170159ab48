"""A course with one notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..small_notebook import SOLUTIONS, cells, write


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("course") / "source/rnn/rnn.ipynb", cells(SOLUTIONS))
