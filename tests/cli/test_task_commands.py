"""A command for one task refuses the run of another, and names its command."""

import pytest

from rnnlab.cli.task_commands import recipe_of
from rnnlab.recipes.recipe import ClassificationConfig, Config, TranslationConfig
from rnnlab.runs import load_run


def test_the_recipe_of_a_run(run):
    opened = load_run(run, with_data=False)
    assert recipe_of(opened, Config) is opened.config
    for kind in (TranslationConfig, ClassificationConfig):
        with pytest.raises(ValueError, match=f"holds a model that captions: rnnlab caption {run}"):
            recipe_of(opened, kind)
