"""Runs for tests of something else than training: without the pictures and the scores of ``rnnlab train``."""

from pathlib import Path

import pytest

from rnnlab import runs
from rnnlab.recipes import load_recipe


def train(recipe, out, *changes):
    """Train a recipe or its file with some ``key=value``, and return the directory of the run."""
    given = load_recipe(recipe, changes) if isinstance(recipe, str | Path) else recipe
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rnnlab.training.run_directory.RunDirectory.plot", lambda *args, **options: None)
        runs.train(given, out, progress=False)
    return out
