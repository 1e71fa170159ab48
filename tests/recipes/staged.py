"""Runs of recipes with stages, and what two equal ones have in common."""

import numpy as np

from rnnlab import runs
from rnnlab.recipes.recipe import Config
from rnnlab.training import load_checkpoint


def train(tables, path):
    return runs.train(Config.from_dict(tables), path, progress=False)


def contents(path):
    """All that a checkpoint holds but times and the recipe."""
    checkpoint = load_checkpoint(path)
    history = [
        {key: value for key, value in row.items() if key not in ("seconds", "tokens_per_second")}
        for row in checkpoint.history
    ]
    arrays = [checkpoint.parameters.flat, checkpoint.losses, *checkpoint.optimiser.values()]
    return history, checkpoint.solver["rng"], [np.asarray(array).tobytes() for array in arrays]
