import dataclasses
from types import SimpleNamespace

import pytest

from rnnlab.data import Vocabulary
from rnnlab.recipes.recipe import (
    CaptioningRecipe,
    ClassificationRecipe,
    LanguageRecipe,
    TranslationRecipe,
    data_tables,
    load_recipe,
    recipe_from_dict,
)
from rnnlab.recipes.shipped import names
from rnnlab.recipes.stages import check_stages
from rnnlab.tasks import TASKS, captioning, task_of, task_of_data
from rnnlab.tasks.task import Task, chosen_on, limited


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.outputs)
def test_a_task_opens_every_kind_of_its_data(task):
    assert set(task.openers) == set(data_tables(task.recipe_type).values())
    if task.scores_sentences:
        assert "decoding" in {field.name for field in dataclasses.fields(task.recipe_type)}


@pytest.mark.parametrize("name", names())
def test_the_model_and_the_stages_of_every_recipe_fit(name):
    """With few units, and a stand-in for the data, which may not be here."""
    recipe = load_recipe(name)
    widths = {
        field.name: 4
        for field in dataclasses.fields(recipe.model)
        if field.name.endswith("_dim") and getattr(recipe.model, field.name) is not None
    }
    recipe = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, **widths))
    vocabulary = Vocabulary(["<NULL>", "<START>", "<END>", "<UNK>", "a", "dog"])
    data = SimpleNamespace(
        name="data",
        vocabulary=vocabulary,
        source_vocabulary=vocabulary,
        num_classes=10,
        splits=("train", "val"),
        epoch=lambda split, batch_size, rng: [0],
        num_features=5,
        num_global_features=3 if getattr(recipe.data, "global_features", None) else None,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captioning, "check_features", lambda recipe, data: None)
        model = task_of(recipe).new_model(recipe, data)
    check_stages(recipe.stages(), model, data)
    assert model.params.flat.size > 0


def test_recipes_and_tables_have_one_task():
    tables = {
        CaptioningRecipe: {"kind": "shapes"},
        TranslationRecipe: {"kind": "habeas", "directory": "x"},
        LanguageRecipe: {"kind": "text", "train": "x"},
        ClassificationRecipe: {"kind": "digits"},
    }
    for recipe_type, data in tables.items():
        recipe = recipe_from_dict({"data": data})
        assert task_of(recipe).recipe_type is recipe_type
        assert task_of_data(recipe.data) is task_of(recipe)
        with pytest.raises(TypeError, match=r"table is a \w*Recipe, expected the table \[data\] of a recipe"):
            task_of_data(recipe)
    with pytest.raises(TypeError, match="recipe is a str, expected a recipe, as load_recipe returns"):
        task_of("shapes")


@pytest.mark.parametrize(
    "name", ["new_model", "inputs", "check_ensemble", "combined", "epoch_scores", "evaluate"]
)
def test_a_task_without_one_of_its_methods_cannot_be_made(name):
    methods = {each: getattr(captioning.CaptioningTask, each) for each in Task.__abstractmethods__}
    type("Whole", (Task,), methods)()
    del methods[name]
    with pytest.raises(TypeError, match=name):
        type("Incomplete", (Task,), methods)()


def test_self_critical_training_is_of_captioning_alone():
    for task in TASKS:
        if task.recipe_type is not CaptioningRecipe:
            with pytest.raises(NotImplementedError, match=f"{type(task).__name__} has no self-critical"):
                task.self_critical(None, None)


def test_scores_of_the_split_that_chose_the_epoch_have_a_note():
    recipe = load_recipe("shapes")
    assert chosen_on("test", recipe) == []
    assert chosen_on("val", load_recipe("shapes", ["training.restore_best=false"])) == []
    (note,) = chosen_on("val", recipe)
    assert "chosen on val" in note


def test_limits():
    assert [limited(wanted, 5) for wanted in (None, 3, 9)] == [5, 3, 5]
