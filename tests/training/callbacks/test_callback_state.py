"""States of callbacks, which checkpoints hold."""

import numpy as np
import pytest

from rnnlab.training import Callback, Solver, load_checkpoint

from ..conftest import LinearData, LinearModel

pytestmark = pytest.mark.usefixtures("no_pictures")


class Sum(Callback):
    """Sums the losses, and stops after some iterations of this process."""

    def __init__(self, stop_after=None):
        self.total, self.seen, self.stop_after = 0.0, [], stop_after

    def on_start(self, solver):
        self.done = 0

    def on_step(self, solver, loss, grads):
        self.total += float(loss)
        self.seen.append(solver.iteration)
        self.done += 1
        if self.done == self.stop_after:
            solver.stop("enough")

    def state(self):
        return {"total": self.total, "seen": self.seen}

    def load_state(self, state):
        self.total, self.seen = state["total"], state["seen"]


class Silent(Callback):
    pass


def solver_of(callbacks, run_dir):
    options = {"num_epochs": 3, "batch_size": 13, "verbose": False, "run_dir": run_dir}
    return Solver(LinearModel(), LinearData(), callbacks=callbacks, **options)


@pytest.mark.parametrize("iterations", [1, 4, 6])
def test_a_resumed_callback_goes_on(iterations, tmp_path):
    """Within an epoch and at its end; each callback of a class gets its own state."""
    whole = [Sum(), Silent(), Sum()]
    whole[2].total = 100.0
    solver_of(whole, tmp_path / "whole").train()
    broken = [Sum(iterations), Silent(), Sum()]
    broken[2].total = 100.0
    solver_of(broken, tmp_path / "broken").train()
    resumed = [Sum(), Silent(), Sum()]
    solver = Solver.resume(tmp_path / "broken", LinearModel(), LinearData(), callbacks=resumed)
    assert resumed[0].seen == list(range(1, iterations + 1))
    solver.train()
    for one, other in zip((resumed[0], resumed[2]), (whole[0], whole[2]), strict=True):
        assert one.seen == other.seen == list(range(1, 13))
        assert one.total == pytest.approx(other.total, rel=1e-12)
    names = [name for name, _ in load_checkpoint(tmp_path / "whole" / "last.h5").solver["callbacks"]]
    assert names == [f"{__name__}:Sum"] * 2


def test_a_run_resumes_with_other_callbacks(tmp_path):
    solver_of([Sum(3)], tmp_path).train()
    for callbacks in ([], [Silent()]):
        with pytest.warns(UserWarning, match="the run has the state of .*Sum, which is not among the callb"):
            Solver.resume(tmp_path, LinearModel(), LinearData(), callbacks=callbacks)
    callbacks = [Silent(), Sum(2), Sum()]
    Solver.resume(tmp_path, LinearModel(), LinearData(), callbacks=callbacks)
    assert callbacks[1].seen == [1, 2, 3]
    assert callbacks[2].seen == []


def test_a_state_that_json_cannot_hold(tmp_path):
    callback = Sum()
    callback.state = lambda: {"array": np.zeros(2)}
    with pytest.raises(TypeError, match=r"Sum.state\(\) cannot be represented in JSON"):
        solver_of([callback], tmp_path).train()


@pytest.mark.parametrize("state", [{1: 2}, {"k": [{True: 1}]}])
def test_a_state_with_keys_that_json_changes(tmp_path, state):
    callback = Sum()
    callback.state = lambda: state
    with pytest.warns(UserWarning, match=r"Sum.state\(\) has the key (1|True), which is a string when it is"):
        solver_of([callback], tmp_path).train()


def test_a_state_that_does_not_fit(tmp_path):
    solver_of([Sum(3)], tmp_path).train()

    class Renamed(Sum):
        def load_state(self, state):
            self.total = state["totals"]

    Renamed.__qualname__, Renamed.__module__ = Sum.__qualname__, Sum.__module__
    with pytest.raises(ValueError, match="solver: found KeyError"):
        Solver.resume(tmp_path, LinearModel(), LinearData(), callbacks=[Renamed()])


class Duck:
    """A callback that inherits nothing, with an attribute called state."""

    state = "a string"

    def __getattr__(self, name):
        if name.startswith("on_"):
            return lambda *arguments: None
        raise AttributeError(name)


class OnlyState(Duck):
    """A callback that inherits nothing, with one of the two methods."""

    def state(self):
        return {"total": 1.0}


def test_a_state_needs_a_method_that_loads_it(tmp_path):
    with pytest.raises(TypeError, match="has a OnlyState with state but without load_state"):
        solver_of([OnlyState()], tmp_path)


def test_an_attribute_called_state_is_not_saved(tmp_path):
    solver_of([Duck()], tmp_path).train()
    assert load_checkpoint(tmp_path / "last.h5").solver["callbacks"] == []
