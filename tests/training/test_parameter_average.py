"""The moving average of the parameters: its numbers, and what is measured, saved and restored of it."""

import shutil

import numpy as np
import pytest

from rnnlab.ops import ops_for
from rnnlab.training import Callback, Solver, load_model
from rnnlab.training.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from rnnlab.training.parameter_average import ParameterAverage

from .test_captioning import make_data as captions
from .test_captioning import make_model as captioner
from .test_resume import OPTIONS, Killed, assert_same_run, killed_at

DECAY = 0.8
AVERAGED = OPTIONS | {"ema_decay": DECAY, "schedule": None}

pytestmark = pytest.mark.usefixtures("no_pictures")


def averages(initial, trajectory, decay):
    """The average after each update, by its definition."""
    average, found = initial, []
    for t, w in enumerate(trajectory):
        d = min(decay, (1 + t) / (10 + t))
        average = d * average + (1 - d) * w
        found.append(average)
    return found


class Trajectory(Callback):
    def __init__(self):
        self.parameters, self.on_epochs = [], []

    def on_step(self, solver, loss, grads):
        flat = solver.model.params.flat
        self.parameters.append(ops_for(flat).asnumpy(flat).copy())

    def on_epoch(self, solver):
        self.on_epochs.append(solver.model.params.flat.copy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decay", [0.0, 0.5, 0.99])
def test_its_numbers(dtype, decay):
    initial, *trajectory = np.random.default_rng(0).standard_normal((31, 7)).astype(dtype)
    average = ParameterAverage(decay, initial)
    expected = averages(initial.astype(float), trajectory, decay)
    for t, w in enumerate(trajectory):
        before = w.copy()
        average.update(w, t)
        np.testing.assert_array_equal(w, before)
        assert average.values.dtype == dtype
        np.testing.assert_allclose(average.values, expected[t], atol=2e-6 if dtype == np.float32 else 1e-14)
    assert not np.shares_memory(average.values, initial)


def test_the_average_of_pytorch():
    torch = pytest.importorskip("torch")
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    rng = np.random.default_rng(1)
    decay, first = 0.1, rng.standard_normal(5)  # from the first update on, the rising factor is no less
    theirs = torch.nn.Linear(5, 1, bias=False, dtype=torch.float64)
    theirs.weight.data = torch.from_numpy(first[None].copy())
    averaged = AveragedModel(theirs, multi_avg_fn=get_ema_multi_avg_fn(decay))
    averaged.update_parameters(theirs)  # the first call copies
    ours = ParameterAverage(decay, first)
    for t, w in enumerate(rng.standard_normal((6, 5))):
        ours.update(w, t)
        theirs.weight.data = torch.from_numpy(w[None].copy())
        averaged.update_parameters(theirs)
    np.testing.assert_allclose(averaged.module.weight.detach().numpy()[0], ours.values, rtol=1e-14)


def test_it_takes_the_place_of_the_parameters_for_a_while():
    w = np.arange(3.0)
    average = ParameterAverage(0.5, w)
    w += 1
    with average.in_place_of(w):
        np.testing.assert_array_equal(w, [0, 1, 2])
    np.testing.assert_array_equal(w, [1, 2, 3])
    np.testing.assert_array_equal(average.values, [0, 1, 2])


@pytest.fixture
def measured(make_model, data):
    """A run with what its validation saw and its trajectory, and its initial parameters."""

    def run(**options):
        model, trajectory, seen = make_model(), Trajectory(), []
        initial = model.params.flat.copy()

        def evaluate(model):
            seen.append(model.params.flat.copy())
            x, y = data.splits["val"]
            return {"val_loss": model.nll(x, y)[0]}

        solver = Solver(model, data, evaluate=evaluate, callbacks=[trajectory], **AVERAGED | options)
        solver.train()
        return solver, initial, trajectory, seen

    return run


@pytest.mark.parametrize("in_a_directory", [False, True])
def test_what_is_measured_saved_and_restored(measured, make_model, tmp_path, in_a_directory):
    run_dir = {"run_dir": tmp_path / "run"} if in_a_directory else {}
    solver, initial, trajectory, seen = measured(**run_dir)
    expected = averages(initial, trajectory.parameters, DECAY)[6::7]  # 7 batches an epoch
    np.testing.assert_allclose(seen, expected, rtol=1e-12)
    np.testing.assert_array_equal(trajectory.on_epochs, trajectory.parameters[6::7])
    best = seen[solver.monitor.best_epoch - 1]
    np.testing.assert_array_equal(solver.model.params.flat, best)
    if in_a_directory:
        np.testing.assert_array_equal(
            load_model(tmp_path / "run", {"LinearModel": make_model}).params.flat, best
        )
        last = load_checkpoint(tmp_path / "run/last.h5")
        np.testing.assert_array_equal(last.parameters.flat, trajectory.parameters[-1])
        np.testing.assert_array_equal(last.average, seen[-1])
        saved = load_checkpoint(tmp_path / "run/best.h5")
        np.testing.assert_array_equal(saved.average, saved.parameters.flat)


def test_the_training_is_that_without_it(measured):
    _, _, averaged, seen = measured()
    _, _, plain, measured_plainly = measured(ema_decay=None)
    np.testing.assert_array_equal(averaged.parameters, plain.parameters)
    assert not np.array_equal(seen, measured_plainly)
    np.testing.assert_array_equal(measured_plainly, plain.parameters[6::7])


def test_frozen_parameters_stay_as_they_are(make_model, data):
    """The average of what does not change is what it was, to the bit."""
    model = make_model(dtype="float32")
    model.params["b"] = [0.1, 0.7, 1.3]
    at_first = model.params.copy()
    Solver(model, data, **AVERAGED | {"trains": ["W"], "num_epochs": 20}).train()
    np.testing.assert_array_equal(model.params["b"], at_first["b"])
    assert not np.array_equal(model.params["W"], at_first["W"])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("call", [5, 8, 9, 20])
def test_a_killed_run_goes_on_bit_for_bit(make_model, data, tmp_path, call):
    whole = Solver(make_model(), data, **AVERAGED)
    whole.train()
    with pytest.raises(Killed):
        Solver(killed_at(make_model(), call), data, run_dir=tmp_path, checkpoint_every=2, **AVERAGED).train()
    solver = Solver.resume(tmp_path, make_model(), data)
    assert 0 < solver.iteration < call
    solver.train()
    assert_same_run(solver, whole)
    np.testing.assert_array_equal(solver._state.average.values, whole._state.average.values)


def test_a_validation_that_fails_leaves_the_parameters(make_model, data, tmp_path):
    trajectory = Trajectory()

    def evaluate(model):
        raise OSError("no scores")

    solver = Solver(
        make_model(), data, evaluate=evaluate, callbacks=[trajectory], run_dir=tmp_path, **AVERAGED
    )
    with pytest.raises(OSError, match="no scores"):
        solver.train()
    np.testing.assert_array_equal(solver.model.params.flat, trajectory.parameters[-1])
    saved = load_checkpoint(tmp_path / "last.h5")
    np.testing.assert_array_equal(saved.parameters.flat, trajectory.parameters[-1])
    np.testing.assert_array_equal(saved.average, solver._state.average.values)


def test_the_best_checkpoint_may_take_the_place_of_the_last(make_model, data, tmp_path):
    Solver(make_model(), data, run_dir=tmp_path, **AVERAGED | {"num_epochs": 1}).train()
    shutil.copy(tmp_path / "best.h5", tmp_path / "last.h5")
    solver = Solver.resume(tmp_path, make_model(), data, num_epochs=2)
    np.testing.assert_array_equal(solver._state.average.values, solver.model.params.flat)
    solver.train()
    assert len(solver.history) == 2


@pytest.mark.parametrize(
    ("average", "found"),
    [(None, "nothing"), (np.zeros(3), r"float64 \(3,\)"), (np.zeros(18, "f4"), "float32")],
)
def test_a_checkpoint_without_the_average(make_model, data, tmp_path, average, found):
    Solver(make_model(), data, run_dir=tmp_path, **AVERAGED | {"num_epochs": 1}).train()
    for path in (tmp_path / "last.h5", tmp_path / "last.previous.h5"):
        path.unlink(missing_ok=True)
    checkpoint = load_checkpoint(tmp_path / "best.h5")
    checkpoint.average = average
    save_checkpoint(tmp_path / "last.h5", checkpoint)
    with pytest.raises(CheckpointError, match=rf"average: found {found}.*, expected float64 \(18,\)"):
        Solver.resume(tmp_path, make_model(), data)


@pytest.mark.parametrize("value", [1.0, -0.1, "0.9", True])
def test_a_decay_that_is_none(make_model, data, value):
    with pytest.raises((ValueError, TypeError), match="ema_decay"):
        Solver(make_model(), data, ema_decay=value)


def test_it_needs_a_best_epoch(make_model, make_data, data):
    for options, needs in (
        ({"restore_best": False}, "restore_best"),
        ({"data": make_data(splits=("train",))}, "a 'val' split or evaluate"),
    ):
        with pytest.raises(ValueError, match=rf"ema_decay is 0\.9, which needs {needs}"):
            Solver(make_model(), **{"data": data, "ema_decay": 0.9} | options)


@pytest.mark.parametrize("graphs", [False, True])
def test_on_a_gpu(device, graphs):
    found = []
    for place in ({"device": "gpu", "graphs": graphs}, {}):
        data = captions()
        model, trajectory = captioner(data, dtype=np.float64), Trajectory()
        initial = model.params.flat.copy()
        solver = Solver(
            model,
            data,
            num_epochs=2,
            batch_size=5,
            ema_decay=DECAY,
            callbacks=[trajectory],
            verbose=False,
            **place,
        )
        solver.train()
        average = ops_for(model.params.flat).asnumpy(solver._state.average.values)
        np.testing.assert_allclose(average, averages(initial, trajectory.parameters, DECAY)[-1], atol=1e-12)
        found.append((average, [row["val_loss"] for row in solver.history]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-8)


def test_the_average_begins_with_parameters_that_are_loaded_later(make_model, data):
    """Such as those of a warm start, which are loaded after the solver is made."""
    found = []
    for late in (False, True):
        model, loaded = make_model(), np.full_like(make_model().params.flat, 0.5)
        if not late:
            model.params.flat[...] = loaded
        solver = Solver(model, data, ema_decay=0.99, num_epochs=1, batch_size=20, verbose=False)
        if late:
            model.params.flat[...] = loaded
        solver.train()
        found.append(model.params.flat.copy())
    np.testing.assert_array_equal(*found)
