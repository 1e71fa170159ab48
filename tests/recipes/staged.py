"""Runs of recipes with stages: training, interruption, and what two equal runs have in common."""

from contextlib import contextmanager

import numpy as np
import pytest

from rnnlab import runs
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.training import Solver, load_checkpoint


def train(tables, path):
    return runs.train(recipe_from_dict(tables), path, progress=False)


class Killed(Exception):
    """Stands for a kill: training ends where it is."""


def kill():
    raise Killed


@contextmanager
def acting_at(method, call, action):
    """Within it, the solvers call ``action`` before this call of their method, counted from 1."""
    calls, original = [], getattr(Solver, method)

    def acting(solver, *arguments):
        calls.append(1)
        if len(calls) == call:
            action()
        return original(solver, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Solver, method, acting)
        yield


def contents(path):
    """All that a checkpoint holds but times and the recipe."""
    checkpoint = load_checkpoint(path)
    history = [
        {key: value for key, value in row.items() if key not in ("seconds", "tokens_per_second")}
        for row in checkpoint.history
    ]
    arrays = [checkpoint.parameters.flat, checkpoint.losses, *checkpoint.optimiser.values()]
    return history, checkpoint.solver["rng"], [np.asarray(array).tobytes() for array in arrays]
