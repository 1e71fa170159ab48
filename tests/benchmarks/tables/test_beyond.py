"""Self-critical second stages of the papers' tables."""

import pytest

from benchmarks.tables.beyond import TABLES
from rnnlab.recipes.recipe import load_recipe
from tests.benchmarks.small_table import ROOT

STAGES = {each.id: each for each in TABLES["beyond"].trainings() if each.start is not None}


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch, tmp_path):
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path))
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", STAGES)
def test_a_self_critical_row_trains_as_the_second_stage_of_its_recipe(name):
    recipe = load_recipe("flickr8k_scst").stages()[1]
    (stage,) = load_recipe(STAGES[name].recipe, STAGES[name].all_changes).stages()
    assert stage.self_critical == recipe.self_critical
    for key in ("batch_size", "num_epochs", "optim_config", "schedule", "scheduled_sampling", "patience"):
        assert getattr(stage.training, key) == getattr(recipe.training, key)


@pytest.mark.parametrize("name", STAGES)
def test_a_self_critical_row_has_the_model_and_the_data_of_its_start(name):
    """The losses of [model] are 0 in the stage. All else must fit the parameters of the start."""
    training = STAGES[name]
    found = load_recipe(training.recipe, training.all_changes)
    start = load_recipe(training.start.recipe, training.start.all_changes)
    assert found.data == start.data
    assert found.model == start.model
