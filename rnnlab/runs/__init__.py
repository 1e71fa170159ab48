"""Runs: train a recipe, resume, load, evaluate.

>>> from rnnlab.recipes import load_recipe
>>> recipe = load_recipe("shapes")                                   # doctest: +SKIP
>>> run = train(recipe, "runs/shapes")                               # doctest: +SKIP
>>> evaluate(run, "test").scores.corpus["BLEU-4"]                    # doctest: +SKIP
"""

from rnnlab.runs.evaluating import discrepancy, evaluate
from rnnlab.runs.loading import Run, load_run, new_model, open_data, open_data_of_run
from rnnlab.runs.training import resume, train, with_epochs

__all__ = [
    "Run",
    "discrepancy",
    "evaluate",
    "load_run",
    "new_model",
    "open_data",
    "open_data_of_run",
    "resume",
    "train",
    "with_epochs",
]
