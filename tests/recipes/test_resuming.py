"""The keys of a saved recipe that may change when its run resumes."""

from __future__ import annotations

import re

import pytest

from rnnlab.recipes.recipe import RecipeError, recipe_from_dict
from rnnlab.recipes.resuming import changes_within_a_run, check_changeable

STAGES = [{"num_epochs": 2}, {"num_epochs": 3, "optim_config": {"learning_rate": 0.5}}]


def changes(overrides, stages=(), under_way=1):
    check_changeable(overrides)
    saved = recipe_from_dict({"data": {"kind": "shapes"}, "stage": list(stages)}).to_dict()
    recipe = recipe_from_dict(saved, "config", overrides)
    return changes_within_a_run(overrides, recipe, recipe.stages()[under_way - 1])


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], {}),
        (["training.optim_config.learning_rate=0.1"], {"learning_rate": 0.1}),
        (["training.num_epochs = 7", "training.patience=2"], {"num_epochs": 7, "patience": 2}),
        (["training.matmul=bfloat16"], {"matmul": "bfloat16"}),
        (["callbacks.tensorboard=true"], {}),
    ],
)
def test_a_recipe_without_stages(overrides, expected):
    assert changes(overrides) == expected


@pytest.mark.parametrize(
    ("overrides", "under_way", "expected"),
    [
        (["stage.1.optim_config.learning_rate=0.1"], 1, {"learning_rate": 0.1}),
        (["stage.2.optim_config.learning_rate=0.1"], 1, {}),  # it has not begun: its recipe says so
        (["training.optim_config.learning_rate=0.1"], 1, {"learning_rate": 0.1}),
        (["stage.2.num_epochs=9"], 2, {"num_epochs": 9}),
    ],
)
def test_stages(overrides, under_way, expected):
    assert changes(overrides, STAGES, under_way) == expected


def test_a_key_of_training_is_for_the_stages_that_lack_it():
    stages = [{"num_epochs": 2}, {"update_rule": "sgd"}]
    assert changes(["training.num_epochs=50"], stages, 1) == {}
    assert changes(["training.num_epochs=50"], stages, 2) == {"num_epochs": 50}
    assert changes(["training.optim_config.learning_rate=0.1"], stages, 1) == {"learning_rate": 0.1}
    same_rule = [{"update_rule": "adam"}]
    assert changes(["training.optim_config.learning_rate=0.1"], same_rule) == {"learning_rate": 0.1}


@pytest.mark.parametrize(
    ("stages", "under_way", "key"),
    [
        (STAGES, 2, "optim_config.learning_rate"),
        ([{"num_epochs": 2}, {"update_rule": "sgd"}], 2, "optim_config.learning_rate"),
        ([{"patience": 2}, {"num_epochs": 2}], 2, "num_epochs"),  # not of the stage that has ended
    ],
)
def test_a_key_of_training_that_no_stage_takes(stages, under_way, key):
    message = f"--set training.{key}: stage {under_way} has its own {key}, so set stage.{under_way}.{key}"
    with pytest.raises(RecipeError, match=f"^{re.escape(message)}$"):
        changes([f"training.{key}=4"], stages, under_way)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "model.hidden_dim=3",
            "--set model.hidden_dim: it cannot change within a run; train a new run, which can copy",
        ),
        (
            "decoding.beam_size=3",
            "a run; rnnlab evaluate, caption and translate have options for it. A resumed",
        ),
        ("training.batch_size=3", "--set training.batch_size: it cannot change within a run"),
        ("training.optim_config.beta1=0.5", "--set training.optim_config.beta1: it cannot change"),
        ("stage.1.num_epochs=5", "--set stage.1.num_epochs: stage 1 has ended, stage 2 is next"),
        ("stage.2.trains=['W*']", "--set stage.2.trains: it cannot change"),
        ("stage=[{num_epochs=4}]", "--set stage: it cannot change"),
        ("stage.2={num_epochs=4}", "--set stage.2: it cannot change"),
    ],
)
def test_what_cannot_change(override, message):
    with pytest.raises(RecipeError, match=re.escape(message)):
        changes([override], STAGES, 2)
