from __future__ import annotations

import numpy as np
import pytest

from rnnlab.training import Solver
from rnnlab.training.callbacks import JSONLines, Log


class Kept(Log):
    def __init__(self, every):
        super().__init__(every=every)
        self.opened, self.steps, self.epochs, self.closed = [], {}, {}, 0

    def open(self, solver):
        self.opened.append(solver.iteration)

    def step(self, iteration, row):
        self.steps[iteration] = row

    def epoch(self, iteration, row):
        self.epochs[iteration] = row

    def close(self):
        self.closed += 1


def test_rows_of_iterations_and_epochs(make_model, data):
    kept, model = Kept(every=2), make_model(dropout=0)
    rates = {"optim_config": {"learning_rate": 0.1}, "schedule": {"name": "exponential", "decay": 0.5}}
    solver = Solver(model, data, callbacks=[kept], num_epochs=2, batch_size=20, verbose=False, **rates)
    solver.train()
    assert list(kept.steps) == [1, 3, 5]
    assert [row["loss"] for row in kept.steps.values()] == solver.loss_history[::2]
    assert [row["learning_rate"] for row in kept.steps.values()] == [0.1, 0.1, 0.05]
    assert kept.epochs == {3: solver.history[0], 6: solver.history[1]}
    assert (kept.opened, kept.closed) == ([0], 1)


def test_norm_of_the_gradient(make_model, data):
    kept, model = Kept(every=1), make_model(dropout=0)
    _, grads = make_model(dropout=0).loss(*data.batch("train", np.arange(50)))
    Solver(model, data, callbacks=[kept], num_epochs=1, batch_size=50, clip_norm=1e-3, verbose=False).train()
    assert kept.steps[1]["gradient_norm"] == pytest.approx(float(np.linalg.norm(grads.flat)))


@pytest.mark.parametrize("every", [0, 2.5, "10", None])
def test_bad_intervals(every):
    with pytest.raises(ValueError, match=f"Kept: every is {every!r}, expected an integer of at least 1"):
        Kept(every)


def test_a_log_needs_a_place(model, data):
    solver = Solver(model, data, callbacks=[JSONLines()], num_epochs=1, verbose=False)
    with pytest.raises(ValueError, match="JSONLines: path is None, expected a path where .* no run_dir"):
        solver.train()
