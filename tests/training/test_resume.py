"""A resumed run is the run that was never stopped, bit for bit."""

from __future__ import annotations

import functools
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from rnnlab.files import WriteError
from rnnlab.locks import InUseError
from rnnlab.training import Callback
from rnnlab.training.checkpoint import CheckpointError, load_checkpoint
from rnnlab.training.optim import UPDATE_RULES
from rnnlab.training.solver import Solver

from .conftest import LinearData, LinearModel

OPTIONS = {
    "num_epochs": 4,
    "batch_size": 8,
    "optim_config": {"learning_rate": 0.05},
    "schedule": {"name": "plateau", "factor": 0.5},
    "clip_norm": 1.0,
    "seed": 5,
    "verbose": False,
}
ONE_EPOCH = OPTIONS | {"num_epochs": 1}


pytestmark = pytest.mark.usefixtures("no_pictures")


class Killed(Exception):
    """Stands for a kill: training ends where it is, nothing is written any more."""


def killed_at(model, call):
    class Dying(type(model)):
        calls = 0

        def loss(self, *batch, **options):
            Dying.calls += 1
            if Dying.calls == call:
                raise Killed
            return super().loss(*batch, **options)

    Dying.__name__ = type(model).__name__
    return Dying()


def timeless(history):
    return [{k: v for k, v in row.items() if k not in ("seconds", "tokens_per_second")} for row in history]


def assert_same_run(one, other):
    assert one.loss_history == other.loss_history
    assert timeless(one.history) == timeless(other.history)
    assert (one.monitor.best, one.monitor.best_epoch) == (other.monitor.best, other.monitor.best_epoch)
    np.testing.assert_array_equal(one.model.params.flat, other.model.params.flat)
    for key, value in one._state.rule.state().items():
        np.testing.assert_array_equal(value, other._state.rule.state()[key])
    assert one._state.rng.bit_generator.state == other._state.rng.bit_generator.state
    assert one._state.order.state() == other._state.order.state()


@pytest.fixture(scope="module")
def reference():
    return reference_of()


@functools.cache
def reference_of(**options):
    """A run that was never stopped, which several tests compare others with."""
    solver = Solver(LinearModel(), LinearData(), **OPTIONS | options)
    solver.train()
    return solver


@pytest.mark.one_in(2)
@pytest.mark.parametrize("call", [5, 8, 9, 15, 20, 28])
def test_after_a_kill_anywhere(make_model, make_data, data, tmp_path, reference, call):
    with pytest.raises(Killed):
        Solver(killed_at(make_model(), call), data, run_dir=tmp_path, checkpoint_every=2, **OPTIONS).train()
    solver = Solver.resume(tmp_path, make_model(), make_data())
    assert 0 < len(solver.loss_history) < call
    solver.train()
    assert_same_run(solver, reference)


@pytest.mark.parametrize("write", range(1, 5))
@pytest.mark.parametrize("options", [{}, {"ema_decay": 0.9}])
def test_after_a_kill_at_any_checkpoint_of_the_first_epochs(
    make_model, make_data, data, tmp_path, monkeypatch, options, write
):
    """Also between last.h5 and best.h5, of which neither is there yet."""
    reference, options = reference_of(**options), OPTIONS | options
    written, replace = [], Path.replace

    def killing(path, target):
        if target.suffix == ".h5":
            written.append(target)
            if len(written) == write:
                raise Killed
        return replace(path, target)

    solver = Solver(make_model(), data, run_dir=tmp_path, **options)
    monkeypatch.setattr(Path, "replace", killing)
    with pytest.raises(Killed):
        solver.train()
    monkeypatch.setattr(Path, "replace", replace)
    if write == 1:
        Solver(make_model(), data, run_dir=tmp_path, **options)  # there is no run
        return
    solver = Solver.resume(tmp_path, make_model(), make_data())
    solver.train()
    assert_same_run(solver, reference)
    best = load_checkpoint(tmp_path / "best.h5")
    assert best.history[-1]["epoch"] == reference.monitor.best_epoch
    np.testing.assert_array_equal(best.parameters.flat, reference.model.params.flat)


def test_the_checkpoint_of_the_best_epoch_is_missing(make_model, data, tmp_path):
    options = OPTIONS | {"num_epochs": 2, "optim_config": {"learning_rate": 1e-30}}
    Solver(make_model(), data, run_dir=tmp_path, **options).train()
    best = tmp_path / "best.h5"
    assert load_checkpoint(best).history[-1]["epoch"] == 1  # the loss did not fall any more
    best.rename(tmp_path / "best.previous.h5")
    Solver.resume(tmp_path, make_model(), data, num_epochs=3).train()
    assert load_checkpoint(best).history[-1]["epoch"] == 1
    best.unlink()
    message = r"best.h5: no such checkpoint, expected that of epoch 1, .* resume with restore_best=False"
    before = (tmp_path / "last.h5").read_bytes()
    with pytest.raises(FileNotFoundError, match=message):
        Solver.resume(tmp_path, make_model(), data, num_epochs=4).train()
    assert (tmp_path / "last.h5").read_bytes() == before
    solver = Solver.resume(tmp_path, make_model(), data, num_epochs=4, restore_best=False)
    solver.train()
    assert len(solver.history) == 4


@pytest.mark.parametrize("options", [{}, {"ema_decay": 0.9}])
def test_the_checkpoint_of_the_best_epoch_is_written_again(make_model, data, tmp_path, options):
    """As long as the model has the parameters of that epoch: not after another iteration."""
    options = OPTIONS | options | {"num_epochs": 1, "checkpoint_every": 1}
    Solver(make_model(), data, run_dir=tmp_path, **options).train()
    best, last = tmp_path / "best.h5", tmp_path / "last.h5"
    expected, at_the_end = load_checkpoint(best).parameters.flat.copy(), last.read_bytes()
    best.unlink()
    Solver.resume(tmp_path, make_model(), data).train()
    np.testing.assert_array_equal(load_checkpoint(best).parameters.flat, expected)
    with pytest.raises(Killed):
        Solver.resume(tmp_path, killed_at(make_model(), 2), data, num_epochs=2).train()
    assert last.read_bytes() != at_the_end
    best.unlink()
    with pytest.raises(FileNotFoundError, match="expected that of epoch 1"):
        Solver.resume(tmp_path, make_model(), data).train()
    assert not best.exists()


@pytest.mark.parametrize("weights", [np.array([0.5, 1]), {"aux": 0.5}, (0.5,), 3])
def test_a_model_with_loss_weights_of_its_own(make_model, data, tmp_path, weights):
    class Weighted(make_model):
        loss_weights = weights

    Weighted.__name__ = "LinearModel"
    Solver(Weighted(), data, run_dir=tmp_path, **OPTIONS | {"num_epochs": 1}).train()
    solver = Solver.resume(tmp_path, Weighted(), data, num_epochs=2)
    solver.train()
    assert len(solver.history) == 2


def test_the_checkpoint_of_the_best_epoch_of_an_average_is_missing(make_model, data, tmp_path):
    options = OPTIONS | {"num_epochs": 2, "optim_config": {"learning_rate": 1e-30}, "ema_decay": 0.5}
    Solver(make_model(), data, run_dir=tmp_path, **options).train()
    (tmp_path / "best.h5").unlink()
    with pytest.raises(FileNotFoundError, match=r"or use .*last.h5 as the warm start of a new run"):
        Solver.resume(tmp_path, make_model(), data, num_epochs=4).train()


def test_a_run_whose_directory_another_run_has(make_model, data, tmp_path):
    class Replaced(Callback):
        def on_epoch(self, solver):
            if solver.epoch == 1:
                shutil.rmtree(run)
            if solver.epoch == 2:
                assert (run / "last.h5").exists()
                shutil.rmtree(run)
                Solver(make_model(), data, run_dir=run, **OPTIONS | {"num_epochs": 1}).train()
                others.update({path.name: path.read_bytes() for path in run.glob("*.h5")})

    run, others = tmp_path / "run", {}
    solver = Solver(make_model(), data, run_dir=run, callbacks=[Replaced()], restore_best=False, **OPTIONS)
    with pytest.raises(InUseError, match="run is in use: another process trains in it"):
        solver.train()
    assert others
    assert {path.name: path.read_bytes() for path in run.glob("*.h5")} == others


def test_changes_are_saved_at_once(make_model, data, tmp_path, reference):
    Solver(make_model(), data, run_dir=tmp_path, **OPTIONS | {"num_epochs": 2}).train()
    before = (tmp_path / "last.h5").read_bytes()
    Solver.resume(tmp_path, make_model(), data).train()  # no changes, and nothing to train
    assert (tmp_path / "last.h5").read_bytes() == before
    with pytest.raises(Killed):
        Solver.resume(tmp_path, killed_at(make_model(), 1), data, num_epochs=4).train()
    solver = Solver.resume(tmp_path, make_model(), data)
    assert solver.options.num_epochs == 4
    solver.train()
    assert_same_run(solver, reference)


def test_every_epoch_in_a_process_of_its_own(make_model, make_data, data, tmp_path, reference):
    Solver(make_model(), data, run_dir=tmp_path, **{**OPTIONS, "num_epochs": 1}).train()
    for num_epochs in (2, 3, 4):
        solver = Solver.resume(tmp_path, make_model(), make_data(), num_epochs=num_epochs)
        solver.train()
    assert_same_run(solver, reference)


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_with_every_rule_in_single_precision(make_model, make_data, data, tmp_path, rule):
    dtype, options = "float32", OPTIONS | {"update_rule": rule, "num_epochs": 2}
    reference = Solver(make_model(dtype=dtype), data, **options)
    reference.train()

    class Model(make_model):
        def __init__(self):
            super().__init__(dtype=dtype)

    Model.__name__ = "LinearModel"
    with pytest.raises(Killed):
        Solver(killed_at(Model(), 12), data, run_dir=tmp_path, checkpoint_every=4, **options).train()
    solver = Solver.resume(tmp_path, make_model(dtype=dtype), make_data())
    assert len(solver.loss_history) == 8
    solver.train()
    assert_same_run(solver, reference)


def test_after_early_stopping_with_more_patience(make_model, make_data, data, tmp_path):
    def evaluate(model):
        return {"val_loss": float(abs(len(evaluate.calls.append(1) or evaluate.calls) - 2))}

    evaluate.calls = []
    solver = Solver(make_model(), data, run_dir=tmp_path, evaluate=evaluate, patience=1, **OPTIONS)
    solver.train()
    assert len(solver.history) == 3
    with pytest.raises(ValueError, match="had its own evaluation function, pass it as evaluate"):
        Solver.resume(tmp_path, make_model(), make_data(), patience=5)
    solver = Solver.resume(tmp_path, make_model(), make_data(), evaluate=evaluate, patience=5)
    solver.train()
    assert [row["val_loss"] for row in solver.history] == [1, 0, 1, 2]
    best = load_checkpoint(tmp_path / "best.h5")
    np.testing.assert_array_equal(solver.model.params.flat, best.parameters.flat)
    assert solver.monitor.best_epoch == len(best.history) == 2


def test_after_a_validation_that_failed(make_model, make_data, data, tmp_path):
    """Scores that need another program fail now and then; the epoch before them is not lost."""

    def evaluate(model):
        if evaluate.broken and len(failing.history) == 1:
            raise OSError("broken pipe")
        return {"val_loss": float(np.abs(model.params.flat).sum())}

    evaluate.broken = True
    failing = Solver(make_model(), data, run_dir=tmp_path, evaluate=evaluate, **OPTIONS)
    with pytest.raises(OSError, match="broken pipe"):
        failing.train()
    evaluate.broken = False
    solver = Solver.resume(tmp_path, make_model(), make_data(), evaluate=evaluate)
    assert len(solver.loss_history) == 14
    assert len(solver.history) == 1
    solver.train()
    reference = Solver(make_model(), data, evaluate=evaluate, **OPTIONS)
    reference.train()
    assert_same_run(solver, reference)


def test_a_finished_run_gives_its_best_parameters(make_model, make_data, data, tmp_path, reference):
    Solver(make_model(), data, run_dir=tmp_path, **OPTIONS).train()
    solver = Solver.resume(tmp_path, make_model(), make_data())
    solver.train()
    assert_same_run(solver, reference)


def test_options_come_from_the_run(make_model, data, tmp_path, capsys):
    solver = Solver(
        make_model(), data, run_dir=tmp_path, config={"name": "é"}, **{**OPTIONS, "num_epochs": 1}
    )
    solver.train()
    resumed = Solver.resume(tmp_path, make_model(), data, num_epochs=2, verbose=True, print_every=5)
    assert resumed.options.batch_size == 8
    assert resumed.options.optim_config == solver.options.optim_config
    resumed.train()
    assert load_checkpoint(tmp_path / "last.h5").config == {"name": "é"}
    assert "(Iteration 11 / 14) loss: " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["batch_size", "seed", "optim_config", "clip_norm", "weight_decay"])
def test_what_cannot_change(make_model, data, tmp_path, name):
    Solver(make_model(), data, run_dir=tmp_path, **ONE_EPOCH).train()
    with pytest.raises(ValueError, match=f"resume: {name} cannot change within a run, only num_epochs"):
        Solver.resume(tmp_path, make_model(), data, **{name: 1})


def test_another_model(make_model, data, tmp_path):
    Solver(make_model(), data, run_dir=tmp_path, **ONE_EPOCH).train()
    with pytest.raises(CheckpointError, match="last.h5: model: dropout: found 0.2, expected 0.5"):
        Solver.resume(tmp_path, make_model(dropout=0.5), data)


def test_nothing_to_resume(make_model, data, tmp_path):
    with pytest.raises(FileNotFoundError, match="none' has no last.h5 to resume from"):
        Solver.resume(tmp_path / "none", make_model(), data)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file' is a file, expected a directory"):
        Solver.resume(tmp_path / "file", make_model(), data)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (b"{}", "solver: options: found nothing, expected the state of a training run"),
        (b'{"options": {"num_epochs": 2}, "own_evaluate": false}', "solver: schedule: found nothing"),
        (
            b'{"options": {"num_epochs": 2}, "own_evaluate": false, "schedule": {}, "monitor": {},'
            b' "order": {}, "rng": {}, "totals": {}}',
            "solver: found KeyError",
        ),
    ],
)
def test_a_checkpoint_without_a_run(make_model, data, tmp_path, field, message):
    Solver(make_model(), data, run_dir=tmp_path, **ONE_EPOCH).train()
    with h5py.File(tmp_path / "last.h5", "a") as file:
        del file["solver"]
        file["solver"] = np.bytes_(field)
    with pytest.raises(CheckpointError, match=message):
        Solver.resume(tmp_path, make_model(), data)


def test_fewer_epochs_than_there_were(make_model, data, tmp_path):
    Solver(make_model(), data, run_dir=tmp_path, **OPTIONS | {"num_epochs": 2}).train()
    kept = (tmp_path / "last.h5").read_bytes()
    with pytest.raises(ValueError, match="num_epochs is 1, but .* has [2-9] epochs already"):
        Solver.resume(tmp_path, make_model(), data, num_epochs=1)
    assert (tmp_path / "last.h5").read_bytes() == kept


def test_a_new_configuration_stays_with_the_run(make_model, data, tmp_path):
    Solver(make_model(), data, run_dir=tmp_path, config={"a": 1}, **ONE_EPOCH).train()
    Solver.resume(tmp_path, make_model(), data, config={"a": 2}).train()  # nothing to train
    assert load_checkpoint(tmp_path / "last.h5").config == {"a": 2}


def test_a_checkpoint_of_another_rule(make_model, data, tmp_path):
    Solver(make_model(), data, run_dir=tmp_path, **ONE_EPOCH).train()
    with h5py.File(tmp_path / "last.h5", "a") as file:
        del file["optimiser/v"]
    with pytest.raises(CheckpointError, match="last.h5: optimiser: found state has steps, m, expected steps"):
        Solver.resume(tmp_path, make_model(), data)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import LinearData, LinearModel
from rnnlab.training.solver import Solver
Solver(LinearModel(), LinearData(), num_epochs=100_000, batch_size=8, run_dir=sys.argv[2], checkpoint_every=2,
       seed=5, restore_best=False).train()
"""


@pytest.mark.slow
def test_after_kill_minus_9(make_model, make_data, tmp_path):
    """Kill a process that writes checkpoints all the time, at no moment in particular; go on; compare."""
    run = tmp_path / "run"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "MPLBACKEND": "Agg"}
    here = str(Path(__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, here, str(run)], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not (run / "best.h5").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.3)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()

    done = len(load_checkpoint(run / "last.h5").losses)
    num_epochs = done // 7 + 2
    solver = Solver.resume(run, make_model(), make_data(), num_epochs=num_epochs, verbose=False)
    assert len(solver.loss_history) == done
    solver.train()
    reference = Solver(
        make_model(),
        make_data(),
        num_epochs=num_epochs,
        batch_size=8,
        seed=5,
        restore_best=False,
        verbose=False,
    )
    reference.train()
    assert_same_run(solver, reference)


# ------------------------------------------------------------------ another learning rate


def test_another_learning_rate(make_model, make_data, data, tmp_path):
    """The schedule goes on, the history says so, and the run resumes with the new rate from then on."""
    options = OPTIONS | {"schedule": {"name": "exponential", "decay": 0.5}, "restore_best": False}
    Solver(make_model(), data, run_dir=tmp_path, **options | {"num_epochs": 1}).train()
    solver = Solver.resume(tmp_path, make_model(), make_data(), num_epochs=2, learning_rate=0.02)
    solver.train()
    solver = Solver.resume(tmp_path, make_model(), make_data(), num_epochs=3, learning_rate=0.02)
    solver.train()
    assert [row["learning_rate"] for row in solver.history] == pytest.approx([0.05, 0.01, 0.005])
    assert [row.get("former_learning_rate") for row in solver.history] == [None, 0.05, None]

    def rates(iteration, epoch):
        return 0.5**epoch * (1 if epoch == 0 else 0.4)

    expected = Solver(make_model(), data, **options | {"num_epochs": 3, "schedule": rates})
    expected.train()
    np.testing.assert_allclose(solver.model.params.flat, expected.model.params.flat, rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "column", "former"),
    [
        ([{"learning_rate": 0.02}, {"learning_rate": 0.01}], "former_learning_rate", 0.05),
        ([{"matmul": "tf32"}, {"matmul": "bfloat16"}], "former_matmul", "float32"),
    ],
)
def test_a_change_is_not_forgotten_within_an_epoch(
    changes, column, former, make_model, make_data, data, tmp_path
):
    class Stops(Callback):
        def on_step(self, solver, loss, grads):
            solver.stop("test")

    options = {"matmul": "float32", **OPTIONS}
    Solver(make_model(), data, run_dir=tmp_path, callbacks=[Stops()], **options).train()
    for change in changes:
        solver = Solver.resume(tmp_path, make_model(), make_data(), callbacks=[Stops()], **change)
        solver.train()
    solver = Solver.resume(tmp_path, make_model(), make_data())
    solver.train()
    assert [row.get(column) for row in solver.history] == [former, None, None, None]
    assert not {"former_learning_rate", "former_matmul"} - {column} & set(solver.history[0])
    assert solver.history[0]["learning_rate"] == pytest.approx(changes[-1].get("learning_rate", 0.05))


def test_a_rule_whose_options_have_no_learning_rate(make_model, make_data, data, tmp_path):
    """A rule of the user's has a learning rate; it need not be an option."""
    options = OPTIONS | {"update_rule": "tests.training.own_rules:Halving", "optim_config": {}}
    Solver(make_model(), data, run_dir=tmp_path, **options | {"num_epochs": 1}).train()
    solver = Solver.resume(tmp_path, make_model(), make_data(), num_epochs=2)
    solver.train()
    assert [row["learning_rate"] for row in solver.history] == [0.5, 0.5]
    assert not any("former_learning_rate" in row for row in solver.history)


def test_a_bad_learning_rate(make_model, make_data, data, tmp_path):
    Solver(make_model(), data, run_dir=tmp_path, **OPTIONS | {"num_epochs": 1}).train()
    with pytest.raises(ValueError, match="learning_rate is -1, expected a positive number"):
        Solver.resume(tmp_path, make_model(), make_data(), learning_rate=-1)


def test_an_error_while_the_best_checkpoint_is_written(make_model, data, tmp_path, monkeypatch):
    """Training goes on in the same process, as in a notebook, and ends with the best epoch."""
    options = {
        "batch_size": 8,
        "verbose": False,
        "num_epochs": 2,
        "evaluate": lambda model: {"val_loss": next(losses)},
    }
    losses = iter([3.0, 1.0, 2.0])
    solver = Solver(make_model(), data, run_dir=tmp_path, **options)
    save_best, calls = solver._storage.save_best, []

    def fails_once():
        calls.append(solver.epoch)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return save_best()

    monkeypatch.setattr(solver._storage, "save_best", fails_once)
    with pytest.raises(KeyboardInterrupt):
        solver.train()
    at_the_best = solver.model.params.flat.copy()
    solver.train()
    assert solver.monitor.best_epoch == 2
    np.testing.assert_array_equal(load_checkpoint(tmp_path / "best.h5").parameters.flat, at_the_best)
    np.testing.assert_array_equal(solver.model.params.flat, at_the_best)


def test_an_evaluation_that_fails_on_a_full_disk(make_model, data, tmp_path, monkeypatch):
    def evaluate(model):
        raise RuntimeError("no Java")

    def full():
        raise WriteError(tmp_path / "last.h5", OSError(28, "No space left on device"))

    solver = Solver(make_model(), data, run_dir=tmp_path, evaluate=evaluate, verbose=False)
    monkeypatch.setattr(solver._storage, "save", full)
    with pytest.raises(RuntimeError, match="no Java") as error:
        solver.train()
    assert "No checkpoint was written" in error.value.__notes__[0]


@pytest.mark.parametrize(
    ("lines", "iterations"), [(0, 1), (1, 2), (6, 7), (7, 7), (8, 8), (30, 28)]
)  # 7 iterations and a validation per epoch
def test_a_closed_output_ends_a_run_after_a_checkpoint(
    make_model, make_data, tmp_path, monkeypatch, lines, iterations
):
    """As in `rnnlab train RECIPE | head -LINES`."""

    class Pipe(io.StringIO):
        written = 0

        def write(self, text):
            self.written += text.count("\n")
            if self.written > lines:
                raise BrokenPipeError
            return len(text)

    shown = OPTIONS | {"verbose": True, "print_every": 1}
    reference = Solver(make_model(), make_data(), **OPTIONS)
    reference.train()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Pipe())
        solver = Solver(make_model(), make_data(), run_dir=tmp_path, **shown)
        with pytest.raises(BrokenPipeError):
            solver.train()
    assert solver.stop_reason == "the reader of the output has closed it"
    assert len(load_checkpoint(tmp_path / "last.h5").losses) == iterations
    resumed = Solver.resume(tmp_path, make_model(), make_data(), num_epochs=4)
    resumed.train()
    assert_same_run(resumed, reference)
