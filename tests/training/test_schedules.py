from __future__ import annotations

import pytest

from rnnlab.training.schedules import SCHEDULES, make_schedule


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
        ({"name": "cosine"}, "name is 'cosine', expected one of constant, exponential, step, plateau"),
        ({"decay": 0.9}, "name is None"),
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
