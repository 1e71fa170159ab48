"""Training on a GPU, or CuPy's stand-in: as on the CPU, and from the same checkpoints."""

import gc
import importlib

import numpy as np
import pytest

from rnnlab.training import Callback, NonFiniteError, Solver, load_model

from .test_captioning import make_data, make_model

OPTIONS = {"num_epochs": 2, "batch_size": 5, "seed": 1, "clip_norm": 1.0, "verbose": False}


def new_model(data, **options):
    return make_model(data, dtype=np.float64, output_dropout=0.2, **options)


def trained(data, device, run_dir=None, **options):
    """Launch by launch, where dropout draws the masks of the CPU."""
    options = OPTIONS | {"graphs": False} | options
    solver = Solver(new_model(data), data, device=device, run_dir=run_dir, **options)
    solver.train()
    return solver


def parameters(solver):
    return solver.model.to("cpu").params.flat


@pytest.mark.parametrize("rule", ["adam", "sgd", "momentum", "adagrad", "rmsprop", "adadelta", "adamw"])
def test_the_losses_of_the_cpu(rule, device):
    data = make_data()
    on_cpu, on_device = (trained(data, name, update_rule=rule) for name in ("cpu", "gpu"))
    assert on_device.model.device == "gpu:0"
    np.testing.assert_allclose(on_device.loss_history, on_cpu.loss_history, rtol=1e-9)
    for found, expected in zip(on_device.history, on_cpu.history, strict=True):
        for name in ("train_loss_per_token", "gradient_norm", "val_loss"):
            assert found[name] == pytest.approx(expected[name], rel=1e-9)
    np.testing.assert_allclose(parameters(on_device), parameters(on_cpu), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("graphs", [False, True])
def test_two_runs_are_identical_to_the_bit(graphs, device):
    data = make_data()
    once, again = (trained(data, "gpu", graphs=graphs) for _ in range(2))
    assert once.loss_history == again.loss_history
    np.testing.assert_array_equal(parameters(once), parameters(again))


@pytest.mark.slow
@pytest.mark.parametrize("route", [("gpu", "cpu"), ("cpu", "gpu"), ("gpu", "gpu")])
def test_a_run_goes_on_elsewhere(route, device, tmp_path):
    data = make_data()
    whole = trained(data, "cpu")
    trained(data, route[0], tmp_path / "run", num_epochs=1)
    assert load_model(tmp_path / "run" / "last.h5").device == "cpu"
    resumed = Solver.resume(tmp_path / "run", new_model(data), data, device=route[1], num_epochs=2)
    resumed.train()
    np.testing.assert_allclose(resumed.loss_history, whole.loss_history, rtol=1e-9)
    np.testing.assert_allclose(parameters(resumed), parameters(whole), rtol=1e-6, atol=1e-8)
    assert "device" not in resumed.options.__dict__


def test_in_parts(device):
    data = make_data()
    options = {"seed": 1, "num_epochs": 1, "batch_size": 6, "verbose": False}
    losses = []
    for where, accumulate in (("cpu", 1), ("gpu", 3)):
        solver = Solver(
            make_model(data, dtype=np.float64), data, device=where, accumulate=accumulate, **options
        )
        solver.train()
        losses.append(solver.loss_history)
    np.testing.assert_allclose(*losses, rtol=1e-9)


def test_what_is_not_finite_is_found(device):
    data = make_data()
    solver = Solver(new_model(data), data, device="gpu", **OPTIONS)
    solver.model.params["Wh"][1, 2] = np.nan
    with pytest.raises(NonFiniteError, match="parameter 'Wh' has nan") as error:
        solver.train()
    assert error.value.parameter == "Wh"


@pytest.mark.parametrize(
    ("graphs", "room", "advice"), [(False, 4096, ""), (True, 32768, "; graphs take memory of their own, .*")]
)
def test_out_of_memory(graphs, room, advice, simulated):
    """The room is enough for the batch, and too small for its step."""
    data = make_data()
    solver = Solver(new_model(data), data, device="gpu", accumulate=2, graphs=graphs, prefetch=0, **OPTIONS)
    simulated.cuda.limit = simulated.get_default_memory_pool().used_bytes() + room
    expected = (
        r"^iteration 1: out of memory: Out of memory allocating .* parameters, gradients and the update "
        r"rule's state are 0 MB, and the batch has 5 examples and \d+ tokens, in 2 parts: a smaller "
        rf"batch_size needs less, and a larger accumulate computes the gradient in more parts{advice}$"
    )
    before = parameters_of(solver, simulated)
    with pytest.raises(MemoryError, match=expected):
        solver.train()
    np.testing.assert_array_equal(parameters_of(solver, simulated), before)


def parameters_of(solver, cupy):
    return cupy.asnumpy(solver.model.params.flat)


@pytest.mark.parametrize(("asked", "cell"), [("0", "lstm"), ("grid", "lstm_steps"), ("1", "lstm_sequences")])
def test_kernels_of_our_own_are_launched(asked, cell, simulated, monkeypatch):
    monkeypatch.setenv("RNNLAB_PERSISTENT", asked)
    data = make_data()
    solver = Solver(new_model(data), data, device="gpu", **OPTIONS)
    simulated.launches.clear()
    solver.train()
    others = {
        "softmax_cross_entropy",
        "embedding_gradient",
        "take",
        "put",
        "dropout",
        "sum_of_squares",
        "adamw",
    }
    assert {f"{cell}_forward", f"{cell}_backward"} | others <= set(simulated.launches)


@pytest.mark.parametrize("graphs", [False, True])
def test_products_in_bfloat16(graphs, device):
    data, losses = make_data(), []
    for matmul in ("float32", "bfloat16"):
        solver = Solver(make_model(data), data, device="gpu", graphs=graphs, matmul=matmul, **OPTIONS)
        solver.train()
        losses.append(solver.loss_history)
    assert losses[0] != losses[1]
    np.testing.assert_allclose(*losses, rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("graphs", [False, True])
def test_products_of_split_factors(graphs, device, monkeypatch):
    cublas = importlib.import_module("rnnlab.ops.cuda.cublas")
    monkeypatch.setattr(cublas, "split_is_faster", lambda *sizes: True)
    data, losses = make_data(), []
    for matmul in ("float32", "tf32x3"):
        solver = Solver(make_model(data), data, device="gpu", graphs=graphs, matmul=matmul, **OPTIONS)
        solver.train()
        losses.append(solver.loss_history)
    np.testing.assert_allclose(*losses, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("graphs", [False, True])
def test_a_thousand_iterations_take_no_more_memory_than_a_hundred(graphs):
    import cupy

    taken = []
    for epochs in (30, 330):  # of three iterations
        trained(make_data(), "gpu", num_epochs=epochs, graphs=graphs)
        gc.collect()
        cupy.get_default_memory_pool().free_all_blocks()
        free, total = cupy.cuda.runtime.memGetInfo()
        taken.append(total - free)
    assert taken[1] <= taken[0] + (4 << 20)


def test_a_solver_whose_model_stays_where_it_is(model, data):
    assert Solver(model, data, verbose=False).model is model
    with pytest.raises(TypeError, match="Solver: model is a LinearModel without to"):
        Solver(model, data, device="cpu", verbose=False)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("graphs", [False, True])
def test_callbacks_get_losses_and_gradients_of_the_device(device, graphs, tmp_path):
    """The host reads losses only now and then, but a callback may read each of them."""

    class Reads(Callback):
        def __init__(self):
            self.losses, self.norms, self.unread = [], [], set()

        def on_step(self, solver, loss, grads):
            self.losses.append(float(loss))
            self.norms.append(float((grads.flat**2).sum()) ** 0.5)
            self.unread.add(solver.iteration - len(solver.loss_history))
            if solver.iteration == 3:
                raise LookupError

    data = make_data()
    reference = trained(data, "gpu", graphs=graphs)
    reads = Reads()
    solver = Solver(
        new_model(data), data, device="gpu", run_dir=tmp_path, callbacks=[reads], graphs=graphs, **OPTIONS
    )
    with pytest.raises(LookupError):
        solver.train()
    assert solver.loss_history == reference.loss_history[:3]  # read for the checkpoint
    solver = Solver.resume(tmp_path, new_model(data), data, device="gpu", callbacks=[reads])
    solver.train()
    assert solver.loss_history == reference.loss_history
    assert reads.losses == reference.loss_history
    assert len(reads.unread) > 1
    assert np.mean(reads.norms[len(reads.norms) // 2 :]) == pytest.approx(
        reference.history[1]["gradient_norm"]
    )
