"""A command for one task refuses the run of another, and names its command."""

from dataclasses import replace
from pathlib import Path

import pytest

from rnnlab.cli.task_commands import recipe_of
from rnnlab.recipes.recipe import CaptioningRecipe, ClassificationRecipe, TranslationRecipe
from rnnlab.runs import load_run


def test_the_recipe_of_a_run(run):
    opened = load_run(run, with_data=False)
    assert recipe_of(opened, CaptioningRecipe) is opened.recipe
    for kind in (TranslationRecipe, ClassificationRecipe):
        with pytest.raises(ValueError, match=f"holds a model that captions: rnnlab caption {run} IMAGES$"):
            recipe_of(opened, kind)


def test_the_command_is_one_for_a_shell(run):
    opened = replace(load_run(run, with_data=False), directory=Path("my runs/one"))
    with pytest.raises(
        ValueError, match="^my runs/one holds .* that captions: rnnlab caption 'my runs/one' IMAGES$"
    ):
        recipe_of(opened, ClassificationRecipe)
