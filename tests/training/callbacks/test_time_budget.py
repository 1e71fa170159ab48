from __future__ import annotations

import pytest

from rnnlab.training import Solver
from rnnlab.training.callbacks import TimeBudget

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture
def clock(monkeypatch):
    """A clock that each iteration of the solver moves on by an hour."""
    now = [100.0]
    monkeypatch.setattr("rnnlab.training.callbacks.time_budget.time.monotonic", lambda: now[0])
    iterate = Solver._iterate

    def slow(solver, *arguments):
        now[0] += 3600
        iterate(solver, *arguments)

    monkeypatch.setattr(Solver, "_iterate", slow)
    return now


def test_it_stops_after_the_time_and_resumes(make_model, make_data, data, tmp_path, clock):
    options = {"num_epochs": 2, "batch_size": 20, "verbose": False}
    reference = Solver(make_model(), data, **options)
    reference.train()
    solver = Solver(make_model(), data, callbacks=[TimeBudget(1.5)], run_dir=tmp_path, **options)
    solver.train()
    assert solver.iteration == 2
    assert solver.interrupted
    assert solver.stop_reason == "the time budget of 1.5 hours is used up"
    resumed = Solver.resume(tmp_path, make_model(), make_data(), callbacks=[TimeBudget(3.5)])
    resumed.train()
    assert resumed.iteration == 6
    assert resumed.interrupted
    assert not resumed.finished
    final = Solver.resume(tmp_path, make_model(), make_data(), callbacks=[TimeBudget(3.5)])
    final.train()
    assert not final.interrupted
    assert final.loss_history == reference.loss_history


def test_the_time_begins_when_it_is_made(model, data, clock):
    budget = TimeBudget(2)
    clock[0] += 2 * 3600
    solver = Solver(model, data, callbacks=[budget], num_epochs=1, verbose=False)
    solver.train()
    assert solver.iteration == 1


@pytest.mark.parametrize("hours", [0, -1, float("inf"), "1.5", None])
def test_bad_hours(hours):
    with pytest.raises(ValueError, match=f"TimeBudget: hours is {hours!r}, expected a positive number"):
        TimeBudget(hours)
