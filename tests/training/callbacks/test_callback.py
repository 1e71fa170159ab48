"""When callbacks are called, with what, and what an exception in one does."""

from __future__ import annotations

import itertools
import shutil
import traceback

import numpy as np
import pytest

from rnnlab.training import Callback, SelfCritical, Solver, load_checkpoint
from rnnlab.training.callbacks.callback import EVENTS
from rnnlab.training.nonfinite import NonFiniteError

pytestmark = pytest.mark.usefixtures("no_pictures")

OPTIONS = {"num_epochs": 2, "batch_size": 20, "optim_config": {"learning_rate": 0.05}, "verbose": False}


class Recorder(Callback):
    """Notes every call, and acts at those of ``actions``."""

    def __init__(self, **actions):
        self.calls, self.actions = [], actions

    def note(self, event, solver, *found):
        self.calls.append((event, solver.epoch, solver.iteration, *found))
        if event in self.actions:
            self.actions[event](solver)

    def on_start(self, solver):
        self.note("start", solver)

    def on_step(self, solver, loss, grads):
        self.note("step", solver, loss)

    def on_epoch(self, solver):
        self.note("epoch", solver)

    def on_checkpoint(self, solver, path):
        self.note("checkpoint", solver, path.name)

    def on_end(self, solver):
        self.note("end", solver)


def fails(solver):
    raise LookupError("in the callback")


def after(iterations, action):
    return lambda solver: action(solver) if solver.iteration == iterations else None


def test_the_order_of_events(model, data, tmp_path):
    recorder = Recorder()
    solver = Solver(model, data, callbacks=[recorder], run_dir=tmp_path, checkpoint_every=2, **OPTIONS)
    solver.train()
    losses = solver.loss_history
    best = [("checkpoint", n, 3 * n, "best.h5") for n in (1, 2)]  # the validation loss falls
    assert recorder.calls == [
        ("start", 0, 0),
        ("step", 0, 1, losses[0]),
        ("step", 0, 2, losses[1]),
        ("checkpoint", 0, 2, "last.h5"),
        ("step", 0, 3, losses[2]),
        ("epoch", 1, 3),
        best[0],
        ("checkpoint", 1, 3, "last.h5"),
        ("step", 1, 4, losses[3]),
        ("checkpoint", 1, 4, "last.h5"),
        ("step", 1, 5, losses[4]),
        ("step", 1, 6, losses[5]),
        ("checkpoint", 1, 6, "last.h5"),
        ("epoch", 2, 6),
        best[1],
        ("checkpoint", 2, 6, "last.h5"),
        ("end", 2, 6),
    ]


def test_without_a_directory_there_are_no_checkpoints(model, data):
    recorder = Recorder()
    Solver(model, data, callbacks=[recorder], **OPTIONS).train()
    assert [call[0] for call in recorder.calls] == [
        "start",
        *["step"] * 3,
        "epoch",
        *["step"] * 3,
        "epoch",
        "end",
    ]


def test_a_callback_needs_only_one_method(model, data):
    class Rows(Callback):
        def __init__(self):
            self.rows = []

        def on_epoch(self, solver):
            self.rows.append(solver.history[-1]["val_loss"])

    rows = Rows()
    solver = Solver(model, data, callbacks=[rows], **OPTIONS)
    solver.train()
    assert rows.rows == [row["val_loss"] for row in solver.history]


def test_nothing_changes_by_callbacks_that_look(make_model, data):
    class Looks(Callback):
        def on_step(self, solver, loss, grads):
            assert float(loss) == solver.loss_history[-1]
            assert set(grads) == set(solver.model.params)

    solvers = [Solver(make_model(), data, callbacks=each, **OPTIONS) for each in ([], [Looks(), Recorder()])]
    for solver in solvers:
        solver.train()
    assert solvers[0].loss_history == solvers[1].loss_history
    np.testing.assert_array_equal(solvers[0].model.params.flat, solvers[1].model.params.flat)


def gradients(model, data, **options):
    """The gradient of each iteration, by a callback."""

    class Gradients(Callback):
        def __init__(self):
            self.found = []

        def on_step(self, solver, loss, grads):
            self.found.append(grads.copy())

    callback = Gradients()
    Solver(model, data, callbacks=[callback], **(OPTIONS | options)).train()
    return callback.found


def test_the_gradient_is_clipped_by_value_not_by_norm(make_model, data):
    options = {"update_rule": "sgd", "num_epochs": 1, "batch_size": 50}
    (plain,) = gradients(make_model(dropout=0), data, **options)
    batch = data.batch("train", np.arange(50))
    _, expected = make_model(dropout=0).loss(*batch)
    np.testing.assert_allclose(plain.flat, expected.flat, rtol=1e-12)
    (by_norm,) = gradients(make_model(dropout=0), data, clip_norm=1e-3, **options)
    np.testing.assert_array_equal(by_norm.flat, plain.flat)
    (by_value,) = gradients(make_model(dropout=0), data, clip_value=0.1, **options)
    np.testing.assert_array_equal(by_value.flat, np.clip(plain.flat, -0.1, 0.1))


def test_the_gradient_of_frozen_parameters_is_zero(model, data):
    for grads in gradients(model, data, trains=["b"]):
        assert not grads["W"].any()
        assert grads["b"].any()


def test_one_step_for_all_parts_of_an_accumulated_batch(make_model, data):
    class InParts(make_model):
        def loss(self, x, y, *, rng=None, grads=None, part_of=None):
            share = 1 if part_of is None else len(x) / part_of[0]
            loss, found = super().loss(x, y)
            if grads is None:
                return loss, found
            grads.flat[...] = found.flat * share + (0 if part_of is None else grads.flat)
            return loss * share, grads

    whole = gradients(InParts(), data)
    parts = gradients(InParts(), data, accumulate=3)
    assert len(whole) == len(parts) == 6
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one.flat, other.flat, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("event", ["step", "epoch", "checkpoint"])
def test_an_exception_ends_the_run_with_a_checkpoint(make_model, make_data, data, tmp_path, event):
    reference = Solver(make_model(), data, **OPTIONS)
    reference.train()
    iterations = 5 if event == "step" else 3
    other = Recorder()
    callbacks = [Recorder(**{event: after(iterations, fails)}), other]
    solver = Solver(make_model(), data, callbacks=callbacks, run_dir=tmp_path, **OPTIONS)
    with pytest.raises(LookupError, match="in the callback") as raised:
        solver.train()
    assert traceback.extract_tb(raised.value.__traceback__)[-1].name == "fails"
    assert [each.calls[-1][0] for each in callbacks] == ["end", "end"]
    assert len(load_checkpoint(tmp_path / "last.h5").losses) == iterations
    resumed = Solver.resume(tmp_path, make_model(), make_data(), callbacks=[Recorder()])
    resumed.train()
    assert resumed.loss_history == reference.loss_history
    np.testing.assert_array_equal(resumed.model.params.flat, reference.model.params.flat)


def test_a_callback_may_change_parameters_and_the_run_still_resumes(make_model, make_data, data, tmp_path):
    class NonNegative(Callback):
        def on_step(self, solver, loss, grads):
            np.maximum(solver.model.params["W"], 0, out=solver.model.params["W"])

        def on_epoch(self, solver):
            solver.model.params["b"][...] = 0

    reference = Solver(make_model(), data, callbacks=[NonNegative()], restore_best=False, **OPTIONS)
    reference.train()
    assert (reference.model.params["W"] >= 0).all()
    assert not reference.model.params["b"].any()
    options = OPTIONS | {"num_epochs": 1, "restore_best": False}
    Solver(make_model(), data, callbacks=[NonNegative()], run_dir=tmp_path, **options).train()
    resumed = Solver.resume(tmp_path, make_model(), make_data(), callbacks=[NonNegative()], num_epochs=2)
    resumed.train()
    np.testing.assert_array_equal(resumed.model.params.flat, reference.model.params.flat)


def test_an_exception_at_the_start_leaves_no_run(model, data, tmp_path):
    first, failing, last = Recorder(), Recorder(start=fails), Recorder()
    solver = Solver(model, data, callbacks=[first, failing, last], run_dir=tmp_path, **OPTIONS)
    with pytest.raises(LookupError):
        solver.train()
    assert not (tmp_path / "last.h5").exists()
    for each in (first, failing):
        assert [call[0] for call in each.calls] == ["start", "end"]
    assert last.calls == []


def test_an_exception_at_the_end_leaves_the_finished_run(model, data, tmp_path):
    first = Recorder()
    solver = Solver(model, data, callbacks=[first, Recorder(end=fails)], run_dir=tmp_path, **OPTIONS)
    with pytest.raises(LookupError):
        solver.train()
    assert first.calls[-1][0] == "end"
    assert len(load_checkpoint(tmp_path / "last.h5").history) == 2


def test_a_callback_that_makes_a_parameter_infinite_writes_no_checkpoint(model, data, tmp_path):
    def breaks(solver):
        solver.model.params["b"][0] = np.inf
        fails(solver)

    solver = Solver(model, data, callbacks=[Recorder(step=after(2, breaks))], run_dir=tmp_path, **OPTIONS)
    with pytest.raises(LookupError) as raised:
        solver.train()
    assert "No checkpoint was written: iteration 2: parameter 'b' has inf" in raised.value.__notes__[0]
    assert not (tmp_path / "last.h5").exists()


def test_an_error_in_the_checkpoint_after_an_exception_is_a_note(model, data, tmp_path):
    recorder = Recorder(step=fails)
    recorder.state = lambda: {"array": np.zeros(2) if len(recorder.calls) > 1 else 0}
    solver = Solver(model, data, callbacks=[recorder], run_dir=tmp_path, **OPTIONS)
    with pytest.raises(LookupError, match="in the callback") as raised:
        solver.train()
    assert "No checkpoint was written: " in raised.value.__notes__[0]
    assert "cannot be represented in JSON" in raised.value.__notes__[0]


def test_an_error_without_a_text_is_named_in_the_note(model, data, tmp_path, monkeypatch):
    def full():
        raise MemoryError

    solver = Solver(model, data, callbacks=[Recorder(step=fails)], run_dir=tmp_path, **OPTIONS)
    monkeypatch.setattr(solver._storage, "save", full)
    with pytest.raises(LookupError) as raised:
        solver.train()
    assert raised.value.__notes__ == ["No checkpoint was written: MemoryError()"]


def interrupts(solver):
    raise KeyboardInterrupt


def test_exceptions_in_several_callbacks(model, data):
    def fails_too(solver):
        raise ValueError("in another callback")

    callbacks = [Recorder(step=fails), Recorder(step=fails_too)]
    with pytest.raises(LookupError, match="in the callback") as raised:
        Solver(model, data, callbacks=callbacks, **OPTIONS).train()
    note = "Recorder.on_step failed as well: ValueError('in another callback')"
    assert [each.endswith(note) for each in raised.value.__notes__] == [True]
    callbacks = [Recorder(step=fails), Recorder(step=interrupts)]
    with pytest.raises(KeyboardInterrupt) as interrupted:
        Solver(model, data, callbacks=callbacks, **OPTIONS).train()
    assert interrupted.value.__notes__ == [
        "on_step of another callback failed before: LookupError('in the callback')"
    ]


def test_columns_and_parameters_of_a_callback_are_in_both_checkpoints(model, data, tmp_path):
    class Marks(Callback):
        def on_epoch(self, solver):
            solver.history[-1]["mark"] = solver.epoch
            solver.model.params["b"][...] = 0.5

    Solver(model, data, callbacks=[Marks()], run_dir=tmp_path, **OPTIONS).train()
    for name in ("best.h5", "last.h5"):
        checkpoint = load_checkpoint(tmp_path / name)
        assert [row["mark"] for row in checkpoint.history] == [1, 2]
        np.testing.assert_array_equal(checkpoint.parameters["b"], 0.5)


@pytest.mark.parametrize("in_directory", [True, False])
def test_the_best_epoch_is_saved_after_an_exception(model, data, tmp_path, in_directory):
    recorder = Recorder(epoch=after(3, fails))
    run_dir = tmp_path if in_directory else None
    values = iter([1.0, 2.0])
    options = OPTIONS | {"evaluate": lambda model: {"worse": next(values)}, "monitor": "worse"}
    solver = Solver(model, data, callbacks=[recorder], run_dir=run_dir, monitor_mode="min", **options)
    with pytest.raises(LookupError):
        solver.train()
    best = model.params.flat.copy()
    if in_directory:
        np.testing.assert_array_equal(load_checkpoint(tmp_path / "best.h5").parameters.flat, best)
    solver.train()
    assert solver.epoch == 2
    np.testing.assert_array_equal(model.params.flat, best)


def test_the_end_after_another_error(make_model, data):
    class Breaks(make_model):
        count = itertools.count(1)

        def loss(self, *batch, **options):
            loss, grads = super().loss(*batch, **options)
            return (np.nan if next(self.count) == 3 else loss), grads

    recorder = Recorder()
    with pytest.raises(NonFiniteError):
        Solver(Breaks(), data, callbacks=[recorder], **OPTIONS).train()
    assert [call[0] for call in recorder.calls] == ["start", "step", "step", "end"]


@pytest.mark.parametrize(("event", "iterations"), [("start", 0), ("step", 2), ("epoch", 3)])
def test_stopping_and_resuming(make_model, make_data, data, tmp_path, capsys, event, iterations):
    reference = Solver(make_model(), data, **OPTIONS)
    reference.train()
    stops = Recorder(**{event: after(iterations, lambda solver: solver.stop("enough"))})
    run_dir = tmp_path / "run"
    solver = Solver(make_model(), data, callbacks=[stops], run_dir=run_dir, **OPTIONS | {"verbose": True})
    solver.train()
    assert solver.interrupted
    assert solver.stop_requested
    assert solver.stop_reason == "enough"
    assert solver.iteration == iterations
    assert f"Stopped after iteration {iterations}: enough" in capsys.readouterr().out
    copy = shutil.copytree(run_dir, tmp_path / "copy")
    resumed = Solver.resume(copy, make_model(), make_data(), verbose=False)
    resumed.train()
    assert not resumed.interrupted
    assert resumed.loss_history == reference.loss_history
    np.testing.assert_array_equal(resumed.model.params.flat, reference.model.params.flat)
    solver.callbacks.clear()
    solver.train()
    assert (solver.stop_reason, solver.loss_history) == (None, reference.loss_history)


def test_a_stop_at_the_end_is_none(model, data):
    solver = Solver(model, data, callbacks=[Recorder(step=after(6, lambda it: it.stop("late")))], **OPTIONS)
    solver.train()
    assert len(solver.history) == 1  # the second epoch has not been validated
    assert solver.interrupted
    solver.callbacks[:] = [Recorder(epoch=after(6, lambda it: it.stop("late")))]
    solver.train()
    assert len(solver.history) == 2
    assert not solver.interrupted
    assert solver.stop_requested


def test_learning_rate_of_each_step(model, data):
    class Rates(Callback):
        found = ()

        def on_step(self, solver, loss, grads):
            self.found += (solver.learning_rate,)

    rates = Rates()
    schedule = {"name": "step", "factor": 0.5, "every": 2, "unit": "iterations"}
    Solver(model, data, callbacks=[rates], schedule=schedule, **OPTIONS).train()
    assert rates.found == pytest.approx([0.05, 0.05, 0.025, 0.025, 0.0125, 0.0125])


class Misspelt(Callback):
    def on_steps(self, solver, loss, grads):
        """No event."""


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        ([Misspelt()], "has a Misspelt with on_steps, which is not an event; did you mean on_step?"),
        ([Recorder], "callbacks has <class .*Recorder'>, expected an object of a class that inherits from"),
        ([print], "expected an object of a class that inherits from rnnlab.training.Callback"),
        (Recorder(), "callbacks is <.*Recorder object .*>, expected a list of callbacks"),
        ("tensorboard", "callbacks is 'tensorboard', expected a list"),
    ],
)
def test_what_is_no_callback(model, data, callbacks, message):
    with pytest.raises(TypeError, match=message):
        Solver(model, data, callbacks=callbacks)


def test_an_attribute_may_begin_like_an_event(model, data):
    callback = Recorder()
    callback.on_paper = True
    assert Solver(model, data, callbacks=[callback], **OPTIONS).callbacks == [callback]


def test_events():
    assert EVENTS == ("on_start", "on_step", "on_epoch", "on_checkpoint", "on_end")


def test_in_self_critical_training():
    from rnnlab.data import CaptionedImages, open_shapes
    from rnnlab.models import CaptioningRNN

    data = open_shapes(max_train=20)
    model = CaptioningRNN(data.vocabulary.word_to_idx, data.num_features, 8, 8, "rnn", rng=0)
    objective = SelfCritical(lambda images, tokens, lengths: -lengths.astype(float), samples=2, max_length=4)
    recorder = Recorder()
    solver = Solver(
        model, CaptionedImages(data), objective=objective, callbacks=[recorder], num_epochs=1, batch_size=8,
        verbose=False, restore_best=False, evaluate=lambda model: {"val_loss": 1.0},
    )  # fmt: skip
    solver.train()
    assert [call[3] for call in recorder.calls if call[0] == "step"] == solver.loss_history != []


def test_an_exception_of_one_callback_does_not_hide_the_event_from_the_others(model, data, tmp_path):
    class Fails(Callback):
        def on_epoch(self, solver):
            if solver.epoch == 1:
                raise RuntimeError("no network")

    class Second(Fails):
        def on_epoch(self, solver):
            raise ValueError("another")

    recorder = Recorder()
    solver = Solver(model, data, callbacks=[Fails(), recorder, Second()], run_dir=tmp_path, **OPTIONS)
    with pytest.raises(RuntimeError, match="no network"):
        solver.train()
    assert [call[0] for call in recorder.calls] == ["start", *["step"] * 3, "epoch", "end"]
    resumed, again = Recorder(), type(model)()
    Solver.resume(tmp_path, again, data, callbacks=[resumed]).train()
    assert [call for call in resumed.calls if call[0] == "epoch"] == [("epoch", 2, 6)]


def test_a_state_that_json_cannot_hold_is_an_error_before_the_first_step(model, data, tmp_path):
    class Keeps(Callback):
        steps, value = 0, np.zeros(2)

        def on_step(self, solver, loss, grads):
            self.steps += 1

        def state(self):
            return {"value": self.value}

        def load_state(self, state):
            self.value = state["value"]

    callback = Keeps()
    solver = Solver(model, data, callbacks=[callback], run_dir=tmp_path, **OPTIONS)
    with pytest.raises(TypeError, match=r"Keeps\.state\(\) cannot be represented in JSON"):
        solver.train()
    assert not callback.steps
    callback.value = np.float32(1.5)  # becomes Python's
    solver.train()
    assert load_checkpoint(tmp_path / "last.h5").solver["callbacks"][0][1] == {"value": 1.5}
