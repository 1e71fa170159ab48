"""Recipes of several stages: what each starts from and trains, and runs that are interrupted and resumed."""

import io
import json
import re
import shutil
import signal
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.recipes.recipe import RecipeError, load_recipe, recipe_from_dict
from rnnlab.recipes.stages import check_stages
from rnnlab.reporting.record import read_records
from rnnlab.training import Callback, load_checkpoint

from .staged import Killed, acting_at, contents, kill, train

pytestmark = pytest.mark.usefixtures("no_pictures")

STAGES = [
    {"num_epochs": 2, "optim_config": {"learning_rate": 1e-2}, "trains": ["W*"]},
    {
        "num_epochs": 2,
        "update_rule": "adamw",
        "seed": 4,
        "trains": ["b_vocab", "*_embed", "Wx"],
        "losses": {"doubly_stochastic": 0.3},
        "scheduled_sampling": {"name": "linear", "start": 0.1, "stop": 0.9, "over": 2},
    },
]


@pytest.fixture
def tables(shapes):
    return tables_of(shapes)


def tables_of(shapes):
    return {
        "data": {"kind": "shapes", "directory": str(shapes), "features": "local"},
        "model": {"hidden_dim": 12, "wordvec_dim": 8, "attention": "additive", "output_dropout": 0.2},
        "training": {"batch_size": 40, "checkpoint_every": 2, "clip_norm": 5.0, "seed": 3},
        "stage": STAGES,
        "decoding": {"max_length": 8},
        "evaluation": {"metrics": ["BLEU"]},
    }


@pytest.fixture(scope="module")
def unbroken(shapes, tmp_path_factory):
    """A run that tests share and do not change, and the lines that it printed."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setattr("rnnlab.training.run_directory.RunDirectory.plot", lambda *args, **options: None)
        run = train(tables_of(shapes), tmp_path_factory.mktemp("unbroken") / "run")
    return run, printed.getvalue().splitlines()


# ------------------------------------------------------------------ what a stage is


def test_each_starts_from_the_best_of_the_one_before(unbroken):
    run, printed = unbroken
    path = run.directory
    names = list(run.model.params)
    weights = ", ".join(name for name in names if name.startswith("W"))
    assert printed[0].startswith(f"Stage 1 of 2: {weights.count(',') + 1} of {len(names)} parameters train: ")
    assert printed[0].endswith(f": {weights}.")
    three = f"3 of {len(names)} parameters train: W_embed, Wx, b_vocab; doubly_stochastic = 0.3."
    at = printed.index(f"Stage 2 of 2: {three}")
    best = path / "stage1/best.h5"
    assert printed[at + 1] == f"Warm start from {best}: {len(names)} parameters loaded."
    fresh = runs.new_model(run.recipe, run.data)
    first, last = (load_checkpoint(path / name) for name in ("stage1/best.h5", "last.h5"))
    for name in names:
        trained = name.startswith("W")
        assert (first.parameters[name].tobytes() != fresh.params[name].tobytes()) == trained, name
        trained = name in ("W_embed", "Wx", "b_vocab")
        assert (last.parameters[name].tobytes() != first.parameters[name].tobytes()) == trained, name
    assert [row["sampling"] for row in last.history] == pytest.approx([0.1, 0.5])
    assert "sampling" not in first.history[0]
    assert (len(first.losses), first.solver["options"]["seed"]) == (6, 3)
    assert (len(last.losses), last.solver["options"]["seed"]) == (6, 4)


def test_stages_are_recipes_that_start_from_one_another(tables, tmp_path, unbroken):
    path = unbroken[0].directory
    alone = {key: table for key, table in tables.items() if key != "stage"}
    train(alone | {"stage": STAGES[:1]}, tmp_path / "first")
    training = tables["training"] | {"warm_start": str(tmp_path / "first")}
    train(alone | {"training": training, "stage": STAGES[1:]}, tmp_path / "second")
    assert contents(path / "stage1/last.h5") == contents(tmp_path / "first/last.h5")
    assert contents(path / "last.h5") == contents(tmp_path / "second/last.h5")


def test_a_weight_of_a_stage_is_the_model_s(tables, tmp_path):
    del tables["stage"]
    tables["training"]["num_epochs"] = 1
    weights = {"losses": {"doubly_stochastic": 0.7}}
    train(tables, tmp_path / "none")
    train(tables | {"stage": [weights]}, tmp_path / "stage")
    train(tables | {"model": tables["model"] | {"doubly_stochastic": 0.7}}, tmp_path / "model")
    train(tables | {"stage": [{}]}, tmp_path / "empty")
    assert contents(tmp_path / "stage/last.h5") == contents(tmp_path / "model/last.h5")
    assert contents(tmp_path / "empty/last.h5") == contents(tmp_path / "none/last.h5")
    assert contents(tmp_path / "none/last.h5") != contents(tmp_path / "model/last.h5")


def test_arnet_joins_in_the_second_stage(tables, tmp_path):
    """Its parameters are there from the beginning, and do not move before their loss has a weight."""
    tables["model"] |= {"reconstructor_dim": 5}
    stages = [{"num_epochs": 1}, {"num_epochs": 1, "losses": {"reconstruction": 0.05}}]
    run = train(tables | {"stage": stages}, tmp_path / "run")
    fresh = runs.new_model(run.recipe, run.data)
    first, last = (load_checkpoint(tmp_path / "run" / name) for name in ("stage1/last.h5", "last.h5"))
    own = [name for name in run.model.params if "arnet" in name]
    assert own
    for name in own:
        assert first.parameters[name].tobytes() == fresh.params[name].tobytes()
        assert last.parameters[name].tobytes() != first.parameters[name].tobytes()


def test_a_loss_that_ends_with_the_first_stage_leaves_its_part(tables, tmp_path):
    tables["model"] |= {"reconstruction": 0.1}
    stages = [{"num_epochs": 1}, {"num_epochs": 1, "losses": {"reconstruction": 0.0}}]
    run = train(tables | {"stage": stages}, tmp_path / "run")
    assert run.model.reconstruction == 0
    found = runs.load_run(tmp_path / "run").model
    assert found.params.flat.tobytes() == run.model.params.flat.tobytes()
    first, last = (load_checkpoint(tmp_path / "run" / name) for name in ("stage1/best.h5", "last.h5"))
    assert first.parameters["arnet_W"].tobytes() == last.parameters["arnet_W"].tobytes()


@pytest.mark.slow
def test_a_run_of_stages_is_used_as_any_other(unbroken, capsys):
    path = unbroken[0].directory
    for directory in (path, path / "stage1"):
        assert cli.main(["caption", str(directory), "val"]) == 0
        assert len(capsys.readouterr().out.strip().splitlines()) >= 6
    run = runs.load_run(path)
    best = load_checkpoint(path / "best.h5").parameters
    np.testing.assert_array_equal(run.model.params.flat, best.flat)
    assert recipe_from_dict(json.loads(json.dumps(run.recipe.to_dict()))) == run.recipe


# ------------------------------------------------------------------ interruption


def press():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize("iteration", [4, 6, 7, 8, 9, 12])
def test_a_resumed_run_ends_as_an_unbroken_one(tables, tmp_path, unbroken, iteration):
    """Of 6 iterations and 6; the second stage has its first checkpoint after 8."""
    path, reference = tmp_path / "run", unbroken[0].directory
    with acting_at("_iterate", iteration, kill), pytest.raises(Killed):
        train(tables, path)
    assert (path / "last.h5").exists() == (iteration > 8)
    run = runs.resume(path, progress=False)
    assert not run.interrupted
    for name in ("stage1/last.h5", "stage1/best.h5", "last.h5", "best.h5"):
        assert contents(path / name) == contents(reference / name), name
    best = load_checkpoint(reference / "best.h5").parameters
    np.testing.assert_array_equal(run.model.params.flat, best.flat)


@pytest.mark.parametrize("iteration", [2, 5])
def test_ctrl_c(tables, tmp_path, iteration):
    tables["stage"] = [stage | {"num_epochs": 1} for stage in STAGES]
    with acting_at("_iterate", iteration, press):
        run = train(tables, tmp_path / "run")
    assert run.interrupted
    assert (tmp_path / "run/last.h5").exists() == (iteration > 3)
    assert not runs.resume(tmp_path / "run", progress=False).interrupted


def test_ctrl_c_when_a_stage_is_done_begins_no_other(tables, tmp_path):
    tables["stage"] = [stage | {"num_epochs": 1} for stage in STAGES]
    with acting_at("_end", 1, press):
        assert train(tables, tmp_path / "run").interrupted
    assert len(load_checkpoint(tmp_path / "run/stage1/last.h5").history) == 1
    assert not (tmp_path / "run/last.h5").exists()
    with acting_at("_end", 2, press):  # the first is that of the stage which is done
        assert not runs.resume(tmp_path / "run", progress=False).interrupted


def test_changes_are_not_of_a_stage_that_has_ended(tables, tmp_path):
    """Although the next one has not begun, and the run resumes from the ended stage's checkpoint."""
    tables["stage"] = [{"num_epochs": 1}, {"num_epochs": 1}]
    path = tmp_path / "run"
    with acting_at("_end", 1, press):
        train(tables, path)
    described = json.loads((path / "stage1/config.json").read_text())["solver"]
    with pytest.raises(RecipeError, match=r"stage\.1\.accumulate: stage 1 has ended, stage 2 is next"):
        runs.resume(path, progress=False, overrides=["stage.1.accumulate=2"])
    runs.resume(path, progress=False, overrides=["training.optim_config.learning_rate=0.5"])
    assert json.loads((path / "stage1/config.json").read_text())["solver"] == described
    first, second = (load_checkpoint(path / name) for name in ("stage1/last.h5", "last.h5"))
    assert first.solver["options"]["optim_config"]["learning_rate"] == 1e-3
    assert second.solver["options"]["optim_config"]["learning_rate"] == 0.5
    assert [row["learning_rate"] for row in first.history + second.history] == [1e-3, 0.5]


def test_changes_between_two_stages_stay_after_a_kill(tables, tmp_path):
    tables["stage"] = [{"num_epochs": 1}, {"num_epochs": 1}]
    path = tmp_path / "run"
    with acting_at("_end", 1, press):
        train(tables, path)
    with acting_at("_iterate", 1, kill), pytest.raises(Killed):
        runs.resume(path, progress=False, num_epochs=2)
    assert not (path / "last.h5").exists()
    runs.resume(path, progress=False)
    assert [len(load_checkpoint(path / name).history) for name in ("stage1/last.h5", "last.h5")] == [1, 2]


def test_a_stage_that_has_ended_can_get_more_epochs_before_the_next_begins(tables, tmp_path):
    tables["stage"] = [{"num_epochs": 1}, {"num_epochs": 1}]
    with acting_at("_end", 1, press):
        train(tables, tmp_path / "run")
    overrides = ["stage.1.num_epochs=2", "stage.1.optim_config.learning_rate=0.01"]
    runs.resume(tmp_path / "run", progress=False, overrides=overrides)
    first = load_checkpoint(tmp_path / "run/stage1/last.h5")
    assert [row["learning_rate"] for row in first.history] == [1e-3, 0.01]


@pytest.mark.parametrize("key", ["training", "stage.1"])
def test_fewer_epochs_end_a_stage_that_is_under_way(tables, tmp_path, key):
    tables["training"]["num_epochs"] = 3
    tables["stage"] = [{}, {"num_epochs": 1}]
    with acting_at("_iterate", 3 + 2, press):  # in the second epoch
        train(tables, tmp_path / "run")
    assert len(load_checkpoint(tmp_path / "run/stage1/last.h5").history) == 1
    runs.resume(tmp_path / "run", progress=False, overrides=[f"{key}.num_epochs=1"])
    assert len(load_checkpoint(tmp_path / "run/stage1/last.h5").history) == 1
    assert len(load_checkpoint(tmp_path / "run/last.h5").history) == 1


def test_more_epochs_are_the_last_stage_s(tmp_path, unbroken):
    path = shutil.copytree(unbroken[0].directory, tmp_path / "run")
    run = runs.resume(path, progress=False, num_epochs=3)
    assert len(load_checkpoint(path / "last.h5").history) == 3
    assert len(load_checkpoint(path / "stage1/last.h5").history) == 2
    assert [stage.training.num_epochs for stage in run.recipe.stages()] == [2, 3]


def test_no_epochs(tables):
    """A run that resumes in its first stage would save them, and end in its last."""
    with pytest.raises(ValueError, match="^with_epochs: num_epochs is 0, expected an integer of at least 1"):
        runs.with_epochs(recipe_from_dict(tables), 0)


def test_no_run_is_overwritten(tables, tmp_path, capsys):
    path = tmp_path / "run"
    with acting_at("_iterate", 6, kill), pytest.raises(Killed):
        train(tables, path)
    with pytest.raises(FileExistsError, match="already holds a run"):
        train(tables, path)
    assert cli.main(["train", "shapes", "--out", str(path)]) == 2
    assert "already holds a run: resume it with rnnlab train --resume" in capsys.readouterr().err
    with pytest.raises(ValueError, match=f"stage1 is one stage of 2 of a run: resume {path}"):
        runs.resume(path / "stage1")
    with pytest.raises(FileNotFoundError, match="holds no run: found neither best.h5 nor last.h5"):
        runs.resume(tmp_path / "none")


# ------------------------------------------------------------------ errors come before training


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trains": ["Wx", "W_memory"]}, "stage.2: trains has 'W_memory', which matches none of W_proj"),
        ({"trains": []}, "stage.2: trains is empty"),
    ],
)
def test_stages_that_do_not_fit_the_model(tables, tmp_path, change, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        train(tables | {"stage": [STAGES[0], change]}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"update_rule": "adamm"}, r"stage\.2\.update_rule is 'adamm', expected one of sgd"),
        ({"optim_config": {"beta1": -1}}, r"stage\.2\.\w+: beta1 is -1, expected a probability"),
        ({"num_epochs": 0}, r"stage\.2: num_epochs is 0, expected an integer of at least 1"),
    ],
)
def test_a_stage_that_is_changed_in_python(tables, tmp_path, change, message):
    recipe = recipe_from_dict(tables)
    first, second = recipe.stage
    with pytest.raises(ValueError, match=f"^{message}"):
        runs.train(replace(recipe, stage=[first, second.with_changes(**change)]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"monitor": "val_perplexity"}, "monitor is 'val_perplexity'"), ({"patience": 1}, "patience is 1")],
)
def test_stages_that_need_validation(tables, tmp_path, monkeypatch, change, message):
    opened = runs.open_data

    def open_without_val(table):
        data = opened(table)
        del data.splits["val"]
        return data

    monkeypatch.setattr("rnnlab.runs.training.open_data", open_without_val)
    with pytest.raises(
        ValueError, match=f"^stage.2: Solver: {message}, which needs a 'val' split or evaluate"
    ):
        train(tables | {"stage": [STAGES[0], change]}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_stage_may_turn_off_a_loss_whose_part_has_options(tables, tmp_path):
    """The model keeps its ARNet, so that ``detach_target`` has an effect in the other stages."""
    tables["model"] |= {"reconstruction": 0.1, "detach_target": True}
    run = train(tables | {"stage": [{"num_epochs": 1, "losses": {"reconstruction": 0.0}}]}, tmp_path / "run")
    assert (run.model.reconstruction, run.model.config()["detach_target"]) == (0.0, True)


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ({"doubly_stochastic": 0.3}, "losses: doubly_stochastic is 0.3, which needs attention 'additive'"),
        ({"discriminative": 0.3}, "losses: discriminative is 0.3, which needs the thought vectors of a"),
        ({"encoder_reconstruction": 0.1}, "losses.encoder_reconstruction is not a loss of this kind of mod"),
        (
            {"reconstruction": 0.1},
            "losses.reconstruction is 0.1, and the model lacks the parameters of that loss: set "
            "model.reconstructor_dim, which gives them",
        ),
    ],
    ids=str,
)
def test_a_weight_that_the_model_cannot_have(losses, message):
    """The recipe alone decides it."""
    tables = {"data": {"kind": "shapes"}, "stage": [{}, {"losses": losses}]}
    with pytest.raises(RecipeError) as error:
        recipe_from_dict(tables)
    assert f"config: stage.2.{message}" in str(error.value)
    if "encoder_reconstruction" not in losses:
        attends = {"attention": "dot", "reviewer": {"blocks": 1}}
        tables["model"] = attends | {"reconstructor_dim": 3, "discriminative_words": 2}
        tables["data"]["features"] = "local"
        recipe_from_dict(tables)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"num_epochs": 0}, "config: stage.2.num_epochs is 0, expected an integer of at least 1"),
        ({"prefetch": 3}, "config: stage.2.prefetch is unknown"),
        ({"trains": "W*"}, "config: stage.2.trains is 'W*', expected an array or 'none', such as [\"W*\"]"),
        ({"trains": [3]}, "config: stage.2.trains.1 is 3, expected a string"),
        (
            {"losses": {"label_smothing": 0.1}},
            "stage.2.losses.label_smothing is unknown; did you mean label_",
        ),
        ({"losses": {"label_smoothing": 1.0}}, "label_smoothing is 1.0, expected a probability in [0, 1)"),
        (
            {"update_rule": "sgd", "optim_config": {"beta1": 0.8}},
            "config: stage.2.optim_config: unknown key 'beta1'; sgd has learning_rate",
        ),
        ({"schedule": {"name": "cosin"}}, "config: stage.2.schedule: name is 'cosin', expected one of"),
        (
            {"scheduled_sampling": {"name": "constant"}},
            "stage.2.scheduled_sampling constant: value is missing",
        ),
        (
            {"monitor": "CIDEr"},
            "config: stage.2.monitor is 'CIDEr', expected one of val_loss, val_perplexity",
        ),
    ],
)
def test_errors_name_the_stage(stage, message):
    tables = {"data": {"kind": "shapes"}, "training": {"optim_config": {"beta1": 0.8}}, "stage": [{}, stage]}
    with pytest.raises(RecipeError) as error:
        recipe_from_dict(tables)
    assert message in str(error.value)


def test_a_key_of_a_stage_is_set_on_the_command_line(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text('data.kind = "shapes"\n[[stage]]\nnum_epochs = 2\n[[stage]]\noptim_config.beta1 = 0.5\n')
    recipe = load_recipe(path, ["stage.1.num_epochs=7", "stage.2.optim_config.beta2=0.6"])
    assert [stage.training.num_epochs for stage in recipe.stages()] == [7, 10]
    assert recipe.stages()[1].training.optim_config == {"beta1": 0.5, "beta2": 0.6}
    for override, message in (
        ("stage.1.num_epochs=0", "--set: stage.1.num_epochs is 0"),
        (
            "stage.3.num_epochs=1",
            "stage.3.num_epochs: there is no 3 here, expected a number from 1 to 2",
        ),
        ("stage.last.num_epochs=1", "there is no last here, expected a number from 1 to 2"),
        ("stage.1.num_epochs.x=1", "--set: stage.1.num_epochs.x: num_epochs is 2, expected a table"),
    ):
        with pytest.raises(RecipeError) as error:
            load_recipe(path, [override])
        assert message in str(error.value)


@pytest.mark.parametrize("data", [{"kind": "shapes"}, {"kind": "parallel", "directory": "y"}])
def test_warm_start_is_the_first_stage_s(data):
    tables = {"data": data, "training": {"warm_start": "x"}, "stage": [{}, {}, {"seed": 5}]}
    stages = recipe_from_dict(tables).stages()
    assert [str(stage.training.warm_start) for stage in stages] == ["x", "None", "None"]
    assert [stage.training.seed for stage in stages] == [0, 0, 5]
    paths = [str(stage.directory(Path("run"))) for stage in stages]
    assert paths == ["run/stage1", "run/stage2", "run"]


def test_what_no_stage_would_hear_of_is_refused():
    recipe = "shapes_two_stage"
    for key in ("num_epochs", "optim_config.learning_rate"):
        with pytest.raises(
            RecipeError, match=f"--set training.{key}: every stage has its own {key}, so set stage.1"
        ):
            load_recipe(recipe, [f"training.{key}=1"])
    assert load_recipe(recipe, ["training.batch_size=7"]).stages()[1].training.batch_size == 7
    changed = load_recipe(recipe, ["training.optim_config.beta1=0.8"]).stages()
    assert changed[1].training.optim_config == {"beta1": 0.8, "learning_rate": 5e-4}


@pytest.mark.parametrize(
    ("training", "stage", "override"),
    [
        ({}, {"update_rule": "sgd"}, "optim_config.learning_rate=0.5"),
        ({}, {"update_rule": "sgd"}, "optim_config={learning_rate=0.5}"),
        ({}, {"optim_config": {"learning_rate": 1e-3}}, "optim_config={learning_rate=0.5}"),
        (
            {"schedule": {"name": "exponential", "decay": 0.9}},
            {"schedule": {"name": "constant"}},
            "schedule.decay=0.5",
        ),
        ({}, {"weight_decay": {"W_*": 0.1}}, "weight_decay.Wx=0.5"),
        ({}, {"learning_rate_factors": {"W_*": 0.1}}, "learning_rate_factors.Wx=0.5"),
        ({}, {"monitor": "CIDEr"}, "monitor_mode=min"),
        ({}, {"monitor": "CIDEr", "monitor_mode": "max"}, "monitor_mode=min"),
    ],
    ids=str,
)
def test_a_key_that_all_stages_replace_is_refused(training, stage, override):
    """Also by another value of a table that holds it, or of a key that it belongs to."""
    tables = {"data": {"kind": "shapes"}, "training": training, "evaluation": {"each_epoch": ["CIDEr"]}}
    name = override.partition("=")[0]
    with pytest.raises(RecipeError, match=f"--set training.{name}: every stage has its own {name}, so set"):
        recipe_from_dict(tables | {"stage": [stage, stage]}, overrides=[f"training.{override}"])
    before = recipe_from_dict(tables | {"stage": [stage, {}]}).stages()
    after = recipe_from_dict(tables | {"stage": [stage, {}]}, overrides=[f"training.{override}"]).stages()
    assert after[0].training == before[0].training
    assert after[1].training != before[1].training


def test_options_that_stages_share_reach_them():
    tables = {"data": {"kind": "shapes"}, "stage": [{"optim_config": {"learning_rate": 1e-3}}]}
    (stage,) = recipe_from_dict(tables, overrides=["training.optim_config={beta1=0.8}"]).stages()
    assert stage.training.optim_config == {"beta1": 0.8, "learning_rate": 1e-3}
    same = {"data": {"kind": "shapes"}, "stage": [{"monitor": "val_loss", "update_rule": "adam"}]}
    (stage,) = recipe_from_dict(same, overrides=["training.monitor_mode=min"]).stages()
    assert stage.training.monitor_mode == "min"


def test_another_update_rule_takes_no_options_of_the_first():
    recipe = "shapes_two_stage"
    changes = ["training.optim_config.beta1=0.8", "stage.2.update_rule=sgd"]
    assert load_recipe(recipe, changes).stages()[1].training.optim_config == {"learning_rate": 5e-4}
    tables = {
        "data": {"kind": "shapes"},
        "training": {"update_rule": "adam", "optim_config": {"learning_rate": 3e-3, "beta1": 0.8}},
        "stage": [{}, {"update_rule": "sgd"}, {"update_rule": "adam"}],
    }
    first, other, again = (stage.training for stage in recipe_from_dict(tables).stages())
    assert not other.optim_config  # sgd has its own default
    assert first.optim_config == again.optim_config == tables["training"]["optim_config"]


def test_another_monitor_takes_no_mode_of_the_first():
    training = {"monitor": "val_loss", "monitor_mode": "min"}
    stages = [{}, {"monitor": "CIDEr"}, {"monitor": "val_loss"}, {"monitor": "CIDEr", "monitor_mode": "max"}]
    tables = {"data": {"kind": "shapes"}, "evaluation": {"each_epoch": ["CIDEr"]}}
    recipe = recipe_from_dict({**tables, "training": training, "stage": stages})
    assert [stage.training.monitor_mode for stage in recipe.stages()] == ["min", None, "min", "max"]


# ------------------------------------------------------------------ callbacks


class StopsAt(Callback):
    def __init__(self, *calls):
        self.calls, self.made = calls, 0

    def on_step(self, solver, loss, grads):
        self.made += 1
        if self.made in self.calls:
            solver.stop("a callback's reason")


@pytest.mark.slow
@pytest.mark.parametrize("iteration", [4, 6, 8])
def test_callbacks_of_all_stages(tables, tmp_path, unbroken, iteration):
    recipe = recipe_from_dict(tables | {"callbacks": {"json_lines": True, "every": 1}})
    path = tmp_path / "run"
    run = runs.train(recipe, path, progress=False, callbacks=[StopsAt(iteration)])
    assert run.interrupted
    assert run.stop_reason == "a callback's reason"
    run = runs.resume(path, progress=False)
    assert not run.interrupted
    for name in ("stage1/last.h5", "last.h5"):
        assert contents(path / name) == contents(unbroken[0].directory / name), name
    for stage in (path / "stage1", path):
        rows = [json.loads(line) for line in (stage / "log.jsonl").read_text().splitlines()]
        losses = [row["loss"] for row in rows if "loss" in row]
        assert losses == load_checkpoint(stage / "last.h5").losses.tolist()
        assert [row["epoch"] for row in rows if "epoch" in row] == [1, 2]


def test_a_missing_extra_is_found_before_training(tables, tmp_path, monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="TensorBoard needs tensorboardX"):
        train(tables | {"callbacks": {"tensorboard": True}}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        ({"tensorbord": True}, "config: callbacks.tensorbord is unknown; did you mean tensorboard?"),
        ({"tensorboard": 1}, "config: callbacks.tensorboard is 1, expected true or false"),
        ({"every": 0}, "config: callbacks.every is 0, expected an integer of at least 1"),
    ],
)
def test_bad_callbacks(tables, callbacks, message):
    with pytest.raises(RecipeError, match=re.escape(message)):
        recipe_from_dict(tables | {"callbacks": callbacks})


# ------------------------------------------------------------------ modules of update rules and schedules


def test_a_trained_model_is_loaded_without_the_modules_of_its_training(tables, tmp_path, monkeypatch):
    pytest.importorskip("pycocoevalcap")
    (tmp_path / "rules_of_a_user.py").write_text(
        "from rnnlab.training.optim import SGD\nfrom rnnlab.training.schedules import Cosine\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    cosine = {"name": "rules_of_a_user:Cosine", "over": 3}
    stages = [
        {"num_epochs": 1, "schedule": {"name": "warmup", "over": 2, "then": cosine}},
        {"num_epochs": 1, "update_rule": "rules_of_a_user:SGD", "weight_decay": 1e-3},
    ]
    training = tables["training"] | {"schedule": cosine}
    run = train(tables | {"training": training, "stage": stages}, tmp_path / "run")
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "rules_of_a_user")
    opened = runs.load_run(tmp_path / "run")
    assert opened.recipe == run.recipe
    assert runs.evaluate(opened).perplexity > 0
    assert read_records([tmp_path / "run"])[0].task != "unknown"
    with pytest.raises(
        RecipeError, match=r"last.h5: training.schedule: name is 'rules_of_a_user:Cosine', which cannot"
    ):
        runs.resume(tmp_path / "run")


# ------------------------------------------------------------------ decay and excluded parameters


def test_the_parameters_that_train_without_stages_and_as_the_default_of_stages(tables, tmp_path):
    training = tables["training"] | {"num_epochs": 1, "trains": ["!W_embed"]}
    run = train(tables | {"training": training, "stage": []}, tmp_path / "run")
    start = runs.new_model(run.recipe, run.data).params
    changed = {name for name in start if not np.array_equal(start[name], run.model.params[name])}
    assert changed == set(start) - {"W_embed"}
    stages = recipe_from_dict(
        tables | {"training": training, "stage": [{}, {"trains": ["b*"]}, {"trains": "none"}]}
    ).stages()
    assert [stage.options()["trains"] for stage in stages] == [["!W_embed"], ["b*"], None]


def test_decay_and_excluded_parameters_of_a_stage(tables, tmp_path):
    stages = [
        {"num_epochs": 1, "trains": ["!W_embed", "!*_vocab"], "weight_decay": {"Wx": 50.0}},
        {"num_epochs": 1, "update_rule": "adamw", "weight_decay": "none"},
    ]
    tables = tables | {"stage": stages, "training": tables["training"] | {"weight_decay": 1e-3}}
    run = train(tables, tmp_path / "run")
    first = load_checkpoint(tmp_path / "run/stage1/last.h5")
    start = runs.new_model(run.recipe, run.data).params
    np.testing.assert_array_equal(first.parameters["W_embed"], start["W_embed"])
    assert not np.array_equal(first.parameters["Wh"], start["Wh"])
    assert abs(first.parameters["Wx"]).sum() < 0.9 * abs(start["Wx"]).sum()
    assert load_checkpoint(tmp_path / "run/last.h5").solver["options"]["weight_decay"] is None


@pytest.mark.parametrize(
    ("training", "stage", "message"),
    [
        (
            {"weight_decay": -1},
            {},
            "config: training.weight_decay is -1, expected a finite number of at least 0",
        ),
        (
            {"learning_rate_factors": {"W": -1}},
            {},
            "training.learning_rate_factors['W'] is -1, expected a positive number",
        ),
        ({"weight_decay": {"W": "x"}}, {}, "training.weight_decay['W'] is 'x', expected a finite number"),
        (
            {"weight_decay": 1e-3},
            {"update_rule": "adamw"},
            "stage.1.weight_decay is given, but the update rule",
        ),
    ],
)
def test_bad_decays_and_factors(tables, training, stage, message):
    with pytest.raises(RecipeError, match=re.escape(message)):
        recipe_from_dict(tables | {"training": training, "stage": [stage]})


@pytest.mark.parametrize("option", ["weight_decay", "learning_rate_factors"])
def test_a_pattern_of_no_parameter_is_found_before_training(option, tables, tmp_path):
    stages = [{"num_epochs": 1}, {"num_epochs": 1, option: {"w_embed": 1e-3}}]
    with pytest.raises(ValueError, match=f"stage.2: {option} has 'w_embed', which matches none of"):
        train(tables | {"stage": stages}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_average_needs_validation_before_the_first_stage(tables):
    """All stages are checked before the first one is trained."""
    stages = [{"num_epochs": 1}, {"num_epochs": 1, "ema_decay": 0.9}]
    recipe = recipe_from_dict(tables | {"stage": stages})
    data = runs.open_data(recipe.data)
    del data.splits["val"]
    with pytest.raises(ValueError, match=r"stage.2: Solver: ema_decay is 0.9, which needs a 'val' split"):
        check_stages(recipe.stages(), runs.new_model(recipe, data), data)


def test_the_names_of_nested_tables(tables):
    found = repr(recipe_from_dict(tables).model)
    assert "RegularisationTable(" in found
    assert "ReviewerTable(" in found


def test_a_setting_that_reaches_no_stage_is_refused(tables):
    with pytest.raises(RecipeError, match="training.num_epochs"):
        recipe_from_dict(tables, overrides=["training.num_epochs=9"])
