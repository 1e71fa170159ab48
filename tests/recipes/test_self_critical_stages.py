"""Self-critical stages of captioning recipes: training, resuming, options that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab import runs
from rnnlab.recipes.recipe import RecipeError, recipe_from_dict
from rnnlab.training import load_checkpoint

from .staged import Killed, acting_at, contents, kill, train

pytest.importorskip("pycocoevalcap")
pytestmark = pytest.mark.usefixtures("no_pictures")

SELF_CRITICAL = {
    "num_epochs": 2,
    "batch_size": 9,
    "accumulate": 2,
    "self_critical": {"samples": 3, "max_length": 12},
}


@pytest.fixture
def tables(shapes):
    return {
        "data": {"kind": "course", "directory": str(shapes), "features": "local", "lazy": True},
        "model": {
            "hidden_dim": 12,
            "wordvec_dim": 8,
            "attention": "additive",
            "output_dropout": 0.2,
            "doubly_stochastic": 0.1,
            "label_smoothing": 0.1,
        },
        "training": {"batch_size": 40, "monitor": "CIDEr", "seed": 3, "checkpoint_every": 1},
        "stage": [{"num_epochs": 2, "optim_config": {"learning_rate": 1e-2}}, SELF_CRITICAL],
        "decoding": {"method": "greedy", "max_length": 8},
        "evaluation": {"metrics": ["CIDEr"], "each_epoch": ["CIDEr"]},
    }


@pytest.mark.slow
def test_the_second_stage_trains_for_the_reward(tables, tmp_path, capsys):
    run = train(tables, tmp_path / "run")
    assert "all 13 parameters train; self-critical: 3 samples, baseline mean." in capsys.readouterr().out
    first, last = (load_checkpoint(tmp_path / "run" / name) for name in ("stage1/last.h5", "last.h5"))
    assert len(first.losses) == 2 * 3  # 120 captions
    assert len(last.losses) == 2 * 3  # 24 images
    assert {"reward", "baseline_reward", "sampled_length", "CIDEr"} <= set(last.history[0])
    assert "reward" not in first.history[0]
    for row in last.history:
        assert row["reward"] == pytest.approx(row["baseline_reward"])  # the mean of leave-one-out means
    assert last.parameters.flat.tobytes() != first.parameters.flat.tobytes()
    assert (run.model.label_smoothing, run.model.doubly_stochastic) == (0, 0)
    assert runs.load_run(tmp_path / "run").recipe.stages()[1].self_critical.samples == 3
    assert np.isfinite(runs.evaluate(run).scores.corpus["CIDEr"])


@pytest.mark.slow
def test_losses_without_targets_are_added(tables, tmp_path):
    tables["stage"][1] = SELF_CRITICAL | {"losses": {"doubly_stochastic": 0.2}}
    assert train(tables, tmp_path / "run").model.doubly_stochastic == 0.2
    row = load_checkpoint(tmp_path / "run/last.h5").history[0]
    assert row["doubly_stochastic"] > 0


MODELS = [
    ({"features": "pca"}, {"attention": None, "image_input": "first_input", "cell_type": "gru"}),
    ({"features": "local", "global_features": "pca"}, {"target_attention": True, "output": "deep"}),
    ({"features": "local"}, {"reviewer": {"blocks": 2, "steps": 2}}),
    ({"features": "local"}, {"loss_average": "token", "reconstruction": 0.1, "selector": True}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("data", "model"), MODELS)
@pytest.mark.parametrize("baseline", ["mean", "greedy"])
def test_any_captioning_model(tables, tmp_path, data, model, baseline):
    tables["data"] |= data
    tables["model"] |= {"doubly_stochastic": 0.0} | model
    stage = SELF_CRITICAL | {"num_epochs": 1, "self_critical": {"samples": 2, "baseline": baseline}}
    run = train(tables | {"stage": [stage]}, tmp_path / "run")
    history = load_checkpoint(tmp_path / "run/last.h5").history
    assert 0 < history[0]["sampled_length"] < 22  # at most 20 words and <END>
    assert (history[0]["reward"] == pytest.approx(history[0]["baseline_reward"])) == (baseline == "mean")
    assert np.isfinite(run.model.params.flat).all()


def test_the_built_in_data(tables, shapes, tmp_path):
    tables["data"] = {"kind": "shapes", "directory": str(shapes), "features": "local", "max_train": 30}
    train(tables | {"stage": [SELF_CRITICAL]}, tmp_path / "run")
    assert len(load_checkpoint(tmp_path / "run/last.h5").losses) <= 2 * 3


@pytest.mark.slow
def test_a_killed_stage_resumes_bit_for_bit(tables, tmp_path):
    train(tables, tmp_path / "whole")
    with acting_at("_iterate", 6 + 5, kill), pytest.raises(Killed):  # the fifth of the second stage
        train(tables, tmp_path / "run")
    assert len(load_checkpoint(tmp_path / "run/last.h5").losses) == 4
    runs.resume(tmp_path / "run", progress=False)
    assert contents(tmp_path / "run/last.h5") == contents(tmp_path / "whole/last.h5")


@pytest.mark.slow
def test_a_single_stage_starts_from_another_run(tables, tmp_path):
    train(tables | {"stage": tables["stage"][:1]}, tmp_path / "first")
    training = tables["training"] | {"warm_start": str(tmp_path / "first")}
    train(tables | {"training": training, "stage": [SELF_CRITICAL]}, tmp_path / "second")
    train(tables, tmp_path / "both")
    assert contents(tmp_path / "second/last.h5") == contents(tmp_path / "both/last.h5")


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"self_critical": {"samples": 1}}, "stage.2.self_critical.samples is 1, expected at least 2 with"),
        ({"self_critical": {"sample": 3}}, "stage.2.self_critical.sample is unknown; did you mean samples?"),
        ({"self_critical": {"baseline": "best"}}, "self_critical.baseline is 'best', expected one of 'mean'"),
        ({"self_critical": {"max_length": 0}}, "stage.2.self_critical.max_length is 0"),
        (
            {"self_critical": {}, "monitor": "val_loss"},
            "stage.2.monitor is 'val_loss', expected a score such",
        ),
        (
            {"self_critical": {"dropout": True}},
            "stage.2.self_critical.dropout is True, which needs dropout or zoneout in [model]",
        ),
        (
            {"self_critical": {}, "losses": {"label_smoothing": 0.1}},
            "stage.2.losses.label_smoothing is 0.1, expected 0 in self-critical training",
        ),
        (
            {"self_critical": {}, "scheduled_sampling": {"name": "constant", "value": 0.1}},
            "stage.2.scheduled_sampling is given, expected 'none' with self_critical",
        ),
    ],
)
def test_options_that_do_not_fit(tables, stage, message):
    tables["stage"][1] = stage
    if "dropout" in stage["self_critical"]:
        recipe_from_dict(tables)
        tables["model"]["output_dropout"] = 0.0
    with pytest.raises(RecipeError) as error:
        recipe_from_dict(tables)
    assert message in str(error.value)


@pytest.mark.parametrize("data", [{"kind": "parallel", "directory": "x"}, {"kind": "digits"}])
def test_only_captioning_recipes_have_it(data):
    tables = {"data": data, "stage": [{"self_critical": {}}]}
    with pytest.raises(RecipeError, match=r"stage.1.self_critical is for models that caption images"):
        recipe_from_dict(tables)


def test_the_table_is_saved_with_the_recipe(tables):
    recipe = recipe_from_dict(tables)
    again = recipe_from_dict(recipe.to_dict())
    assert again == recipe
    assert again.stages()[0].self_critical is None
    assert again.stages()[1].self_critical.baseline == "mean"
