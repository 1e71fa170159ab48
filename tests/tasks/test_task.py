import dataclasses
from typing import get_args, get_type_hints

import pytest

from rnnlab.recipes.recipe import ClassificationConfig, Config, TranslationConfig
from rnnlab.tasks import TASKS, task_of, task_of_data
from rnnlab.tasks.task import chosen_on, limited


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.makes)
def test_a_task_opens_every_kind_of_its_data(task):
    assert set(task.openers) == set(get_args(get_type_hints(task.recipe)["data"]))
    assert task.writes_sentences == ("decoding" in {field.name for field in dataclasses.fields(task.recipe)})


def test_recipes_and_tables_have_one_task():
    tables = {
        Config: {"kind": "shapes"},
        TranslationConfig: {"kind": "habeas", "directory": "x"},
        ClassificationConfig: {"kind": "digits"},
    }
    for recipe, data in tables.items():
        config = recipe.from_dict({"data": data})
        assert task_of(config).recipe is recipe
        assert task_of_data(config.data) is task_of(config)


def test_scores_of_the_split_that_chose_the_epoch_have_a_note():
    assert chosen_on("test") == []
    (note,) = chosen_on("val")
    assert "chosen on val" in note


def test_limits():
    assert [limited(wanted, 5) for wanted in (None, 3, 9)] == [5, 3, 5]
