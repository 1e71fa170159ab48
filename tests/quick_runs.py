"""Runs for tests of something else than training: without the pictures and the scores of ``rnnlab train``."""

import pytest

from rnnlab import runs
from rnnlab.recipes import load_recipe


def train(recipe, out, *changes):
    """Train a recipe's file with some ``key=value``, and return the directory of the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rnnlab.training.run_directory.RunDirectory.plot", lambda *args, **options: None)
        runs.train(load_recipe(recipe, changes), out, progress=False)
    return out
