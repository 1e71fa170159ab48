from __future__ import annotations

import tomllib

import pytest

from rnnlab.recipes.overrides import with_overrides
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.recipes.schema import RecipeError
from rnnlab.recipes.template import template


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("model.hidden_dim = 64", "model.hidden_dim", 64),
        ("model.cell_type=rnn", "model.cell_type", "rnn"),
        ("model.cell_type='rnn'", "model.cell_type", "rnn"),
        ("new.table.x={a = [1.5]}", "new.table.x", {"a": [1.5]}),
        ("data.directory=a=b", "data.directory", "a=b"),
        ("data.directory=1\nother = 2", "data.directory", "1\nother = 2"),
        ("data.max_train=" + "1" * 1900, "data.max_train", int("1" * 1900)),
        ("stage.2.rate=1", "stage.2.rate", 1),
    ],
)
def test_a_value_goes_where_its_key_says_and_the_tables_given_stay(override, key, value):
    tables = {"model": {"hidden_dim": 3}, "stage": [{"rate": 5}, {}]}
    found, keys = with_overrides(tables, [override])
    assert keys == [key]
    for step in key.split("."):
        found = found[int(step) - 1] if isinstance(found, list) else found[step]
    assert found == value
    assert tables == {"model": {"hidden_dim": 3}, "stage": [{"rate": 5}, {}]}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model", "--set: 'model', expected key.sub=value"),
        ("model..x=1", "--set: 'model..x=1', expected key.sub=value"),
        ("model.x.y=1", "--set: model.x.y: x is 3, expected a table"),
        (".".join("a" * 99) + "=1", f"--set: {'a.' * 20!r} has 99 parts, expected at most 16"),
        ("x=" + "[" * 1900, "--set: found tables or arrays nested deeper than 16, expected fewer"),
        ("x=" + "[" * 99 + "]" * 99, "--set: found tables or arrays nested deeper than 16, expected fewer"),
        ("stage.0.x=1", "--set: stage.0.x: there is no 0 here, expected a number from 1 to 1"),
        ("stage.first.x=1", "--set: stage.first.x: there is no first here, expected a number from 1 to 1"),
    ],
)
def test_a_key_that_leads_nowhere_is_refused(override, message):
    with pytest.raises(RecipeError) as error:
        with_overrides({"model": {"x": 3}, "stage": [{}]}, [override])
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.x=1", "model.x = 1"], "model.x is given twice, expected once"),
        (["model.x=1", "model={}"], "model replaces model.x, which is given before it: give model first"),
        (["model={}", "model.x=1", "model.xy=2", "model.y.z=1", "model.y.w=2"], None),
    ],
    ids=str,
)
def test_an_override_does_not_undo_another_one(overrides, message):
    if message is None:
        assert with_overrides({}, overrides)[0] == {"model": {"x": 1, "xy": 2, "y": {"z": 1, "w": 2}}}
        return
    with pytest.raises(RecipeError) as error:
        with_overrides({}, overrides)
    assert str(error.value) == f"--set: {message}"


@pytest.mark.parametrize(
    ("table", "key", "value"), [("optim_config", "learning_rate", 0.5), ("schedule", "name", "constant")]
)
def test_an_override_makes_a_table_of_one_that_is_none(table, key, value):
    tables = tomllib.loads(template("shapes"))
    assert tables["training"][table] == "none"
    recipe = recipe_from_dict(tables, overrides=[f"training.{table}.{key}={value}"])
    assert getattr(recipe.training, table) == {key: value}


def test_overrides_are_a_list():
    with pytest.raises(RecipeError, match="^overrides is 'a=1', expected a list of texts"):
        with_overrides({}, "a=1")


def test_a_key_of_a_stage_of_a_recipe_without_stages():
    for tables in ({}, {"stage": []}):
        with pytest.raises(RecipeError) as error:
            with_overrides(tables, ["stage.1.num_epochs=2"])
        expected = 'the recipe has no stages; --set "stage=[{num_epochs=4}]" makes one'
        assert str(error.value) == f"--set: stage.1.num_epochs: {expected}"
