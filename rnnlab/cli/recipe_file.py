"""Recipes as arguments. If the argument is the directory of a run, the error suggests how to resume it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rnnlab.recipes.recipe import Recipe, load_recipe
from rnnlab.shell import quoted
from rnnlab.training.run_directory import holds_run


def read_recipe(recipe: str, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe with some of its keys changed: see :func:`~rnnlab.recipes.load_recipe`.

    Raises
    ------
    FileNotFoundError
        If it is the directory of a run. The error suggests ``--resume``.
    """
    if holds_run(Path(recipe)):
        raise FileNotFoundError(
            f"recipe {recipe} is the directory of a run: resume it with rnnlab train --resume "
            f"{quoted(recipe)}, or give the file of a recipe"
        )
    return load_recipe(recipe, overrides)
