from __future__ import annotations

import json

import numpy as np
import pytest

from rnnlab.training import Solver
from rnnlab.training.checkpoint import Checkpoint, CheckpointError
from rnnlab.training.gradient_monitor import Recorded
from rnnlab.training.nonfinite import NonFiniteError
from rnnlab.training.options import rules_of
from rnnlab.training.state import TrainingState


def new_state(model, data, **options):
    """The state of a run that has not begun."""
    options = Solver(model, data, batch_size=8, verbose=False, **options).options
    return TrainingState(options, rules_of(options), data)


@pytest.fixture
def state(model, data):
    schedule = {"name": "step", "every": 1, "unit": "epochs", "factor": 0.5}
    return new_state(model, data, schedule=schedule)


def iterate(state, losses):
    """Count iterations and read their losses."""
    state.order.batches()
    for loss in losses:
        state.count(averaged_over=2, tokens=4, seconds=0.5)
        state.read([Recorded(loss, 1.0)])


def test_iterations_are_counted_before_their_losses_are_read(state):
    state.order.batches()
    for _ in range(3):
        state.count(averaged_over=1, tokens=1, seconds=1.0)
    assert (state.iteration, state.unread, state.order.batch) == (3, 3, 3)
    state.read([Recorded(5.0, 1.0)])
    assert (state.iteration, state.unread, state.losses) == (3, 2, [5.0])
    state.rule.steps = 3
    state.drop_unread()
    assert (state.iteration, state.unread, state.order.batch, state.rule.steps) == (1, 0, 1, 1)


def test_a_failed_iteration_is_undone(state):
    restore, expected = state.snapshot(), state.rng.random()
    state.rule.steps = 1
    restore()
    assert state.rule.steps == 0
    assert state.rng.random() == expected


def test_an_epoch_has_a_row(state):
    iterate(state, [6.0, 4.0])
    assert state.multiplier == 1.0
    assert state.end_epoch({"val_loss": 2.0})
    (row,) = state.history
    assert row | {"seconds": 1.0} == {
        "epoch": 1,
        "iteration": 2,
        "train_loss": 5.0,
        "train_loss_per_token": 20 / 8,
        "gradient_norm": 1.0,
        "seconds": 1.0,
        "tokens_per_second": 8.0,
        "learning_rate": 1e-3,
        "val_loss": 2.0,
    }
    assert (state.multiplier, state.order.epoch, state.totals.iterations) == (0.5, 1, 0)


def test_an_epoch_has_a_column_for_each_term_of_the_loss(state, model, data):
    state.order.batches()
    state.count(averaged_over=2, tokens=4, seconds=0.5, measured={"reward": 1.0})
    state.count(averaged_over=2, tokens=4, seconds=0.5)
    state.read([Recorded(1.0, 1.0, {"penalty": 0.1})])
    saved = json.loads(json.dumps(state.save()["solver"]["totals"]))
    assert saved["sums"] == {"reward": 1.0, "penalty": 0.1}
    state.read([Recorded(1.0, 1.0, {"penalty": 0.5})])
    state.end_epoch({"val_loss": 2.0})
    (row,) = state.history
    assert (row["reward"], row["penalty"]) == (0.5, 0.3)
    assert list(row).index("penalty") < list(row).index("learning_rate")


def test_a_metric_that_is_not_finite_changes_nothing(state):
    iterate(state, [1.0])
    with pytest.raises(NonFiniteError, match="val_loss is nan"):
        state.end_epoch({"val_loss": np.nan})
    assert (state.history, state.order.epoch) == ([], 0)


def test_saved_and_loaded(state, model, data):
    iterate(state, [3.0, 2.0])
    state.rng.random()
    saved = json.loads(json.dumps(state.save()["solver"]))
    checkpoint = Checkpoint(model.params, {}, losses=np.array(state.losses), solver=saved)
    other = new_state(model, data)
    other.load("run.h5", checkpoint, model.params.flat)
    assert (other.losses, other.order.batch, other.totals) == (state.losses, 2, state.totals)
    assert other.rng.random() == state.rng.random()
    for name in ("rng", "order"):
        broken = Checkpoint(model.params, {}, solver={k: v for k, v in saved.items() if k != name})
        with pytest.raises(CheckpointError, match=f"run.h5: solver: {name}: found nothing"):
            other.load("run.h5", broken, model.params.flat)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"order": {"batch": -3}},
            r"solver: found InputError\('order: epoch is 0 and batch is -3, ",
        ),
        (
            {"order": {"batch": 8}},
            "batch is 8, expected at least 0, and batch at most 7",
        ),
        ({"order": {"batch": "2"}}, "solver: found TypeError"),
        ({"order": {"epoch": -1}}, "order: epoch is -1 and batch is 2"),
        (
            {"order": {"epoch": 1}},
            "losses: found 2 losses and 0 epochs in the history, expected 2 losses and 1",
        ),
        (
            {"order": {"batch": 5}},
            "losses: found 2 losses and 0 epochs in the history, expected 5 losses and 0",
        ),
        ({"order": {"generator": {"bit_generator": "MT19937"}}}, "solver: found ValueError"),
        ({"losses": [3.0]}, "losses: found 1 losses and 0 epochs in the history, expected 2 losses"),
    ],
)
def test_a_state_that_contradicts_itself_is_an_error(state, model, data, changes, message):
    iterate(state, [3.0, 2.0])
    saved = json.loads(json.dumps(state.save()["solver"]))
    losses = np.array(changes.get("losses", state.losses))
    saved["order"] |= changes.get("order", {})
    checkpoint = Checkpoint(model.params, {}, losses=losses, solver=saved)
    other = new_state(model, data)
    with pytest.raises(CheckpointError, match=f"run.h5: .*{message}"):
        other.load("run.h5", checkpoint, model.params.flat)
