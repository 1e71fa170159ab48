"""A rule and a schedule from outside the package, through all that the solver does with its own."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from rnnlab import cli
from rnnlab.recipes.recipe import load_recipe
from rnnlab.training import (
    SCHEDULES,
    UPDATE_RULES,
    Solver,
    load_checkpoint,
    make_update_rule,
    register_schedule,
    register_update_rule,
)
from rnnlab.training.optim import runs_on_device
from rnnlab.training.update_rule import UpdateRule

from .own_rules import Cosine, Halving, Lion
from .test_captioning import make_data, make_model

pytestmark = pytest.mark.usefixtures("no_pictures")

OWN = {
    "update_rule": "lion",
    "optim_config": {"learning_rate": 5e-3, "weight_decay": 0.01},
    "schedule": {"name": "own_cosine", "over": 8, "least": 0.1},
}
OPTIONS = {**OWN, "num_epochs": 3, "batch_size": 5, "seed": 1, "clip_norm": 0.5, "verbose": False}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Names for this test alone."""
    for registry in (UPDATE_RULES, SCHEDULES):
        monkeypatch.setattr(registry, "_classes", dict(registry._classes))
    register_update_rule("lion", Lion)
    register_schedule("own_cosine", Cosine)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The rules as a module that can be imported by name."""
    shutil.copy(Path(__file__).parent / "own_rules.py", tmp_path / "lion_and_cosine.py")
    monkeypatch.syspath_prepend(tmp_path)
    return "lion_and_cosine"


def trained(run_dir=None, **options):
    data = make_data()
    model = make_model(data, dtype=np.float64, output_dropout=0.2)
    solver = Solver(model, data, run_dir=run_dir, **OPTIONS | options)
    solver.train()
    return solver


def test_the_updates_follow_the_formula(rng):
    rule, w, m = make_update_rule("lion", {"weight_decay": 0.1}), rng.standard_normal(6), 0.0
    expected = w.copy()
    for _ in range(3):
        dw = rng.standard_normal(6)
        g = 0.5 * dw
        expected -= 1e-3 * 0.25 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * expected)
        m = 0.99 * m + 0.01 * g
        rule.step(w, dw, scale=0.5, multiplier=0.25)
    np.testing.assert_allclose(w, expected, rtol=1e-12)
    np.testing.assert_allclose(rule.state()["m"], m, rtol=1e-12)
    assert rule.steps == 3


@pytest.mark.parametrize("name", UPDATE_RULES)
def test_a_step_that_is_refused_does_not_count(name):
    rule, expected = make_update_rule(name), make_update_rule(name)
    fixed, w, other = np.ones(5), np.ones(5), np.ones(5)
    fixed.flags.writeable = False
    for wrong, dw in ((fixed, np.ones(5)), (w, w)):
        with pytest.raises(ValueError, match=r"."):
            rule.step(wrong, dw)
        assert rule.steps == 0
    rule.step(w, np.ones(5))
    expected.step(other, np.ones(5))
    np.testing.assert_array_equal(w, other)


@pytest.mark.parametrize("factor", [-1.0, math.nan, math.inf, "1", None])
@pytest.mark.parametrize("name", ["scale", "multiplier"])
def test_factors_that_are_negative_or_not_finite(name, factor):
    if (name, factor) == ("scale", -1.0):
        pytest.skip("it changes the direction")
    rule, w = make_update_rule("adam"), np.ones(5)
    with pytest.raises(ValueError, match=rf"^Adam.step: {name} is .*, expected a finite number"):
        rule.step(w, np.ones(5), **{name: factor})
    assert rule.steps == 0
    np.testing.assert_array_equal(w, 1)


@dataclass(kw_only=True)
class Useless(UpdateRule):
    """The mistake is to rebind the name."""

    def update(self, w, dw, *, learning_rate, scale):
        w = w - learning_rate * scale * dw


def test_a_rule_that_changes_nothing_is_warned_about():
    w = np.ones(3)
    with pytest.warns(RuntimeWarning, match=r"Useless: the first step has not changed w, expected update to"):
        Useless().step(w, np.ones(3))
    for rule, dw, multiplier in (
        (Useless(), np.zeros(3), 1.0),
        (Useless(), np.ones(3), 0.0),
        (Halving(), np.ones(3), 1.0),
    ):
        rule.step(w, dw, multiplier=multiplier)


def test_training_lowers_the_loss():
    solver = trained(num_epochs=6, optim_config={"learning_rate": 2e-2})
    assert solver.history[-1]["train_loss"] < 0.9 * solver.history[0]["train_loss"]
    rates = [row["learning_rate"] for row in solver.history]
    assert rates[0] == pytest.approx(2e-2)
    assert 2e-3 <= rates[-1] < 1.5e-2


def test_frozen_parameters_and_their_state_stay():
    start = make_model(make_data(), dtype=np.float64).params
    solver = trained(trains=["W_vocab", "b_vocab"])
    momentum = solver._state.rule.state()["m"]
    for name in start:
        moved = not np.array_equal(solver.model.params[name], start[name])
        assert moved == (name in ("W_vocab", "b_vocab")), name
        assert momentum[start.place(name)].any() == moved, name


def test_accumulation():
    losses = []
    for accumulate in (1, 3):
        data = make_data()
        solver = Solver(make_model(data, dtype=np.float64), data, **OPTIONS | {"accumulate": accumulate})
        solver.train()
        losses.append(solver.loss_history)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)


@pytest.mark.slow
def test_a_resumed_run_is_the_same_to_the_bit(tmp_path):
    whole = trained(tmp_path / "whole")
    trained(tmp_path / "run", num_epochs=1)
    data = make_data()
    model = make_model(data, dtype=np.float64, output_dropout=0.2)
    solver = Solver.resume(tmp_path / "run", model, data, num_epochs=3)
    solver.train()
    assert solver.loss_history == whole.loss_history
    np.testing.assert_array_equal(solver.model.params.flat, whole.model.params.flat)
    one, other = (load_checkpoint(tmp_path / name / "last.h5") for name in ("whole", "run"))
    np.testing.assert_array_equal(other.optimiser["m"], one.optimiser["m"])
    assert (
        other.solver["schedule"] == one.solver["schedule"] == {"restarts": one.solver["schedule"]["restarts"]}
    )
    assert one.solver["options"]["optim_config"] == {
        "learning_rate": 5e-3,
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0.01,
    }


def test_a_run_without_the_name_says_so(tmp_path):
    trained(tmp_path / "run", num_epochs=1)
    del UPDATE_RULES._classes["lion"]
    data = make_data()
    model = make_model(data, dtype=np.float64, output_dropout=0.2)
    with pytest.raises(
        ValueError, match="update_rule is 'lion', expected one of sgd, .* or 'package.module:"
    ):
        Solver.resume(tmp_path / "run", model, data)


def test_the_same_by_the_names_of_objects(module):
    options = {"update_rule": f"{module}:Lion", "schedule": OWN["schedule"] | {"name": f"{module}:Cosine"}}
    by_path = trained(**options)
    assert by_path.loss_history == trained().loss_history
    assert by_path.options.schedule["name"] == f"{module}:Cosine"


def test_on_a_device(device):
    class Watched(Lion):
        def update(self, w, dw, m, *, learning_rate, scale):
            scales.append(scale)
            super().update(w, dw, m, learning_rate=learning_rate, scale=scale)

    scales = []
    register_update_rule("watched", Watched)
    on_cpu = trained()
    on_device = trained(device="gpu", update_rule="watched")
    np.testing.assert_allclose(on_device.loss_history, on_cpu.loss_history, rtol=1e-6)
    assert all(isinstance(scale, float) for scale in scales)  # as a rule in plain Python expects
    assert min(scales) < 1
    with pytest.raises(ValueError, match="graphs is true, but update_rule is 'lion': only built-in rules"):
        trained(device="gpu", graphs=True)
    assert not runs_on_device("lion")


@pytest.mark.slow
def test_recipe_and_command_line(module, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    recipe = tmp_path / "digits.toml"
    recipe.write_text(f"""
data = {{ kind = "digits", max_train = 40 }}
model.hidden_dim = 2
[training]
num_epochs = 2
update_rule = "{module}:Lion"
optim_config = {{ learning_rate = 0.01 }}
schedule = {{ name = "{module}:Cosine", over = 3 }}
[evaluation]
max_images = 4
""")
    pytest.importorskip("sklearn")
    assert cli.main(["train", str(recipe), "--epochs", "1", "--no-progress", "--out", "run"]) == 0
    assert cli.main(["train", "--resume", "run", "--epochs", "2", "--no-progress"]) == 0
    assert cli.main(["train", str(recipe), "--no-progress", "--out", "whole"]) == 0
    capsys.readouterr()
    one, other = (load_checkpoint(tmp_path / name / "last.h5") for name in ("run", "whole"))
    np.testing.assert_array_equal(one.parameters.flat, other.parameters.flat)
    np.testing.assert_array_equal(one.losses, other.losses)
    assert one.solver["options"]["update_rule"] == f"{module}:Lion"
    for change, message in (
        ("training.update_rule=lion_and_cosine:Lyon", "module 'lion_and_cosine' has no attribute 'Lyon'"),
        ("training.update_rule=lyon:Lion", "No module named 'lyon'; install the package or add its folder"),
        ("training.optim_config.beta1=2", "training.optim_config: beta1 is 2, expected a probability in"),
        ("training.optim_config.beta=1", "unknown key 'beta'; lion_and_cosine:Lion has learning_rate, beta1"),
        ("training.schedule.over=0", "over is 0, expected an integer of at least 1"),
        ("training.schedule.name=lion_and_cosine:Lion", "Lion has no end_epoch, multiplier, name, needs"),
        ("training.update_rule=os:getcwd", "found <built-in function getcwd>, expected a class"),
        ("training.update_rule=subprocess:Popen", "Popen has no config, learning_rate, load_state"),
    ):
        with pytest.raises(ValueError, match="training") as error:
            load_recipe(recipe, [change])
        assert message in str(error.value)


def test_a_rule_whose_first_step_is_taken_back_has_no_arrays():
    rule, w = make_update_rule("adam"), np.ones(3)
    rule.step(w, np.zeros(3))
    rule.steps -= 1  # as after a step whose loss was not finite
    state = rule.state()
    assert state == {"steps": 0}
    again = make_update_rule("adam")
    again.load_state(state, w)
    rule.step(w, np.full(3, 0.5))
    other = np.ones(3)
    again.step(other, np.full(3, 0.5))
    np.testing.assert_array_equal(w, other)


@pytest.mark.parametrize("slots", [("steps",), ("a/b",), ("m", "m"), "velocity", ["m"]])
def test_names_of_arrays_that_a_checkpoint_cannot_have(slots):
    with pytest.raises(TypeError, match="Own: slots is .*, expected a tuple of different identifiers"):
        type("Own", (UpdateRule,), {"slots": slots})
