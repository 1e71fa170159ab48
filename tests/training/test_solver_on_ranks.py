"""Ranks that train together: the run of one process, whatever its model; agreement, and errors.

The ranks are threads here. ``test_on_mpi.py`` has processes.
"""

from __future__ import annotations

import signal

import numpy as np
import pytest

from rnnlab.models import CaptioningRNN
from rnnlab.ops import device_of
from rnnlab.training import Callback, NonFiniteError, SelfCritical, validation_loss
from rnnlab.training.distributed import DriftError, OneProcess, gather_results
from rnnlab.training.interrupt import Interrupted
from rnnlab.training.run_directory import RunDirectory
from rnnlab.training.solver import Solver

from .ranks import on_ranks
from .trainings import (
    ATTENTIVE,
    OPTIONS,
    WORDS,
    Captions,
    arnet,
    assert_same,
    attentive,
    captioner,
    classifier,
    language,
    reviewer,
    running,
    trained,
    translator,
)

pytestmark = pytest.mark.usefixtures("no_pictures")

# ------------------------------------------------------------------ the same training as that of one process


@pytest.mark.one_in(2)
@pytest.mark.parametrize("make", [attentive, arnet, reviewer, translator, language, running, classifier])
def test_ranks_train_as_one_process_with_as_many_parts(make):
    solvers = on_ranks(3, lambda communicator: trained(make, communicator))
    assert_same(solvers[0], trained(make, accumulate=3))
    for other in solvers[1:]:
        assert other.loss_history == solvers[0].loss_history
        np.testing.assert_array_equal(other.model.params.flat, solvers[0].model.params.flat)


@pytest.mark.slow
@pytest.mark.parametrize("make", [attentive, translator, classifier])
def test_ranks_train_on_a_gpu_as_on_cpus(make, simulated):
    """The stand-in has one GPU, which they share."""
    solvers = on_ranks(3, lambda communicator: trained(make, communicator, device="gpu"))
    assert [device_of(solver.model.params.flat) for solver in solvers] == ["gpu:0"] * 3
    for solver in solvers:
        assert solver.loss_history == solvers[0].loss_history
        solver.model.to("cpu")
        np.testing.assert_array_equal(solver.model.params.flat, solvers[0].model.params.flat)
    assert_same(solvers[0], on_ranks(3, lambda communicator: trained(make, communicator))[0])


def test_ranks_have_the_average_of_one_process():
    solvers = on_ranks(2, lambda communicator: trained(attentive, communicator, ema_decay=0.9))
    assert_same(solvers[0], trained(attentive, accumulate=2, ema_decay=0.9))
    averages = [solver._state.average.values for solver in solvers]
    np.testing.assert_array_equal(*averages)


def test_each_rank_accumulates():
    solvers = on_ranks(2, lambda communicator: trained(attentive, communicator, num_epochs=1, accumulate=2))
    assert_same(solvers[0], trained(attentive, num_epochs=1, accumulate=4))


def test_ranks_without_rows_take_part():
    """Batches of 2 rows, and the last of one, on 3 ranks."""
    solvers = on_ranks(3, lambda communicator: trained(arnet, communicator, num_epochs=1, batch_size=2))
    assert_same(solvers[0], trained(arnet, num_epochs=1, batch_size=2, accumulate=3))


class Images(Captions):
    """The features with their rows: sentences are sampled for them."""

    def row_lengths(self, split, indices):
        return np.ones(len(indices), int)

    def batch(self, split, indices):
        return self.splits[split][0][indices], indices


def reward(sources, tokens, lengths):
    return (tokens == 3 + sources[:, None] % 4).sum(axis=1) / lengths


@pytest.mark.one_in(2)
@pytest.mark.parametrize("average", ["batch", "token"])
@pytest.mark.parametrize("baseline", ["mean", "greedy"])
def test_ranks_sample_sentences_for_their_rows(average, baseline):
    def make():
        objective = SelfCritical(reward, samples=3, baseline=baseline, feature_dropout=0.1, dropout=True)
        model = captioner(loss_average=average, **ATTENTIVE)
        return model, Images(), {"objective": objective, "evaluate": lambda model: {"val_loss": 1.0}}

    solvers = on_ranks(3, lambda communicator: trained(make, communicator, num_epochs=1))
    alone = trained(make, num_epochs=1, accumulate=3)
    assert_same(solvers[0], alone)
    assert {"reward", "baseline_reward", "sampled_length"} <= alone.history[0].keys()
    for other in solvers[1:]:
        np.testing.assert_array_equal(other.model.params.flat, solvers[0].model.params.flat)


def test_a_run_repeats_bit_for_bit():
    first, second = (
        on_ranks(2, lambda communicator: trained(attentive, communicator, num_epochs=1)) for _ in range(2)
    )
    assert first[0].loss_history == second[0].loss_history
    np.testing.assert_array_equal(first[0].model.params.flat, second[0].model.params.flat)


def test_each_rank_reads_its_own_rows_only():
    solvers = on_ranks(2, lambda communicator: trained(attentive, communicator, num_epochs=1))
    rows = [sum(count for split, count in solver.data.read if split == "train") for solver in solvers]
    assert sum(rows) == 19
    assert min(rows) > 5
    tokens = [row["tokens_per_second"] * row["seconds"] for solver in solvers for row in solver.history]
    assert tokens == pytest.approx([Captions().num_tokens(Captions().splits["train"])] * 2)


def test_ranks_share_the_batches_of_the_validation():
    """7 rows in batches of 2, with the loss of one process to the last bit."""
    data = [Captions() for _ in range(3)]

    def validated(communicator):
        own = data[communicator.rank]
        return validation_loss(captioner(**ATTENTIVE), own, 2, communicator=communicator)

    assert on_ranks(3, validated) == [validation_loss(captioner(**ATTENTIVE), Captions(), 2)] * 3
    assert [own.read for own in data] == [[("val", 2), ("val", 1)], [("val", 2)], [("val", 2)]]
    solvers = on_ranks(2, lambda communicator: trained(attentive, communicator, num_epochs=1))
    rows = [sum(count for split, count in solver.data.read if split == "val") for solver in solvers]
    assert rows == [6, 1]


# ------------------------------------------------------------------ rank 0 writes, and all agree


class Stopping(Callback):
    """Stops after an iteration, and counts its calls."""

    def __init__(self, iteration=None):
        self.iteration, self.steps, self.files = iteration, 0, []

    def on_step(self, solver, loss, grads):
        self.steps += 1
        if solver.iteration == self.iteration:
            solver.stop("enough")

    def on_checkpoint(self, solver, path):
        self.files.append(path.name)


def test_rank_0_alone_writes_calls_and_shows(tmp_path, capsys, monkeypatch):
    def write(run, config):
        written.append(run.path)
        write_config(run, config)

    written, write_config, callback = [], RunDirectory.write_config, Stopping()
    monkeypatch.setattr(RunDirectory, "write_config", write)
    options = {"run_dir": tmp_path, "callbacks": [callback], "verbose": True}
    solvers = on_ranks(2, lambda communicator: trained(attentive, communicator, **options))
    assert written == [tmp_path]
    assert callback.steps == 8
    assert callback.files.count("last.h5") == 2
    assert capsys.readouterr().out.count("(Iteration 1 / 8)") == 1
    np.testing.assert_array_equal(*(solver.model.params.flat for solver in solvers))


@pytest.mark.parametrize("stopping", [0, 1])
def test_all_stop_after_the_same_iteration_and_another_number_resumes(stopping, tmp_path):
    """A callback stops rank 0; a signal reaches any rank."""

    def interrupted(communicator):
        model, data, options = attentive()
        callbacks = [Stopping(3)] if stopping == 0 else []
        solver = Solver(
            model, data, communicator=communicator, run_dir=tmp_path, callbacks=callbacks, **OPTIONS | options
        )
        is_to_stop = solver._is_to_stop

        def signalled(interrupt):
            if communicator.rank == stopping == 1 and solver.iteration == 3:
                interrupt.received = signal.SIGTERM
            return is_to_stop(interrupt)

        solver._is_to_stop = signalled
        solver.train()
        return solver

    for solver in on_ranks(2, interrupted):
        assert solver.interrupted
        assert solver.iteration == 3
        assert solver.signal == (signal.SIGTERM if stopping else None)
        assert solver.stop_reason == (None if stopping else "enough")

    def resumed(communicator):
        model, data, _ = attentive()
        solver = Solver.resume(tmp_path, model, data, communicator=communicator, accumulate=accumulate)
        solver.train()
        return solver

    accumulate = 1 if stopping else 2
    solver = on_ranks(2, resumed)[0] if stopping else resumed(None)
    assert_same(solver, trained(attentive, accumulate=2))


def test_the_state_of_a_callback_is_that_of_rank_0(tmp_path):
    class Steps(Callback):
        count = 0

        def on_step(self, solver, loss, grads):
            self.count += 1

        def state(self):
            return {"count": self.count}

        def load_state(self, state):
            self.count = state["count"]

    def train(communicator, start, epochs):
        model, data, options = attentive()
        options = {**OPTIONS, **options, "callbacks": [callback := Steps()], "communicator": communicator}
        if start is Solver:
            solver = Solver(model, data, run_dir=tmp_path, **{**options, "num_epochs": epochs})
        else:
            given = {key: options[key] for key in ("callbacks", "communicator")}
            solver = start(tmp_path, model, data, num_epochs=epochs, **given)
        solver.train()
        return callback.count

    first = on_ranks(2, lambda communicator: train(communicator, Solver, 1))
    second = on_ranks(2, lambda communicator: train(communicator, Solver.resume, 2))  # without a warning
    assert (first[1], second[1]) == (0, 0)
    assert second[0] == 2 * first[0] > 0


class Anneals(Callback):
    """Lowers the weight of ARNet's loss at each step, and turns it off at last."""

    def on_step(self, solver, loss, grads):
        solver.model.reconstruction = max(0.0, 0.3 - 0.1 * solver.iteration)


def test_the_loss_weights_that_a_callback_sets_are_those_of_all_ranks():
    solvers = on_ranks(2, lambda communicator: trained(arnet, communicator, callbacks=[Anneals()]))
    assert_same(solvers[0], trained(arnet, accumulate=2, callbacks=[Anneals()]))
    assert [solver.model.reconstruction for solver in solvers] == [0.0, 0.0]
    np.testing.assert_array_equal(*(solver.model.params.flat for solver in solvers))


def test_a_signal_in_one_rank_s_validation_stops_all():
    def interrupted(communicator):
        def evaluate(model):
            solver.evaluations += 1
            parts = gather_results(communicator, communicator.rank)
            if communicator.rank == 1 and solver.evaluations == 2:
                solver.interrupt.received = signal.SIGINT
                raise Interrupted
            return {"val_loss": sum(gather_results(communicator, sum(parts)))}

        model, data, options = attentive()
        solver = Solver(model, data, communicator=communicator, evaluate=evaluate, **OPTIONS | options)
        is_to_stop = solver._is_to_stop
        solver.evaluations = 0

        def remember(interrupt):
            solver.interrupt = interrupt
            return is_to_stop(interrupt)

        solver._is_to_stop = remember
        solver.train()
        return solver

    for solver in on_ranks(2, interrupted):
        assert solver.interrupted
        assert solver.signal == signal.SIGINT
        assert [row["val_loss"] for row in solver.history] == [2]
        assert solver.iteration == 8


# ------------------------------------------------------------------ errors


def test_ranks_that_drift_stop():
    class Drifting(CaptioningRNN):
        def loss(self, *batch, **options):
            found = super().loss(*batch, **options)
            self.params.flat[5] += 1e-9
            return found

    def train(communicator):
        kind = Drifting if communicator.rank == 2 else CaptioningRNN
        solver = Solver(
            kind(WORDS, 4, 3, 4, dtype=np.float64, rng=2, **ATTENTIVE),
            Captions(),
            communicator=communicator,
            **OPTIONS,
        )
        with pytest.raises(DriftError, match=r"epoch 0, iteration 4: the parameters of rank 2 are not those"):
            solver.train()

    on_ranks(3, train)


def test_a_callback_that_changes_parameters_is_an_error_of_all_ranks():
    class Shifts(Callback):
        def on_epoch(self, solver):
            solver.model.params.flat[0] += 1

    def train(communicator):
        with pytest.raises(DriftError, match=r"epoch 1, iteration 4: .*; a callback, which rank 0 alone"):
            trained(arnet, communicator, callbacks=[Shifts()])

    on_ranks(2, train)


def test_ranks_that_begin_with_other_parameters_do_not_train():
    def train(communicator):
        model = CaptioningRNN(WORDS, 4, 3, 4, rng=communicator.rank, attention="dot")
        solver = Solver(model, Captions(), communicator=communicator, **OPTIONS)
        with pytest.raises(DriftError, match="epoch 0, iteration 0: the parameters of rank 1"):
            solver.train()

    on_ranks(2, train)


def test_numbers_that_are_not_finite_are_an_error_of_all_ranks():
    def train(communicator):
        model, data, options = attentive()
        if communicator.rank == 1:
            data.splits["train"][0][...] = np.nan
        solver = Solver(model, data, communicator=communicator, **OPTIONS | options)
        with pytest.raises(NonFiniteError) as raised:
            solver.train()
        return str(raised.value)

    first, second = on_ranks(2, train)
    assert first == second
    assert "the loss is nan" in first


def test_what_several_ranks_cannot_train(make_model, data, simulated):
    two = OneProcess()
    two.size = 2
    with pytest.raises(
        TypeError, match="communicator has 2 ranks, but the loss of this LinearModel takes no"
    ):
        Solver(make_model(), data, communicator=two)
    with pytest.raises(ValueError, match="communicator has 2 ranks, and graphs is true: a graph holds"):
        Solver(captioner(), Captions(), device="gpu:0", graphs=True, communicator=two)
    with pytest.raises(TypeError, match="communicator is of type int, expected a communicator of mpi4py"):
        Solver(make_model(), data, communicator=2)
