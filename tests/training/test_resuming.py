"""The checks of a saved run before it resumes."""

import pytest

from rnnlab.training.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from rnnlab.training.resuming import load_saved_run
from rnnlab.training.solver import Solver

pytestmark = pytest.mark.usefixtures("no_pictures")


class Named:
    """Stands for an objective."""

    def __init__(self, name):
        self.name = name

    def config(self):
        return {"name": self.name}


@pytest.fixture
def last(model, data, tmp_path):
    Solver(model, data, num_epochs=1, run_dir=tmp_path, verbose=False).train()
    return tmp_path / "last.h5"


def test_a_run_that_fits(last, model, data):
    checkpoint = load_saved_run(last, model, data, evaluate=None, objective=None)
    assert checkpoint.solver["objective"] is None
    assert len(checkpoint.history) == 1


def test_another_objective(last, model, data):
    with pytest.raises(ValueError, match=r"objective is \{'name': 'x'\}, and this run has None: pass the"):
        load_saved_run(last, model, data, evaluate=None, objective=Named("x"))
    checkpoint = load_checkpoint(last)
    checkpoint.solver["objective"] = {"name": "x"}
    save_checkpoint(last, checkpoint)
    load_saved_run(last, model, data, evaluate=None, objective=Named("x"))
    for other in (None, Named("y")):
        with pytest.raises(ValueError, match=r"and this run has \{'name': 'x'\}: pass the same"):
            load_saved_run(last, model, data, evaluate=None, objective=other)


def test_runs_saved_before_there_were_objectives(last, model, data):
    checkpoint = load_checkpoint(last)
    del checkpoint.solver["objective"]
    save_checkpoint(last, checkpoint)
    load_saved_run(last, model, data, evaluate=None, objective=None)


def test_an_evaluation_of_its_own(model, data, tmp_path):
    Solver(
        model, data, evaluate=lambda _: {"val_loss": 1}, num_epochs=1, run_dir=tmp_path, verbose=False
    ).train()
    with pytest.raises(ValueError, match="had its own evaluation function, pass it as evaluate"):
        load_saved_run(tmp_path / "last.h5", model, data, evaluate=None, objective=None)


def test_an_evaluation_that_the_run_did_not_have(last, model, data):
    with pytest.raises(ValueError, match="had no evaluation function of its own, leave evaluate out"):
        load_saved_run(last, model, data, evaluate=lambda _: {"val_loss": 1}, objective=None)


def test_no_state_of_a_training(last, model, data):
    checkpoint = load_checkpoint(last)
    checkpoint.solver = {}
    save_checkpoint(last, checkpoint)
    with pytest.raises(CheckpointError, match="solver: options: found nothing"):
        load_saved_run(last, model, data, evaluate=None, objective=None)
