"""One training step: scheduled sampling passed to the model, and a step that fails."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.training.solver import Solver


def quiet(model, data, **options):
    options = {"num_epochs": 2, "batch_size": 8, "optim_config": {"learning_rate": 0.05}, **options}
    return Solver(model, data, verbose=False, restore_best=False, **options)


def test_the_probability_reaches_the_model_and_the_history(model, data):
    class Spy(type(model)):
        def loss(self, *batch, sampling, **options):
            seen.append(sampling)
            return super().loss(*batch, **options)

    seen = []
    schedule = {"name": "linear", "stop": 0.5, "over": 2}
    solver = quiet(Spy(), data, scheduled_sampling=schedule, num_epochs=4)
    solver.train()
    assert seen == [0.0] * 7 + [0.25] * 7 + [0.5] * 14
    assert [row["sampling"] for row in solver.history] == [0, 0.25, 0.5, 0.5]
    assert solver.options.scheduled_sampling == {"start": 0.0, "unit": "epochs", **schedule}


def test_in_iterations_the_history_has_the_last_one(model, data):
    class Spy(type(model)):
        def loss(self, *batch, sampling, **options):
            return super().loss(*batch, **options)

    schedule = {"name": "linear", "stop": 1.0, "over": 20, "unit": "iterations"}
    solver = quiet(Spy(), data, scheduled_sampling=schedule)
    solver.train()
    assert [row["sampling"] for row in solver.history] == pytest.approx([6 / 20, 13 / 20])


def test_a_model_without_sampling(model, data):
    schedule = {"name": "constant", "value": 0.5}
    with pytest.raises(
        TypeError, match="scheduled_sampling is given, but the loss of this LinearModel takes"
    ):
        quiet(model, data, scheduled_sampling=schedule)
    with pytest.raises(ValueError, match="scheduled_sampling constant: value is 2"):
        quiet(model, data, scheduled_sampling=schedule | {"value": 2})


def test_a_step_that_runs_out_of_memory_changes_nothing(model, data):
    """The error says what needs the memory; the same step succeeds afterwards."""

    class Full(type(model)):
        is_full = False

        def loss(self, *batch, rng, **options):
            rng.random()
            if self.is_full:
                raise MemoryError("no memory")
            return super().loss(*batch, rng=rng, **options)

    failing, plain = (quiet(Full(), data, num_epochs=1) for _ in range(2))
    failing.model.is_full = True
    drawn = failing._state.rng.bit_generator.state
    with pytest.raises(
        MemoryError, match="iteration 1: out of memory: no memory; .* smaller batch_size needs"
    ):
        failing.train()
    assert failing._state.rng.bit_generator.state == drawn
    assert failing._state.rule.steps == 0
    failing.model.is_full = False
    failing.train()
    plain.train()
    assert failing.loss_history == plain.loss_history
    np.testing.assert_array_equal(failing.model.params.flat, plain.model.params.flat)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_within_an_update_counts_nothing(error, model, data):
    """Its loss has been recorded; another call of train continues from the iteration before."""

    class Once:
        is_raised = False

        def __call__(self, iteration, epoch):
            if iteration == 3 and not self.is_raised:
                self.is_raised = True
                raise error
            return 1.0

    failing, plain = (
        quiet(type(model)(), data, num_epochs=2, schedule=each) for each in (Once(), lambda *_: 1.0)
    )
    with pytest.raises(error):
        failing.train()
    failing.train()
    plain.train()
    assert failing.loss_history == plain.loss_history
    np.testing.assert_array_equal(failing.model.params.flat, plain.model.params.flat)


def test_graphs_need_a_gpu(model, data):
    with pytest.raises(ValueError, match="graphs is true, but the model is on the CPU: .* with graphs=False"):
        quiet(model, data, graphs=True)
    assert quiet(model, data).options.graphs is None
