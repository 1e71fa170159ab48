"""Recipes as arguments: a file that is missing is reported with the names of those that are there."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

from rnnlab.recipes.recipe import Recipe, load_config
from rnnlab.runs import holds_run


def read_recipe(path: str, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, with some of its keys changed: see :func:`~rnnlab.recipes.recipe.load_config`.

    Raises
    ------
    FileNotFoundError
        If there is no such file; suggests recipes of similar names in its folder and in ``recipes``, and
        ``--resume`` for the directory of a run.
    """
    if holds_run(Path(path)):
        raise FileNotFoundError(
            f"recipe {path} is the directory of a run: resume it with rnnlab train --resume {path}, "
            "or give the file of a recipe"
        )
    if not Path(path).is_file():
        kind = "is a directory" if Path(path).is_dir() else "does not exist"
        raise FileNotFoundError(f"recipe {path} {kind}{_suggestion(path)}")
    return load_config(path, overrides)


def _suggestion(path: str) -> str:
    folders = dict.fromkeys([Path(path).parent, Path("recipes")])
    recipes = {recipe.stem: recipe for folder in folders for recipe in sorted(folder.glob("*.toml"))}
    close = difflib.get_close_matches(Path(path).stem, recipes, n=3)
    if close:
        return f"; did you mean {' or '.join(os.fspath(recipes[stem]) for stem in close)}?"
    if recipes:
        return f"; there are {', '.join(map(os.fspath, recipes.values()))}"
    return ", expected a TOML file such as recipes/shapes.toml in the repository of rnnlab"
