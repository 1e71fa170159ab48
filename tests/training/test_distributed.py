"""Ranks that train together: the run of one process, whatever its model; agreement, and errors.

The ranks are threads here. ``test_on_mpi.py`` has processes.
"""

from __future__ import annotations

import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab.data import ParallelData, PixelData
from rnnlab.errors import InputError
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.ops import device_of
from rnnlab.training import Callback, NonFiniteError, SelfCritical, validation_loss
from rnnlab.training.distributed import (
    ALONE,
    DriftError,
    MPICommunicator,
    OneProcess,
    by_rank_0,
    communicator_of,
    device_of_rank,
    gather_results,
    in_shares,
    of_rank_0,
    rank_0_prints,
    world,
)
from rnnlab.training.interrupt import Interrupted
from rnnlab.training.run_directory import RunDirectory
from rnnlab.training.solver import Solver

from .ranks import on_ranks

pytestmark = pytest.mark.usefixtures("no_pictures")

WORDS = {word: index for index, word in enumerate(["<NULL>", "<START>", "<END>", "a", "b", "c", "d"])}


# ------------------------------------------------------------------ the same training as that of one process


class Captions:
    """19 captions of different lengths, so that the last batch of 6 has one row."""

    in_memory = True

    def __init__(self):
        rng = np.random.default_rng(4)
        captions = np.zeros((19, 11), np.int32)
        for row, length in zip(captions, rng.integers(1, 10, 19), strict=True):
            row[: length + 2] = [1, *rng.integers(3, 7, length), 2]
        features = rng.standard_normal((19, 3, 4))
        self.splits = {"train": (features, captions), "val": (features[:7], captions[:7])}
        self.read = []

    def epoch(self, split, batch_size, rng):
        order = np.arange(len(self.splits[split][1]))
        if rng is not None:
            rng.shuffle(order)
        return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]

    def row_lengths(self, split, indices):
        return np.count_nonzero(self.splits[split][1][indices], axis=1)

    def batch(self, split, indices):
        self.read.append((split, len(indices)))
        return tuple(array[indices] for array in self.splits[split])

    def num_tokens(self, batch):
        return int(np.count_nonzero(batch[1][:, 1:]))


def sentence_pairs():
    rng = np.random.default_rng(6)
    pairs = [(list("abcd"[: rng.integers(1, 5)]), list("xyz") * int(rng.integers(1, 4))) for _ in range(19)]
    return ParallelData({"train": pairs, "val": pairs[:4]})


def pixels():
    rng = np.random.default_rng(8)
    images, labels = rng.integers(0, 256, (19, 3, 3), dtype=np.uint8), rng.integers(0, 3, 19)
    return PixelData({"train": (images, labels), "val": (images[:5], labels[:5])}, num_classes=3)


def captioner(**options):
    return CaptioningRNN(WORDS, 4, 3, 4, dtype=np.float64, rng=2, **options)


NOISE = {"word_dropout": 0.2, "output_dropout": 0.3}
SAMPLING = {"scheduled_sampling": {"name": "constant", "value": 0.4}}
ARNET = {"reconstruction": 0.3, "reconstructor_dim": 3}
ATTENTIVE = {"cell_type": "lstm", "attention": "additive", **NOISE}


def attentive():
    return captioner(doubly_stochastic=0.5, label_smoothing=0.1, **ATTENTIVE), Captions(), SAMPLING


def arnet():
    return (
        captioner(loss_average="token", regularisation={"zoneout_h": 0.2}, **ATTENTIVE, **ARNET),
        Captions(),
        {},
    )


def reviewer():
    options = {"reviewer": {"blocks": 2, "steps": 2, "dropout": 0.2}, "discriminative": 0.3}
    return captioner(**options, **ATTENTIVE), Captions(), SAMPLING


def translator():
    data = sentence_pairs()
    sizes = data.source_vocabulary.word_to_idx, data.vocabulary.word_to_idx, 3, 4
    return Seq2Seq(*sizes, dtype=np.float64, loss_average="token", rng=2, **NOISE), data, SAMPLING


def classifier():
    return SequenceClassifier(3, 1, 4, dtype=np.float64, output_dropout=0.3, rng=2, **ARNET), pixels(), {}


OPTIONS = {
    "num_epochs": 2,
    "batch_size": 6,
    "optim_config": {"learning_rate": 0.01},
    "clip_norm": 1.0,
    "verbose": False,
}


def trained(make, communicator=None, **changes):
    model, data, options = make()
    solver = Solver(model, data, communicator=communicator, **OPTIONS | options | changes)
    solver.train()
    return solver


def assert_same(solver, expected):
    """The same losses, history and parameters up to rounding."""
    np.testing.assert_allclose(solver.loss_history, expected.loss_history, rtol=1e-9)
    for row, other in zip(solver.history, expected.history, strict=True):
        assert row.keys() == other.keys()
        for name in row.keys() - {"seconds", "tokens_per_second"}:
            assert row[name] == pytest.approx(other[name], rel=1e-9), name
    flat = expected.model.params.flat
    np.testing.assert_allclose(solver.model.params.flat, flat, rtol=0, atol=1e-7 * np.abs(flat).max())


@pytest.mark.parametrize("make", [attentive, arnet, reviewer, translator, classifier])
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


def test_the_device_of_a_rank(monkeypatch):
    monkeypatch.setattr("rnnlab.training.distributed.num_gpus", lambda: 2)
    ranks = [SimpleNamespace(rank=rank, size=5, local_rank=rank % 3) for rank in range(5)]
    assert [device_of_rank(each, "gpu") for each in ranks] == ["gpu:0", "gpu:1", "gpu:0", "gpu:0", "gpu:1"]
    assert [device_of_rank(each, "gpu:1") for each in ranks[:2]] == ["gpu:1", "gpu:1"]
    assert device_of_rank(ranks[1], "cpu") == "cpu"
    assert device_of_rank(ALONE, "gpu") == "gpu"


def test_ranks_have_the_average_of_one_process():
    solvers = on_ranks(2, lambda communicator: trained(attentive, communicator, ema_decay=0.9))
    assert_same(solvers[0], trained(attentive, accumulate=2, ema_decay=0.9))
    averages = [solver._state.average.values for solver in solvers]
    np.testing.assert_array_equal(*averages)


def test_each_rank_accumulates():
    solvers = on_ranks(2, lambda communicator: trained(attentive, communicator, accumulate=2))
    assert_same(solvers[0], trained(attentive, accumulate=4))


def test_ranks_without_rows_take_part():
    """Batches of 2 rows, and the last of one, on 3 ranks."""
    solvers = on_ranks(3, lambda communicator: trained(arnet, communicator, batch_size=2))
    assert_same(solvers[0], trained(arnet, batch_size=2, accumulate=3))


class Images(Captions):
    """The features with their rows: sentences are sampled for them."""

    def row_lengths(self, split, indices):
        return np.ones(len(indices), int)

    def batch(self, split, indices):
        return self.splits[split][0][indices], indices


def reward(sources, tokens, lengths):
    return (tokens == 3 + sources[:, None] % 4).sum(axis=1) / lengths


@pytest.mark.parametrize("average", ["batch", "token"])
@pytest.mark.parametrize("baseline", ["mean", "greedy"])
def test_ranks_sample_sentences_for_their_rows(average, baseline):
    def make():
        objective = SelfCritical(reward, samples=3, baseline=baseline, feature_dropout=0.1, dropout=True)
        model = captioner(loss_average=average, **ATTENTIVE)
        return model, Images(), {"objective": objective, "evaluate": lambda model: {"val_loss": 1.0}}

    solvers = on_ranks(3, lambda communicator: trained(make, communicator))
    alone = trained(make, accumulate=3)
    assert_same(solvers[0], alone)
    assert {"reward", "baseline_reward", "sampled_length"} <= alone.history[0].keys()
    for other in solvers[1:]:
        np.testing.assert_array_equal(other.model.params.flat, solvers[0].model.params.flat)


def test_a_run_repeats_bit_for_bit():
    first, second = (on_ranks(2, lambda communicator: trained(attentive, communicator)) for _ in range(2))
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


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_shares_come_back_in_order(size):
    def squares(communicator):
        def square(number):
            done.append(number)
            return number * number

        return in_shares(communicator, range(4), square)

    done = []
    assert on_ranks(size, squares) == [[0, 1, 4, 9]] * size
    assert sorted(done) == [0, 1, 2, 3]


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


class SignalledOnArrival:
    """A rank that a signal interrupts as it returns from an exchange, before it has seen the values."""

    def __init__(self, communicator, exchange):
        self.rank, self.size = communicator.rank, communicator.size
        self._communicator, self._left = communicator, exchange

    def gather(self, value):
        values = self._communicator.gather(value)
        self._left -= 1
        if self._left == 0:
            raise Interrupted
        return values


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("exchange", [1, 2, 3])
def test_signals_at_several_ranks_leave_them_in_step(first, exchange):
    """One rank at work and another in an exchange: mpirun passes a signal on to all."""

    def work(communicator):
        def interrupted():
            gather_results(signalled, "one")
            if communicator.rank == first:
                raise Interrupted
            gather_results(signalled, "two")
            gather_results(signalled, "three")

        is_to_be = communicator.rank == (first + 1) % 3
        signalled = SignalledOnArrival(communicator, exchange) if is_to_be else communicator
        with pytest.raises(Interrupted):
            of_rank_0(communicator, interrupted)
        return communicator.gather(communicator.rank)

    assert on_ranks(3, work) == [[0, 1, 2]] * 3


def test_rank_0_alone_works():
    def work(communicator):
        return by_rank_0(communicator, lambda: done.append(communicator.rank) or "scores")

    done = []
    assert on_ranks(3, work) == ["scores"] * 3
    assert done == [0]
    assert by_rank_0(ALONE, lambda: "scores") == "scores"


def test_an_error_of_rank_0_is_one_of_all():
    def work(communicator):
        def fail():
            raise InputError("no Java")

        with pytest.raises(InputError, match="no Java"):
            by_rank_0(communicator, fail)

    on_ranks(3, work)


def test_work_of_all_ranks_is_that_of_rank_0():
    found = on_ranks(3, lambda communicator: of_rank_0(communicator, lambda: communicator.rank))
    assert found == [0, 0, 0]


@pytest.mark.parametrize(("rank", "expected"), [(0, "before\nwithin\nafter\n"), (1, "before\nafter\n")])
def test_rank_0_alone_prints(rank, expected, capsys):
    print("before")
    with rank_0_prints(SimpleNamespace(rank=rank)):
        print("within")
    print("after")
    assert capsys.readouterr().out == expected


def test_other_ranks_may_print_what_the_locale_has_no_letter_for():
    with rank_0_prints(SimpleNamespace(rank=1)):
        print("\ud800")


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
    members = {"gather": None, "begin_sum": None, "end_sums": None, "watch": None, "share": None}
    two = SimpleNamespace(rank=0, size=2, **members)
    with pytest.raises(
        TypeError, match="communicator has 2 ranks, but the loss of this LinearModel takes no"
    ):
        Solver(make_model(), data, communicator=two)
    with pytest.raises(ValueError, match="communicator has 2 ranks, and graphs is true: a graph holds"):
        Solver(captioner(), Captions(), device="gpu:0", graphs=True, communicator=two)
    with pytest.raises(TypeError, match="communicator is of type int, expected a communicator of mpi4py"):
        Solver(make_model(), data, communicator=2)
    del two.watch
    with pytest.raises(TypeError, match="communicator is of type SimpleNamespace, expected a communicator"):
        Solver(make_model(), data, communicator=two)


# ------------------------------------------------------------------ MPI


def mpi(monkeypatch, size):
    """A stand-in for the module of mpi4py, with a job of this size."""
    found = SimpleNamespace(COMM_WORLD=SimpleNamespace(size=size, rank=1, Alltoallv=None))
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=found))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.fixture
def no_launcher(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_launcher")
@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_the_launcher_is_found(name, monkeypatch):
    mpi(monkeypatch, 2)
    assert isinstance(world(), OneProcess)
    assert isinstance(world(wanted=True), MPICommunicator)
    monkeypatch.setenv(name, "1")
    assert isinstance(world(), OneProcess)
    monkeypatch.setenv(name, "2")
    assert (world().rank, world().size) == (1, 2)
    monkeypatch.setenv(name, "3")
    with pytest.raises(
        ValueError, match="the launcher has started 3 processes, and MPI finds 2: mpi4py uses"
    ):
        world()


@pytest.mark.usefixtures("no_launcher")
def test_without_mpi4py(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert world().size == 1
    with pytest.raises(ImportError, match=r'needs mpi4py and an MPI library: pip install "rnnlab\[mpi\]"'):
        world(wanted=True)


def test_one_rank_is_one_process():
    assert isinstance(communicator_of(SimpleNamespace(size=1, rank=0, Alltoallv=None)), OneProcess)
    assert isinstance(communicator_of(None), OneProcess)


def test_a_communicator_of_mpi4py_is_wrapped_once(monkeypatch):
    """Each wrapper would leave a hook for exceptions and a thread."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr("rnnlab.training.distributed._MADE", [])
    given = [SimpleNamespace(size=2, rank=0, Alltoallv=None) for _ in range(2)]
    made = [communicator_of(each) for each in given]
    hook = sys.excepthook
    assert communicator_of(given[0]) is made[0]
    assert communicator_of(given[1]) is made[1]
    assert made[0] is not made[1]
    assert communicator_of(given[0], timeout=7) is not made[0]
    assert sys.excepthook is not hook


def test_an_exception_that_nothing_catches_ends_the_job(monkeypatch):
    statuses, shown = [], []
    monkeypatch.setattr(sys, "excepthook", lambda *error: shown.append(error))
    monkeypatch.setattr("rnnlab.training.distributed._SECONDS_OF_RANK_0", 0)
    MPICommunicator(SimpleNamespace(size=2, rank=1, Abort=statuses.append))
    sys.excepthook(ValueError, ValueError("wrong"), None)
    assert len(shown) == 1
    assert statuses == [1]
