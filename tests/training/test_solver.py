from __future__ import annotations

import csv
import json
import pickle
import signal
import sys
import threading

import numpy as np
import pytest

import rnnlab
from rnnlab import ops
from rnnlab.training import Callback
from rnnlab.training import checkpoint as checkpoints
from rnnlab.training.checkpoint import load_checkpoint, load_model
from rnnlab.training.nonfinite import NonFiniteError
from rnnlab.training.solver import Solver
from rnnlab.training.validation import validation_loss


def quiet(model, data, **options):
    options = {"num_epochs": 3, "batch_size": 8, "optim_config": {"learning_rate": 0.05}, **options}
    return Solver(model, data, verbose=False, **options)


# ------------------------------------------------------------------ what it learns


def test_training_lowers_the_losses(model, data):
    before = validation_loss(model, data, 64)["val_loss"]
    solver = quiet(model, data, num_epochs=20)
    solver.train()
    assert len(solver.loss_history) == 20 * 7
    assert np.mean(solver.loss_history[-7:]) < 0.5 * np.mean(solver.loss_history[:7])
    assert solver.history[-1]["val_loss"] < 0.5 * before


def test_history_has_a_row_for_every_epoch(model, data):
    solver = quiet(model, data, schedule={"name": "exponential", "decay": 0.5})
    solver.train()
    assert [row["epoch"] for row in solver.history] == [1, 2, 3]
    assert [row["iteration"] for row in solver.history] == [7, 14, 21]
    assert [row["learning_rate"] for row in solver.history] == [0.05, 0.025, 0.0125]
    row = solver.history[1]
    assert row["train_loss"] == pytest.approx(np.mean(solver.loss_history[7:14]))
    assert set(row) == {
        *("epoch", "iteration", "train_loss", "train_loss_per_token", "learning_rate", "gradient_norm"),
        *("seconds", "tokens_per_second", "val_loss", "val_perplexity"),
    }
    assert row["tokens_per_second"] == pytest.approx(150 / row["seconds"])


def test_repr_has_the_progress(model, data):
    solver, of = quiet(model, data, num_epochs=2), f"{type(model).__name__}, {type(data).__name__}"
    assert repr(solver) == f"Solver({of}; 0 of 2 epochs, 0 iterations)"
    solver.train()
    best = f"best val_loss {solver.monitor.best:.4g}"
    assert repr(solver) == f"Solver({of}; 2 of 2 epochs, 14 iterations; {best})"


def test_one_step_of_sgd_by_hand(make_model, make_data):
    data, model, other = make_data(["train"]), make_model(dropout=0.0), make_model(dropout=0.0)
    quiet(model, data, update_rule="sgd", num_epochs=1, batch_size=50).train()
    _, grads = other.loss(*data.splits["train"])
    np.testing.assert_allclose(model.params.flat, other.params.flat - 0.05 * grads.flat, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "clip"),
    [
        ({"clip_norm": 0.5}, lambda g: g * 0.5 / np.linalg.norm(g)),
        ({"clip_norm": 1e6}, lambda g: g),
        ({"clip_value": 0.1}, lambda g: np.clip(g, -0.1, 0.1)),
        (
            {"clip_value": 0.1, "clip_norm": 0.2},
            lambda g: np.clip(g, -0.1, 0.1) * 0.2 / np.linalg.norm(np.clip(g, -0.1, 0.1)),
        ),
    ],
)
def test_clipping(make_model, make_data, options, clip):
    data, model, other = make_data(["train"]), make_model(dropout=0.0), make_model(dropout=0.0)
    solver = quiet(model, data, update_rule="sgd", num_epochs=1, batch_size=50, **options)
    solver.train()
    gradient = other.loss(*data.splits["train"])[1].flat
    np.testing.assert_allclose(model.params.flat, other.params.flat - 0.05 * clip(gradient), rtol=1e-12)
    assert solver.history[0]["gradient_norm"] == pytest.approx(np.linalg.norm(gradient))


def test_schedule_by_iterations(model, data):
    rates = []

    class Spy(type(model)):
        def loss(self, *batch, **options):
            rates.append(solver._state.multiplier)
            return super().loss(*batch, **options)

    solver = quiet(Spy(), data, schedule={"name": "step", "every": 10, "unit": "iterations"})
    solver.train()
    assert rates == [1.0] * 10 + [0.5] * 10 + [0.25]


def test_plateau_schedule_follows_the_metric(model, data):
    values = iter([3, 2, 2, 2, 1])
    solver = quiet(
        model,
        data,
        schedule={"name": "plateau"},
        num_epochs=5,
        evaluate=lambda model: {"val_loss": next(values)},
    )
    solver.train()
    rates = [row["learning_rate"] for row in solver.history]
    assert rates == pytest.approx([0.05, 0.05, 0.05, 0.025, 0.0125])


def test_seed_decides_everything(make_model, data):
    def losses(**options):
        solver = quiet(make_model(), data, **options)
        solver.train()
        return solver.loss_history

    assert losses(seed=3) == losses(seed=3)
    assert losses(seed=3) != losses(seed=4)


def test_gradients_are_not_made_anew(model, data):
    seen = set()

    class Spy(type(model)):
        def loss(self, *batch, rng=None, grads=None):
            assert rng is not None
            seen.add(id(grads))
            return super().loss(*batch, rng=rng, grads=grads)

    quiet(Spy(), data).train()
    assert len(seen) == 1


# ------------------------------------------------------------------ batches prepared ahead


@pytest.mark.parametrize("prefetch", [1, 2, 100])
def test_preparing_ahead_changes_no_bit(make_model, data, prefetch):
    one, other = (quiet(make_model(), data, prefetch=ahead) for ahead in (0, prefetch))
    one.train()
    other.train()
    assert one.loss_history == other.loss_history
    np.testing.assert_array_equal(one.model.params.flat, other.model.params.flat)


class SpyOnThreads:
    """Data that note the thread of every batch, and how many threads there were."""

    def __init__(self, data):
        self.splits, self.epoch, self.num_tokens = data.splits, data.epoch, data.num_tokens
        self.calls, self._batch = [], data.batch

    def batch(self, split, indices):
        self.calls.append((split, threading.current_thread(), threading.active_count()))
        return self._batch(split, indices)


def test_validation_has_the_data_to_itself(model, data):
    main, before = threading.current_thread(), threading.active_count()
    spy = SpyOnThreads(data)
    quiet(model, spy, num_epochs=2).train()
    assert [split for split, *_ in spy.calls] == (["train"] * 7 + ["val"] * 3) * 2
    for split, thread, threads in spy.calls:
        assert (thread is main, threads) == ((True, before) if split == "val" else (False, before + 1))


@pytest.mark.parametrize(("in_memory", "prefetch"), [(True, 2), (False, 0)])
def test_without_preparing_ahead_there_is_no_thread(model, data, in_memory, prefetch):
    main, before = threading.current_thread(), threading.active_count()
    spy = SpyOnThreads(data)
    spy.in_memory = in_memory
    quiet(model, spy, prefetch=prefetch).train()
    assert {call[1:] for call in spy.calls} == {(main, before)}


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_of_the_data_comes_at_its_batch(model, data, tmp_path, prefetch):
    batch, calls = data.batch, []

    def failing(split, indices):
        calls.append(split)
        if len(calls) == 5:
            raise OSError("the disk is gone")
        return batch(split, indices)

    data.batch, before = failing, threading.active_count()
    solver = quiet(model, data, run_dir=tmp_path, checkpoint_every=1, prefetch=prefetch)
    with pytest.raises(OSError, match="the disk is gone"):
        solver.train()
    assert len(solver.loss_history) == len(load_checkpoint(tmp_path / "last.h5").losses) == 4
    assert threading.active_count() == before


def test_no_thread_outlives_training(make_model, data):
    before = threading.active_count()
    quiet(interrupting(make_model(), 3), data).train()
    assert threading.active_count() == before
    with pytest.raises(NonFiniteError):
        quiet(Breaking(make_model(), 3, loss=np.nan), data).train()
    assert threading.active_count() == before
    with pytest.raises(KeyboardInterrupt):
        quiet(interrupting(make_model(), 3, times=2), data).train()
    assert threading.active_count() == before


# ------------------------------------------------------------------ validation


def test_no_val_split_no_validation(model, make_data):
    solver = quiet(model, make_data(["train"]))
    solver.train()
    assert "val_loss" not in solver.history[0]
    assert solver.monitor.best is None


def test_empty_val_split_no_validation(model, data):
    data.splits["val"] = tuple(array[:0] for array in data.splits["val"])
    solver = quiet(model, data)
    solver.train()
    assert "val_loss" not in solver.history[0]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("in_directory", [False, True])
@pytest.mark.parametrize("restore_best", [False, True])
def test_best_parameters_are_restored(model, data, tmp_path, in_directory, restore_best):
    scores, seen = iter([0.1, 0.5, 0.5, 0.2]), []

    def evaluate(model):
        seen.append(model.params.flat.copy())
        return {"CIDEr": next(scores)}

    options = {"run_dir": tmp_path / "run"} if in_directory else {}
    solver = quiet(
        model, data, num_epochs=4, evaluate=evaluate, monitor="CIDEr", restore_best=restore_best, **options
    )
    solver.train()
    assert (solver.monitor.best, solver.monitor.best_epoch) == (0.5, 2)
    np.testing.assert_array_equal(model.params.flat, seen[1] if restore_best else seen[3])


def test_early_stopping(model, data):
    values = iter([3, 2, 4, 5, 1])
    solver = quiet(model, data, num_epochs=5, patience=2, evaluate=lambda model: {"val_loss": next(values)})
    solver.train()
    assert [row["val_loss"] for row in solver.history] == [3, 2, 4, 5]


@pytest.mark.usefixtures("no_pictures")
def test_why_nothing_is_trained(make_model, data, tmp_path, capsys):
    options = {"num_epochs": 5, "verbose": True, "evaluate": lambda model: {"val_loss": 1.0}}
    Solver(make_model(), data, patience=1, run_dir=tmp_path, **options).train()
    early = "training has stopped early, after 2 of 5 epochs: patience is 1"
    assert capsys.readouterr().out.splitlines()[-1] == early
    Solver.resume(tmp_path, make_model(), data, **options | {"num_epochs": 9}).train()
    assert capsys.readouterr().out.splitlines() == [early.replace("5", "9")]
    solver = Solver(make_model(), data, **options | {"num_epochs": 1})
    solver.train()
    assert "epochs" not in capsys.readouterr().out
    assert solver.why_finished == "1 of 1 epochs are done; --epochs N (num_epochs) continues training"


# ------------------------------------------------------------------ what it shows


def test_course_s_lines_exactly(make_model, make_data, capsys):
    solver = Solver(
        make_model(), make_data(["train"]), num_epochs=2, batch_size=8, print_every=5, verbose=True
    )
    solver.train()
    losses = solver.loss_history
    assert capsys.readouterr().out.splitlines() == [
        f"(Iteration {t} / 14) loss: {losses[t - 1]:f}" for t in (1, 6, 11)
    ]


def test_validation_has_a_line(model, data, capsys):
    solver = Solver(model, data, num_epochs=2, batch_size=50)
    solver.train()
    row = solver.history[1]
    words = f"val_loss: {row['val_loss']:.4f}  val_perplexity: {row['val_perplexity']:.4f}"
    assert capsys.readouterr().out.splitlines()[-1] == f"(Epoch 2 / 2) {words}"


def test_progress_bar(model, data, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Solver(model, data, num_epochs=2, batch_size=8, progress=True).train()
    assert "14/14" in capsys.readouterr().err


def test_silence(model, data, capsys):
    quiet(model, data).train()
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------ what it writes


def test_without_run_dir_nothing_is_written(model, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quiet(model, data).train()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"checkpoint_every": 2}, {"checkpoint_minutes": 1.5}])
def test_checkpoints_need_a_run_dir(options, model, data):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=f"^Solver: {name} is {value}, which needs run_dir$"):
        quiet(model, data, **options)


def test_run_directory(model, make_data, tmp_path):
    data = make_data(words=["<NULL>", "<START>", "<END>", "<UNK>"])
    solver = quiet(model, data, run_dir=tmp_path / "runs" / "one", config={"data": {"name": "linear"}})
    assert not (tmp_path / "runs").exists()
    solver.train()
    run = tmp_path / "runs" / "one"
    assert sorted(path.name for path in run.iterdir()) == [
        *(".lock", "best.h5", "best.previous.h5", "config.json", "history.csv", "last.h5"),
        *("last.previous.h5", "loss.png"),
    ]

    config = json.loads((run / "config.json").read_text())
    assert config["config"] == {"data": {"name": "linear"}}
    assert config["rnnlab_version"] == rnnlab.__version__
    assert config["computed_by"] == [ops.describe(), ops.describe_products()]
    assert config["model"] == {"class": "LinearModel", "config": model.config()}
    assert config["solver"]["batch_size"] == 8
    assert config["solver"]["optim_config"]["beta1"] == 0.9

    with (run / "history.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["val_loss"]) for row in rows] == [row["val_loss"] for row in solver.history]
    assert (run / "loss.png").read_bytes().startswith(b"\x89PNG")

    last, best = load_checkpoint(run / "last.h5"), load_checkpoint(run / "best.h5")
    np.testing.assert_array_equal(last.losses, solver.loss_history)
    assert last.history == solver.history
    assert last.vocabulary == ["<NULL>", "<START>", "<END>", "<UNK>"]
    assert last.config == {"data": {"name": "linear"}}
    assert best.history[-1]["epoch"] == solver.monitor.best_epoch
    found = load_model(run / "best.h5", {"LinearModel": type(model)})
    np.testing.assert_array_equal(found.params.flat, model.params.flat)


@pytest.mark.usefixtures("no_pictures")
def test_checkpoints_within_an_epoch(model, data, tmp_path, monkeypatch):
    written = []

    def save(path, checkpoint, **options):
        written.append((path.name, len(checkpoint.losses)))
        checkpoints.save_checkpoint(path, checkpoint, **options)

    monkeypatch.setattr("rnnlab.training.checkpointing.save_checkpoint", save)
    quiet(model, data, num_epochs=2, run_dir=tmp_path, checkpoint_every=3, restore_best=False).train()
    assert [item for item in written if item[0] == "last.h5"] == [
        ("last.h5", t) for t in (3, 6, 7, 9, 12, 14)
    ]


def test_plot_at_the_end_only_of_short_runs(model, data, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("rnnlab.plots.save", lambda figure, path: calls.append(path.touch()))
    quiet(model, data, num_epochs=5, run_dir=tmp_path / "run").train()
    assert len(calls) == 2  # after the first epoch, and at the end


# ------------------------------------------------------------------ what goes wrong


class Breaking:
    """A model whose loss or gradient is not finite at some iteration."""

    def __new__(cls, model, iteration, loss=None, gradient=None):
        class Broken(type(model)):
            calls = 0

            def loss(self, *batch, **options):
                value, grads = super().loss(*batch, **options)
                Broken.calls += 1
                if Broken.calls == iteration:
                    value = value if loss is None else loss
                    if gradient is not None:
                        grads["b"][1] = gradient
                return value, grads

        return Broken()


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("broken", "message", "parameter"),
    [
        ({"loss": np.nan}, "iteration 10: the loss is nan; a smaller learning rate", None),
        ({"gradient": np.nan}, "iteration 10: the gradient of 'b' has nan", "b"),
        ({"gradient": -np.inf}, "iteration 10: the gradient of 'b' has -inf", "b"),
        ({"loss": np.inf, "gradient": np.nan}, "the loss is inf, the gradient of 'b' has nan", "b"),
    ],
)
@pytest.mark.one_in(2)
@pytest.mark.parametrize("clip_value", [None, 1.0])
def test_not_finite_stops_and_the_last_checkpoint_stays(
    model, data, tmp_path, broken, message, parameter, clip_value
):
    model = Breaking(model, 10, **broken)
    solver = quiet(model, data, run_dir=tmp_path, checkpoint_every=2, clip_value=clip_value)
    with pytest.raises(NonFiniteError, match=message) as caught:
        solver.train()
    assert caught.value.parameter == parameter
    assert len(load_checkpoint(tmp_path / "last.h5").losses) == 8
    assert np.isfinite(load_checkpoint(tmp_path / "last.h5").parameters.flat).all()
    assert np.isfinite(model.params.flat).all()


def test_diverging_is_noticed(model, data, tmp_path):
    solver = quiet(
        model, data, update_rule="sgd", optim_config={"learning_rate": 1e300}, run_dir=tmp_path, num_epochs=9
    )
    with np.errstate(all="ignore"), pytest.raises(NonFiniteError, match="iteration 2: the loss is inf"):
        solver.train()
    assert not (tmp_path / "last.h5").exists()


class Overflow(Callback):
    """Makes a parameter infinite."""

    def on_step(self, solver, loss, grads):
        solver.model.params["W"][2, 1] = np.inf


@pytest.mark.parametrize("restore_best", [False, True])
def test_infinite_parameters_are_an_error_without_a_directory_too(model, make_data, restore_best):
    """After the last update there is no further loss that would tell."""
    data, options = make_data(["train"]), {"callbacks": [Overflow()], "restore_best": restore_best}
    with pytest.raises(NonFiniteError, match="iteration 1: parameter 'W' has inf"):
        quiet(model, data, num_epochs=1, batch_size=50, **options).train()


@pytest.mark.usefixtures("no_pictures")
def test_parameters_that_are_not_finite_are_not_saved(model, data, tmp_path):
    def evaluate(model):
        model.params["W"][2, 1] = [0, np.inf][len(solver.history)]
        return {"val_loss": 1.0}

    solver = quiet(model, data, run_dir=tmp_path, evaluate=evaluate)
    with pytest.raises(NonFiniteError, match="iteration 14: parameter 'W' has inf and was not saved"):
        solver.train()
    assert len(load_checkpoint(tmp_path / "last.h5").losses) == 7


@pytest.mark.usefixtures("no_pictures")
def test_metric_that_is_not_finite(model, data, tmp_path):
    values = iter([1.0, np.nan])
    solver = quiet(model, data, run_dir=tmp_path, evaluate=lambda model: {"val_loss": next(values)})
    with pytest.raises(NonFiniteError, match="epoch 2: val_loss is nan"):
        solver.train()
    assert len(load_checkpoint(tmp_path / "last.h5").history) == 1


def test_an_error_of_evaluate_is_passed_on(model, data):
    with pytest.raises(ZeroDivisionError):
        quiet(model, data, evaluate=lambda model: {"val_loss": 1 / 0}).train()


def test_the_learning_rate_between_epochs_is_that_of_the_next_iteration(model, data):
    class Seen(Callback):
        def __init__(self):
            self.rates, self.asked = [], []

        def on_step(self, solver, loss, grads):
            self.rates.append(solver.learning_rate)

        def on_epoch(self, solver):
            self.rates.append(solver.learning_rate)

    seen, asked = Seen(), set()

    def schedule(iteration, epoch):
        asked.add((iteration, epoch))
        return 1 / (1 + iteration + 10 * epoch)

    solver = quiet(model, data, num_epochs=2, batch_size=28, schedule=schedule, callbacks=[seen])
    assert solver.learning_rate == pytest.approx(0.05)
    solver.train()
    expected = [1, 1 / 2, 1 / 13, 1 / 13, 1 / 14, 1 / 25]
    assert seen.rates == pytest.approx([0.05 * rate for rate in expected])
    assert asked == {(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)}


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("second", [{"BLEU": 0.5}, {"CIDEr": np.nan}, {"CIDEr": 1.0, "train_loss": 2.0}])
def test_an_epoch_is_saved_before_its_metrics_are_refused(second, model, make_model, data, tmp_path):
    metrics = iter([{"CIDEr": 0.1}, second])
    options = {"monitor": "CIDEr", "num_epochs": 2}
    solver = quiet(model, data, run_dir=tmp_path, evaluate=lambda model: next(metrics), **options)
    with pytest.raises((ValueError, NonFiniteError)):
        solver.train()
    assert len(load_checkpoint(tmp_path / "last.h5").losses) == 14
    resumed = Solver.resume(tmp_path, make_model(), data, evaluate=lambda model: {"CIDEr": 0.2})
    resumed.train()
    assert [row["CIDEr"] for row in resumed.history] == [0.1, 0.2]


def test_monitored_metric_must_be_there(model, data):
    with pytest.raises(
        ValueError, match="monitor is 'CIDEr', expected val_loss or val_perplexity, or the arg"
    ):
        quiet(model, data, monitor="CIDEr")
    for metrics, found in (({"BLEU": 0.5}, "BLEU"), ({}, "nothing")):
        solver = quiet(model, data, monitor="CIDEr", evaluate=lambda model, metrics=metrics: metrics)
        with pytest.raises(ValueError, match=f"monitor is 'CIDEr', but evaluate returned {found}"):
            solver.train()


@pytest.mark.parametrize("returned", [None, (1.0,), {"val_loss": "a"}, {"val_loss": None}])
def test_metrics_that_are_none(returned, model, data):
    with pytest.raises(
        TypeError, match="^evaluate returned .*, expected a (mapping of names to numbers|number)$"
    ):
        quiet(model, data, num_epochs=1, evaluate=lambda model: returned).train()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 2}, "patience is 2"),
        ({"schedule": {"name": "plateau"}}, "schedule is {'name': 'plateau', .*}"),
        ({"schedule": {"name": "warmup", "over": 2, "then": {"name": "plateau"}}}, "schedule is {.*}"),
        ({"monitor": "val_perplexity"}, "monitor is 'val_perplexity'"),
        ({"monitor": "F1", "monitor_mode": "max"}, "monitor is 'F1'"),
    ],
)
def test_steering_needs_validation(model, make_data, tmp_path, options, message):
    data = make_data(["train"])
    with pytest.raises(ValueError, match=f"^Solver: {message}, which needs a 'val' split or evaluate$"):
        Solver(model, data, run_dir=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
    Solver(model, data, monitor="val_loss", monitor_mode="min")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": 3}, "Solver: objective is a int without check, config, dropout, __call__"),
        ({"evaluate": 3}, "Solver: evaluate is 3, expected a function of the model"),
        ({"run_dir": 3}, "Solver: run_dir is 3, expected a path"),
    ],
)
def test_arguments_that_are_something_else(options, message, model, data):
    with pytest.raises(TypeError, match=message):
        Solver(model, data, **options)


def test_what_is_no_model_and_no_data(model, data):
    with pytest.raises(TypeError, match="model is a dict without params, loss, config"):
        Solver({}, data)
    with pytest.raises(TypeError, match="data is a dict without splits, epoch, batch, num_tokens; expected"):
        Solver(model, {"train_captions": []})


@pytest.mark.usefixtures("no_pictures")
def test_run_dir_that_holds_a_run(model, data, tmp_path):
    quiet(model, data, run_dir=tmp_path).train()
    with pytest.raises(FileExistsError, match="already holds a run: resume it, or choose another directory"):
        quiet(model, data, run_dir=tmp_path)


# ------------------------------------------------------------------ Ctrl-C


def interrupting(model, iteration, times=1):
    class Interrupting(type(model)):
        calls = 0

        def loss(self, *batch, **options):
            Interrupting.calls += 1
            for _ in range(times if Interrupting.calls == iteration else 0):
                signal.raise_signal(signal.SIGINT)
            return super().loss(*batch, **options)

    return Interrupting()


@pytest.mark.parametrize("where", ["rule", "average"])
def test_a_second_ctrl_c_waits_until_the_update_is_counted(make_model, data, monkeypatch, where):
    options = {"update_rule": "adam", "ema_decay": 0.9}
    reference = quiet(make_model(), data, **options)
    reference.train()
    solver = quiet(make_model(), data, **options)
    changed = solver._state.rule if where == "rule" else solver._state.average
    name = "step" if where == "rule" else "update"
    change, calls = getattr(changed, name), []

    def interrupted(*arguments, **given):
        calls.append(None)
        for _ in range(2 if len(calls) == 3 else 0):
            signal.raise_signal(signal.SIGINT)
        change(*arguments, **given)

    monkeypatch.setattr(changed, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        solver.train()
    solver.train()
    assert solver.loss_history == reference.loss_history
    np.testing.assert_array_equal(solver.model.params.flat, reference.model.params.flat)


def test_options_of_a_solver_stay(model, data):
    with pytest.raises(AttributeError, match="option num_epochs cannot be changed; Solver.resume takes new"):
        quiet(model, data).options.num_epochs = 9


def test_what_ended_the_last_training_is_forgotten(make_model, data):
    solver = quiet(interrupting(make_model(), 3), data)
    solver.train()
    assert solver.interrupted
    assert solver.stop_requested
    solver.model.params.flat[...] = np.nan
    with pytest.raises(NonFiniteError):
        solver.train()
    assert not solver.interrupted
    assert not solver.stop_requested


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.one_in(2)
@pytest.mark.parametrize("iteration", [1, 9, 14, 20])
def test_ctrl_c_ends_after_the_iteration_and_training_can_go_on(
    make_model, data, tmp_path, iteration, capsys
):
    reference = quiet(make_model(), data)
    reference.train()
    solver = Solver(
        interrupting(make_model(), iteration),
        data,
        num_epochs=3,
        batch_size=8,
        optim_config={"learning_rate": 0.05},
        run_dir=tmp_path,
    )
    solver.train()
    assert solver.interrupted
    assert len(solver.loss_history) == iteration
    assert f"Interrupted after iteration {iteration}" in capsys.readouterr().out
    np.testing.assert_array_equal(
        load_checkpoint(tmp_path / "last.h5").parameters.flat, solver.model.params.flat
    )

    solver.train()
    assert not solver.interrupted
    assert solver.loss_history == reference.loss_history
    np.testing.assert_array_equal(solver.model.params.flat, reference.model.params.flat)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_validation_at_once_and_training_can_go_on(make_model, data, tmp_path, number, capfd):
    signals = iter([False, True, False, False])

    def evaluate(model):
        if next(signals):
            signal.raise_signal(number)
            pytest.fail("the validation goes on")
        return {"val_loss": 1.0}

    solver = quiet(make_model(), data, evaluate=evaluate, run_dir=tmp_path)
    solver.train()
    assert solver.interrupted
    assert solver.signal is number
    assert (len(solver.history), len(solver.loss_history)) == (1, 14)
    assert len(load_checkpoint(tmp_path / "last.h5").losses) == 14
    name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[number]
    assert (
        f"{name}: saving a checkpoint after this step; a second signal stops at once"
        in capfd.readouterr().err
    )
    solver.train()
    assert (solver.interrupted, solver.signal) == (False, None)
    assert len(solver.history) == 3


@pytest.mark.usefixtures("no_pictures")
def test_checkpoints_after_minutes(model, data, tmp_path, monkeypatch):
    now, saved = [0.0], []
    monkeypatch.setattr("rnnlab.training.solver.time.monotonic", lambda: now[0])

    class Clock(Callback):
        def on_step(self, solver, loss, grads):
            now[0] += 30.0

        def on_checkpoint(self, solver, path):
            saved.append((path.name, solver.iteration))

    quiet(model, data, run_dir=tmp_path, checkpoint_minutes=1.5, callbacks=[Clock()], num_epochs=1).train()
    assert saved == [("last.h5", 4), ("best.h5", 7), ("last.h5", 7)]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("name", ["epoch", "iteration", "train_loss", "learning_rate"])
def test_metrics_with_the_name_of_another_column(model, data, tmp_path, name):
    solver = quiet(model, data, run_dir=tmp_path, evaluate=lambda model: {"val_loss": 1.0, name: 7.25})
    with pytest.raises(ValueError, match=f"evaluate returned a metric named {name}, which is a column"):
        solver.train()
    assert len(load_checkpoint(tmp_path / "last.h5").losses) == solver.iteration  # nothing is lost


def test_gradients_that_are_not_those_given_are_an_error(model, data):
    class OwnGradients(type(model)):
        def loss(self, *batch, rng=None, grads=None):
            return super().loss(*batch, rng=rng)

    own = OwnGradients()
    with pytest.raises(
        TypeError, match="the loss of this OwnGradients returned other gradients than the grads"
    ):
        Solver(own, data, num_epochs=1, verbose=False).train()
    np.testing.assert_array_equal(own.params.flat, OwnGradients().params.flat)


def test_validation_needs_nll(model, make_data):
    class Untold(type(model)):
        nll = property()

    with pytest.raises(TypeError, match="Solver: model is a Untold without nll"):
        Solver(Untold(), make_data(), verbose=False)
    Solver(Untold(), make_data(), verbose=False, evaluate=lambda model: {"val_loss": 1.0})
    Solver(Untold(), make_data(splits=("train",)), verbose=False)


def test_a_copy_by_pickle_trains_as_the_solver_does(model, data):
    """As libraries that train in other processes send it."""
    solver = Solver(model, data, num_epochs=2, batch_size=8, verbose=False)
    copied = pickle.loads(pickle.dumps(solver))
    for each in (copied, solver):
        each.train()
    assert copied.history[-1]["val_loss"] == solver.history[-1]["val_loss"]
    np.testing.assert_array_equal(copied.model.params.flat, model.params.flat)
