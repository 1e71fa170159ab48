from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pytest

from rnnlab.training import Solver
from rnnlab.training.schedules import SCHEDULES, Schedule, make_schedule


def multipliers(schedule, epochs=6, iterations_per_epoch=2):
    return [
        schedule.multiplier(epoch * iterations_per_epoch + i, epoch)
        for epoch in range(epochs)
        for i in range(iterations_per_epoch)
    ]


def test_constant():
    assert multipliers(make_schedule()) == [1] * 12


def test_exponential_is_per_epoch():
    schedule = make_schedule({"name": "exponential", "decay": 0.5})
    assert multipliers(schedule, epochs=3) == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_step_in_epochs():
    schedule = make_schedule({"name": "step", "factor": 0.1, "every": 2})
    assert multipliers(schedule, 5, 1) == pytest.approx([1, 1, 0.1, 0.1, 0.01])


def test_step_in_iterations():
    schedule = make_schedule({"name": "step", "every": 3, "unit": "iterations"})
    assert multipliers(schedule, 4) == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]


def test_cosine():
    schedule = make_schedule({"name": "cosine", "over": 4, "minimum": 0.2})
    expected = [0.2 + 0.4 * (1 + math.cos(math.pi * k / 4)) for k in (0, 1, 2, 3, 4, 4)]
    assert multipliers(schedule, 6, 1) == pytest.approx(expected)
    in_iterations = make_schedule({"name": "cosine", "over": 8, "unit": "iterations"})
    assert multipliers(in_iterations, 4) == pytest.approx(
        [(1 + math.cos(math.pi * k / 8)) / 2 for k in range(8)]
    )


def test_warmup_then_another_schedule():
    schedule = make_schedule({"name": "warmup", "over": 4})
    assert multipliers(schedule, 3) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    schedule = make_schedule({"name": "warmup", "over": 3, "then": {"name": "exponential", "decay": 0.5}})
    assert multipliers(schedule, 3) == pytest.approx([1 / 3, 2 / 3, 0.5, 0.5, 0.25, 0.25])
    by_epoch = make_schedule({"name": "warmup", "over": 2, "unit": "epochs"})
    assert multipliers(by_epoch, 3) == [0.5, 0.5, 1, 1, 1, 1]


def test_a_schedule_after_the_warmup():
    cosine = {"name": "cosine", "over": 4, "unit": "iterations"}
    alone = make_schedule(cosine)
    schedule = make_schedule({"name": "warmup", "over": 3, "then": cosine, "then_after": True})
    found = [schedule.multiplier(iteration, 0) for iteration in range(9)]
    after = [alone.multiplier(iteration, 0) for iteration in range(6)]
    assert found == pytest.approx([1 / 3, 2 / 3, 1, *after])
    step = {"name": "step", "factor": 0.5, "every": 2}
    epochs = {"name": "warmup", "over": 2, "unit": "epochs", "then": step, "then_after": True}
    found = [make_schedule(epochs).multiplier(100 * epoch, epoch) for epoch in range(7)]
    assert found == [0.5, 1, 1, 1, 0.5, 0.5, 0.25]
    assert make_schedule(make_schedule(epochs).config()).config() == make_schedule(epochs).config()
    with pytest.raises(
        ValueError, match="then_after is True and unit is 'iterations', expected 'epochs', the"
    ):
        make_schedule(epochs | {"unit": "iterations"})
    with pytest.raises(ValueError, match="then_after is True, which needs then"):
        make_schedule({"name": "warmup", "over": 3, "then_after": True})
    with pytest.raises(ValueError, match="then_after is True, expected False with then = plateau"):
        make_schedule(epochs | {"then": {"name": "plateau"}})
    with pytest.raises(ValueError, match="expected 'epochs', the unit of then, exponential"):
        make_schedule(
            {"name": "warmup", "over": 2, "then": {"name": "exponential", "decay": 0.5}, "then_after": True}
        )


def test_warmup_passes_the_metric_on():
    config = {"name": "warmup", "over": 1, "then": {"name": "plateau", "factor": 0.5, "patience": 1}}
    schedule, other = make_schedule(config), make_schedule(config)
    assert schedule.needs_validation
    assert not make_schedule({"name": "warmup", "over": 1}).needs_validation
    schedule.end_epoch(False)
    other.load_state(schedule.state())
    assert other.multiplier(9, 9) == 0.5


def halves(iteration, epoch):
    return 0.5**epoch / (1 + iteration)


def thirds(iteration, epoch):
    return 1 / 3


@pytest.mark.usefixtures("no_pictures")
def test_a_function_as_a_schedule(make_model, make_data, data, tmp_path):
    """Its rates are those of the factors, and a run with it resumes to the bit."""
    options = {"batch_size": 20, "optim_config": {"learning_rate": 0.1}, "verbose": False}
    reference = Solver(make_model(), data, schedule=halves, num_epochs=2, **options)
    reference.train()
    rates = [row["learning_rate"] for row in reference.history]
    assert rates == pytest.approx([0.1 / 3, 0.05 / 6])
    assert reference.options.schedule == {"name": "function", "function": "halves"}
    Solver(make_model(), data, schedule=halves, num_epochs=1, run_dir=tmp_path, **options).train()
    for other, found in ((None, "None"), (thirds, "thirds"), ({"name": "constant"}, "{'name': 'constant'}")):
        message = f"resume: schedule is {found}, expected the function halves, which this run has"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            Solver.resume(tmp_path, make_model(), make_data(), schedule=other, num_epochs=2)
    solver = Solver.resume(tmp_path, make_model(), make_data(), schedule=halves, num_epochs=2)
    solver.train()
    assert solver.loss_history == reference.loss_history
    np.testing.assert_array_equal(solver.model.params.flat, reference.model.params.flat)


@pytest.mark.usefixtures("no_pictures")
def test_a_function_for_a_run_without_one(make_model, make_data, data, tmp_path):
    Solver(make_model(), data, num_epochs=1, run_dir=tmp_path, verbose=False).train()
    with pytest.raises(ValueError, match="schedule is given, but the schedule of this run is constant"):
        Solver.resume(tmp_path, make_model(), make_data(), schedule=halves)


@pytest.mark.parametrize("factor", [-1, float("nan"), "1", None])
def test_a_function_that_returns_no_factor(model, data, factor):
    solver = Solver(model, data, schedule=lambda iteration, epoch: factor, verbose=False)
    with pytest.raises(ValueError, match="schedule: .*<lambda> returned .* in iteration 0 of epoch 0"):
        solver.train()


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    "then", [{"name": "cosine", "over": 6, "unit": "iterations"}, {"name": "plateau", "factor": 0.1}]
)
def test_a_warmup_resumes_to_the_bit(make_model, make_data, data, tmp_path, then):
    """The metric is the same in all epochs, so the plateau drops after the second."""
    given = {"evaluate": lambda model: {"val_loss": 1.0}}
    options = {"schedule": {"name": "warmup", "over": 4, "then": then}, "batch_size": 20, "verbose": False}
    options |= {"restore_best": False, **given}
    reference = Solver(make_model(), data, num_epochs=3, **options)
    reference.train()
    Solver(make_model(), data, num_epochs=2, run_dir=tmp_path, **options).train()
    solver = Solver.resume(tmp_path, make_model(), make_data(), num_epochs=3, **given)
    solver.train()
    np.testing.assert_array_equal(solver.model.params.flat, reference.model.params.flat)


def test_plateau_drops_when_the_metric_does_not_improve():
    schedule = make_schedule({"name": "plateau", "patience": 2})
    found = []
    for improved in (True, False, True, False, False, False, False, True):
        found.append(schedule.multiplier(0, 0))
        schedule.end_epoch(improved)
    assert found == [1, 1, 1, 1, 1, 0.5, 0.5, 0.25]


def test_plateau_state_continues():
    one, other = (make_schedule({"name": "plateau", "patience": 2, "factor": 0.1}) for _ in range(2))
    for _ in range(3):
        one.end_epoch(False)
    other.load_state(one.state())
    other.end_epoch(False)
    assert other.multiplier(0, 0) == pytest.approx(0.01)


def test_others_have_nothing_to_remember():
    schedule = make_schedule({"name": "exponential", "decay": 0.5})
    schedule.end_epoch(True)
    assert schedule.state() == {}
    schedule.load_state({})


@pytest.mark.parametrize(
    "config",
    [
        {"name": "constant"},
        {"name": "exponential", "decay": 0.9},
        {"name": "step", "factor": 0.7, "every": 3, "unit": "epochs"},
        {"name": "plateau", "factor": 0.5, "patience": 1},
        {"name": "cosine", "over": 9, "minimum": 0.1, "unit": "iterations"},
        {
            "name": "warmup",
            "over": 5,
            "unit": "iterations",
            "then": {"name": "constant"},
            "then_after": False,
        },
    ],
)
def test_config_makes_the_same_schedule(config):
    schedule = make_schedule(config)
    assert schedule.config() == config
    assert make_schedule(schedule.config()) == schedule
    assert type(schedule) is SCHEDULES[config["name"]]
    assert schedule.needs_validation == (config["name"] == "plateau")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"name": "cosin"},
            "name is 'cosin', expected one of constant, exponential, step, plateau, .* did you mean cosine",
        ),
        ({"name": "cosine"}, "schedule cosine: over is missing"),
        ({"name": "cosine", "over": 3, "minimum": 2}, r"minimum is 2, expected a number in \[0, 1\]"),
        ({"name": "warmup", "over": 0}, "over is 0, expected an integer of at least 1"),
        ({"name": "warmup", "over": 1, "then": {"name": "cosin"}}, "schedule warmup.then: name is 'cosin'"),
        ({"decay": 0.9}, "schedule has no name, but 'decay'; expected one of"),
        ({"name": "exponential"}, "schedule exponential: decay is missing"),
        ({"name": "exponential", "decay": 0}, r"decay is 0, expected a number in \(0, 1\]"),
        ({"name": "exponential", "decay": "0.5"}, "decay is '0.5'"),
        ({"name": "step", "every": 0}, "every is 0, expected an integer of at least 1"),
        ({"name": "step", "every": 1.5}, "every is 1.5, expected an integer of at least 1"),
        (
            {"name": "step", "every": 2, "unit": "days"},
            "unit is 'days', expected one of 'iterations', 'epochs'",
        ),
        ({"name": "plateau", "patience": True}, "patience is True"),
        ({"name": "plateau", "epochs": 3}, "unknown key 'epochs'; it has factor, patience"),
        ({"name": "constant", "decay": 1}, "unknown key 'decay'; it has none"),
    ],
)
def test_bad_configurations(config, message):
    with pytest.raises(ValueError, match=message):
        make_schedule(config)


@dataclass(kw_only=True)
class Uphill(Schedule):
    name = "uphill"

    def multiplier(self, iteration, epoch):
        return -1.0


def test_a_class_that_returns_no_factor(model, data, monkeypatch):
    monkeypatch.setitem(SCHEDULES._classes, "uphill", Uphill)
    with pytest.raises(ValueError, match=r"Uphill\(\) returned -1.0 in iteration 0 of epoch 0"):
        Solver(model, data, schedule={"name": "uphill"}, verbose=False).train()


def test_a_learning_rate_of_zero_is_noted(make_model, data, capsys):
    schedule = {"name": "cosine", "over": 2}
    Solver(make_model(), data, num_epochs=3, batch_size=20, schedule=schedule).train()
    printed = capsys.readouterr().out
    assert "note: the learning rate is 0 at the start of epoch 3" in printed
    assert printed.count("note:") == 1
