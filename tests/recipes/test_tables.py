from __future__ import annotations

import inspect
import json
import sys
from dataclasses import fields, replace
from importlib import import_module
from typing import get_type_hints

import numpy as np
import pytest

from rnnlab import runs
from rnnlab.decoding.method_options import METHOD_OPTIONS
from rnnlab.layers import Regularisation
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.models.parts.reviewer import ReviewerOptions
from rnnlab.recipes.derived import arguments_of, help_of
from rnnlab.recipes.recipe import load_recipe
from rnnlab.recipes.stages import LossWeights, StageTable
from rnnlab.recipes.tables import (
    CallbacksTable,
    CaptioningEvaluationTable,
    CaptioningModelTable,
    ClassificationEvaluationTable,
    ClassificationModelTable,
    DecodingTable,
    TrainingTable,
    TranslationEvaluationTable,
    TranslationModelTable,
)
from rnnlab.training import Callback, Solver
from rnnlab.training.callbacks import GradientStatistics, JSONLines, TensorBoard, WeightsAndBiases

TABLES = [
    (CaptioningModelTable, CaptioningRNN),
    (TranslationModelTable, Seq2Seq),
    (ClassificationModelTable, SequenceClassifier),
    (TrainingTable, Solver),
]
each_table = pytest.mark.parametrize(("table", "constructor"), TABLES, ids=lambda each: each.__name__)


@each_table
def test_defaults_of_recipes_are_those_of_python(table, constructor):
    parameters = inspect.signature(constructor).parameters
    found = table()
    own = {"warm_start", "regularisation", "reviewer", *getattr(table, "files", ())}
    for key in {field.name for field in fields(table)} - own:
        default = parameters[key].default
        assert getattr(found, key) == ("float32" if default is np.float32 else default), key


@each_table
def test_every_key_has_help(table, constructor):
    assert [key for key, text in help_of(table).items() if not text] == []


@pytest.mark.parametrize(
    ("key", "options"), [("regularisation", Regularisation), ("reviewer", ReviewerOptions)]
)
def test_some_options_are_a_table_of_their_own(key, options):
    table = getattr(CaptioningModelTable(), key)
    assert {field.name: getattr(table, field.name) for field in fields(table)} == options()._asdict()
    assert all(help_of(type(table)).values())


def test_keys_of_a_stage_are_those_of_training_with_the_same_values():
    training, stage = (get_type_hints(table, include_extras=True) for table in (TrainingTable, StageTable))
    assert set(stage) - set(training) == {"losses", "self_critical"}
    assert {key: stage[key] for key in set(stage) & set(training)} == {
        key: training[key] for key in set(stage) & set(training)
    }


def test_callbacks_of_a_recipe(monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: True)
    assert CallbacksTable().callbacks() == []
    table = CallbacksTable(json_lines=True, tensorboard=True, wandb=True, gradients=True, every=3)
    made = table.callbacks()
    assert [type(each) for each in made] == [JSONLines, TensorBoard, WeightsAndBiases, GradientStatistics]
    assert {each.every for each in made} == {3}
    assert all(help_of(CallbacksTable).values())


@pytest.fixture
def own_callbacks(tmp_path, monkeypatch):
    """A module of callbacks."""
    (tmp_path / "own_callbacks.py").write_text(
        "from rnnlab.training import Callback\n\n\n"
        "class Counts(Callback):\n    steps = 0\n\n"
        "    def on_step(self, solver, loss, grads):\n        Counts.steps += 1\n\n"
        "    def on_epoch(self, solver):\n        solver.history[-1]['steps'] = Counts.steps\n\n\n"
        "class Needs(Callback):\n    def __init__(self, folder, level=3):\n        pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("own_callbacks")
    del sys.modules["own_callbacks"]


def test_callbacks_of_your_own(own_callbacks):
    table = CallbacksTable(json_lines=True, own=["own_callbacks:Counts"])
    first, second = (table.callbacks() for _ in range(2))
    assert [type(each) for each in first] == [own_callbacks.Counts, JSONLines]
    assert first[0] is not second[0]  # each stage has its own
    with pytest.raises(TypeError, match="own is 'own_callbacks:Needs', which needs folder, expected a class"):
        CallbacksTable(own=["own_callbacks:Needs"]).callbacks()
    with pytest.raises(ValueError, match="callbacks.own is 'own_callbacks:Absent', which cannot be imported"):
        CallbacksTable(own=["own_callbacks:Absent"]).callbacks()
    with pytest.raises(ValueError, match="own has 'Counts', expected 'package.module:Class'"):
        CallbacksTable(own=["Counts"])


@pytest.mark.slow
def test_a_recipe_trains_with_callbacks_of_your_own(own_callbacks, tmp_path):
    changes = ["data.kind=digits", "data.max_train=64", "training.num_epochs=1", "training.batch_size=32"]
    changes += ['callbacks.own=["own_callbacks:Counts"]', "callbacks.json_lines=true"]

    class Adds(Callback):
        def on_epoch(self, solver):
            solver.history[-1]["added"] = 1.5

    recipe = load_recipe("digits_lstm", changes)
    runs.train(recipe, tmp_path / "run", callbacks=[Adds()], progress=False)
    assert own_callbacks.Counts.steps == 2
    *_, epoch = map(json.loads, (tmp_path / "run" / "log.jsonl").read_text().splitlines())
    assert (epoch["steps"], epoch["added"]) == (2, 1.5)  # logs have the columns of other callbacks
    assert runs.load_run(tmp_path / "run").recipe.callbacks.own == ["own_callbacks:Counts"]


def test_weights_of_losses_are_those_of_the_models():
    for name, annotation in get_type_hints(LossWeights, include_extras=True).items():
        arguments = arguments_of(CaptioningRNN if name == "doubly_stochastic" else Seq2Seq)
        assert annotation == arguments[name].annotation


@pytest.mark.parametrize(("method", "keys"), METHOD_OPTIONS.items())
def test_keys_of_another_method_have_no_effect(method, keys):
    values = {"beam_size": 4, "length_penalty": 0.5, "num_groups": 3, "temperature": 0.5, "top_k": 2}
    for key, value in values.items():
        if key not in keys:
            with pytest.raises(ValueError, match=f"{key} is {value}, which needs method .* found '{method}'"):
                DecodingTable(method, **{key: value})


@pytest.mark.parametrize("num_groups", [0, 3])
def test_groups_divide_the_beam(num_groups):
    with pytest.raises(ValueError, match=f"num_groups is {num_groups}, expected a divisor of 4, beam_size"):
        DecodingTable(beam_size=4, num_groups=num_groups)


def test_keys_without_effect_get_their_defaults_where_others_change():
    recipe = DecodingTable(beam_size=4, length_penalty=0.5, normalisation="gnmt", num_groups=2, diversity=1.0)
    assert recipe.changed(method="greedy", max_length=7) == DecodingTable("greedy", max_length=7)
    assert recipe.changed(num_groups=1).diversity == recipe.changed(method="sample").diversity == 0.5
    assert recipe.changed(length_penalty=0.0).normalisation == "power"
    assert recipe.changed(beam_size=6) == replace(recipe, beam_size=6)
    with pytest.raises(ValueError, match="beam_size is 5, which needs method beam, found 'sample'"):
        recipe.changed(method="sample", beam_size=5)


@pytest.mark.parametrize(
    "table", [CaptioningEvaluationTable, TranslationEvaluationTable, ClassificationEvaluationTable]
)
def test_how_many_are_scored(table):
    with pytest.raises(ValueError, match=f"^{table.limit} is -5, expected an integer of at least 1 or None"):
        replace(table(), **{table.limit: -5})
    assert getattr(table().of_first(3), table.limit) == 3
