from __future__ import annotations

import inspect
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest

from rnnlab.layers import Regularisation
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.models.parts.reviewer import ReviewerOptions
from rnnlab.recipes.derived import arguments_of, help_of
from rnnlab.recipes.stages import LossWeights, StageConfig
from rnnlab.recipes.tables import (
    CallbacksConfig,
    ClassifierConfig,
    ModelConfig,
    Seq2SeqConfig,
    TrainingConfig,
)
from rnnlab.training import Solver
from rnnlab.training.callbacks import GradientStatistics, JSONLines, TensorBoard, WeightsAndBiases

TABLES = [
    (ModelConfig, CaptioningRNN),
    (Seq2SeqConfig, Seq2Seq),
    (ClassifierConfig, SequenceClassifier),
    (TrainingConfig, Solver),
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
    table = getattr(ModelConfig(), key)
    assert {field.name: getattr(table, field.name) for field in fields(table)} == options()._asdict()
    assert all(help_of(type(table)).values())


def test_keys_of_a_stage_are_those_of_training_with_the_same_values():
    training, stage = (get_type_hints(table, include_extras=True) for table in (TrainingConfig, StageConfig))
    assert set(stage) - set(training) == {"losses", "self_critical"}
    assert {key: stage[key] for key in set(stage) & set(training)} == {
        key: training[key] for key in set(stage) & set(training)
    }


def test_callbacks_of_a_recipe(monkeypatch):
    for module in ("tensorboard", "weights_and_biases"):
        monkeypatch.setattr(f"rnnlab.training.callbacks.{module}.find_spec", lambda name: True)
    assert CallbacksConfig().callbacks() == []
    table = CallbacksConfig(json_lines=True, tensorboard=True, wandb=True, gradients=True, every=3)
    made = table.callbacks()
    assert [type(each) for each in made] == [JSONLines, TensorBoard, WeightsAndBiases, GradientStatistics]
    assert {each.every for each in made} == {3}
    assert all(help_of(CallbacksConfig).values())


def test_weights_of_losses_are_those_of_the_models():
    for name, annotation in get_type_hints(LossWeights, include_extras=True).items():
        arguments = arguments_of(CaptioningRNN if name == "doubly_stochastic" else Seq2Seq)
        assert annotation == arguments[name].annotation
