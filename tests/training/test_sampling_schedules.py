from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from rnnlab.options import Count
from rnnlab.training import Solver
from rnnlab.training.sampling_schedules import (
    SAMPLING_SCHEDULES,
    SamplingSchedule,
    make_sampling_schedule,
    register_sampling_schedule,
)
from tests.training.trainings import Captions, captioner


def by_epoch(config, epochs=5):
    schedule = make_sampling_schedule(config)
    return [schedule.probability(10 * epoch, epoch) for epoch in range(epochs)]


def test_constant():
    assert by_epoch({"name": "constant", "value": 0.25}, 3) == [0.25] * 3


def test_linear_up_and_down_and_then_level():
    assert by_epoch({"name": "linear", "stop": 0.4, "over": 2}) == pytest.approx([0, 0.2, 0.4, 0.4, 0.4])
    down = {"name": "linear", "start": 1.0, "stop": 0.5, "over": 4}
    assert by_epoch(down) == pytest.approx([1, 0.875, 0.75, 0.625, 0.5])


def test_linear_in_iterations():
    schedule = make_sampling_schedule({"name": "linear", "stop": 1.0, "over": 4, "unit": "iterations"})
    found = [schedule.probability(iteration, 0) for iteration in range(6)]
    assert found == pytest.approx([0, 0.25, 0.5, 0.75, 1, 1])


def test_the_fraction_of_a_hundred_epochs():
    schedule = make_sampling_schedule({"name": "epoch_fraction"})
    found = [schedule.probability(0, epoch) for epoch in (0, 1, 10, 24, 25, 26, 300)]
    assert found == pytest.approx([0, 0.01, 0.1, 0.24, 0.25, 0.25, 0.25])
    assert by_epoch({"name": "epoch_fraction", "epochs": 4, "most": 0.6}) == [0, 0.25, 0.5, 0.6, 0.6]


def test_inverse_sigmoid():
    k = 20.0
    schedule = make_sampling_schedule({"name": "inverse_sigmoid", "k": k})
    for i in (0, 1, 7, 60, 200):
        assert schedule.probability(i, 0) == pytest.approx(1 - k / (k + np.exp(i / k)))
    assert schedule.probability(0, 9) == pytest.approx(1 / 21)
    assert schedule.probability(10**7, 0) == 1  # where exp(i / k) is no float any more
    epochs = make_sampling_schedule({"name": "inverse_sigmoid", "k": 2, "unit": "epochs"})
    assert epochs.probability(1000, 2) == pytest.approx(1 - 2 / (2 + np.e))


@dataclass(kw_only=True)
class Every(SamplingSchedule):
    """1 in every ``n``-th iteration, otherwise 0."""

    n: Count

    def probability(self, iteration: int, epoch: int) -> float:
        return float((iteration + 1) % self.n == 0)


def test_a_schedule_of_your_own_trains():
    register_sampling_schedule("every", Every)
    own = {"name": "every", "n": 2}
    by_name = {"name": f"{__name__}:Every", "n": 2}
    never, always = {"name": "constant", "value": 0.0}, {"name": "constant", "value": 1.0}
    losses = []
    options = {"num_epochs": 1, "batch_size": 4, "verbose": False}
    for schedule in (own, by_name, never, always):
        model = captioner(attention="additive")
        solver = Solver(model, Captions(), scheduled_sampling=schedule, **options)
        solver.train()
        losses.append(solver.loss_history)
        assert solver.options.scheduled_sampling == schedule
    assert losses[0] == losses[1]
    assert losses[0][0] == losses[2][0] != losses[3][0]  # the first iteration does not sample
    assert losses[0][1] != losses[2][1]  # the second one does


@pytest.mark.parametrize(
    "config",
    [
        {"name": "constant", "value": 0.5},
        {"name": "linear", "start": 0.1, "stop": 0.5, "over": 3, "unit": "epochs"},
        {"name": "epoch_fraction", "epochs": 100, "most": 0.25},
        {"name": "inverse_sigmoid", "k": 50, "unit": "iterations"},
    ],
)
def test_config_makes_the_same_schedule(config):
    schedule = make_sampling_schedule(config)
    assert schedule.config() == config
    assert make_sampling_schedule(schedule.config()) == schedule
    assert type(schedule) is SAMPLING_SCHEDULES[config["name"]]
    assert all(0 <= schedule.probability(i, i) <= 1 for i in range(0, 5000, 7))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"name": "cosine"},
            "scheduled_sampling: name is 'cosine', expected one of constant, linear, epoch_",
        ),
        ({"value": 0.5}, "scheduled_sampling has no name, but 'value'; expected one of"),
        ({"name": "constant"}, "scheduled_sampling constant: value is missing"),
        ({"name": "constant", "value": 1.5}, r"constant: value is 1.5, expected a number in \[0, 1\]"),
        ({"name": "constant", "value": True}, "value is True"),
        ({"name": "linear", "stop": 0.5}, "linear: over is missing"),
        ({"name": "linear", "stop": 0.5, "over": 0}, "over is 0, expected a finite number of at least 1"),
        (
            {"name": "linear", "stop": 0.5, "over": 2, "unit": "days"},
            "unit is 'days', expected one of 'iterations'",
        ),
        ({"name": "linear", "stop": "0.5", "over": 2}, "stop is '0.5'"),
        ({"name": "epoch_fraction", "most": -0.1}, "most is -0.1"),
        (
            {"name": "epoch_fraction", "epochs": float("inf")},
            "epochs is inf, expected a finite number of at least 1",
        ),
        ({"name": "inverse_sigmoid", "k": 0.5}, "k is 0.5, expected a finite number of at least 1"),
        ({"name": "inverse_sigmoid", "k": 5, "epoch": 3}, "unknown key 'epoch'; it has k, unit"),
    ],
)
def test_bad_configurations(config, message):
    with pytest.raises(ValueError, match=message):
        make_sampling_schedule(config)


@pytest.mark.parametrize("value", [None, True, 1.5, -0.1, float("nan")])
def test_what_a_schedule_returns_is_checked(value):
    @dataclass(kw_only=True)
    class Returns(SamplingSchedule):
        def probability(self, iteration: int, epoch: int) -> float:
            return value

    register_sampling_schedule(f"returns {value}", Returns)
    solver = Solver(
        captioner(attention="additive"),
        Captions(),
        scheduled_sampling={"name": f"returns {value}"},
        verbose=False,
    )
    with pytest.raises(ValueError, match=rf"Returns.* returned {value} in iteration 0 of epoch 0, expected"):
        solver.train()
