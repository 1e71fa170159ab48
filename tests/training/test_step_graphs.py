"""Training steps as CUDA graphs, on a GPU or CuPy's stand-in: the same training, launched as a whole."""

import gc
import json
import weakref

import numpy as np
import pytest

from rnnlab.models import CaptioningRNN, LanguageModel, Seq2Seq, SequenceClassifier
from rnnlab.training import Callback, NonFiniteError, Solver, register_update_rule, step_graphs
from rnnlab.training.optim import UPDATE_RULES, Adam

pytestmark = pytest.mark.usefixtures("no_pictures")

RULES = ["adam", "sgd", "momentum", "adagrad", "rmsprop", "adadelta", "adamw"]
COUNT = 13  # of examples: two batches of 5, and one of 3
WORDS = {"<NULL>": 0, "<START>": 1, "<END>": 2} | {f"w{k}": k for k in range(3, 12)}
NOISE = {"zoneout_h": 0.2, "zoneout_c": 0.1, "recurrent_dropout": 0.2, "weight_dropout": 0.1}


class Batches:
    """A "train" split of whatever arrays there are."""

    splits = ("train",)

    def __init__(self, *arrays):
        self.arrays = arrays

    def epoch(self, split, batch_size, rng):
        order = np.arange(len(self.arrays[-1]))
        if rng is not None:
            rng.shuffle(order)
        return [order[k : k + batch_size] for k in range(0, len(order), batch_size)]

    def batch(self, split, indices):
        return tuple(array[indices] for array in self.arrays)

    def num_tokens(self, batch):
        targets = batch[-1]
        return len(targets) if targets.ndim == 1 else int((targets[:, 1:] != 0).sum())


def sentences(rng, count, longest=12):
    """<START>, words, <END>, then <NULL>."""
    tokens = np.zeros((count, longest), int)
    for row, length in zip(tokens, rng.integers(1, longest - 2, size=count), strict=True):
        row[: length + 2] = [1, *rng.integers(3, 12, size=length), 2]
    return tokens


def captioner(rng, **options):
    attends = "attention" in options
    features = rng.standard_normal((COUNT, 3, 5) if attends else (COUNT, 5))
    model = CaptioningRNN(WORDS, 5, 4, 6, cell_type="lstm", dtype=np.float64, **options)
    return model, Batches(features, sentences(rng, COUNT))


def translator(rng, **options):
    model = Seq2Seq(WORDS, WORDS, 4, 6, cell_type="gru", dtype=np.float64, **options)
    return model, Batches(sentences(rng, COUNT, 20), sentences(rng, COUNT))


def language(rng, **options):
    model = LanguageModel(WORDS, 4, 6, cell_type="lstm", dtype=np.float64, **options)
    return model, Batches(sentences(rng, COUNT))


def classifier(rng, **options):
    model = SequenceClassifier(3, 2, 5, cell_type="lstm", dtype=np.float64, **options)
    return model, Batches(rng.standard_normal((COUNT, 7, 2)), rng.integers(3, size=COUNT))


MODELS = {
    "captioner": (captioner, {}),
    "captioner, image at every step": (captioner, {"image_input": "every_step"}),
    "captioner, attention and ARNet": (
        captioner,
        {"attention": "additive", "target_attention": True, "selector": True, "doubly_stochastic": 0.5,
         "reconstruction": 0.1, "label_smoothing": 0.1, "output": "deep"},
    ),
    "captioner, reviewer": (
        captioner,
        {"attention": "additive", "reviewer": {"blocks": 2, "steps": 2, "dropout": 0.2},
         "discriminative": 0.3, "project_cell": True},
    ),
    "translator, reviewer": (
        translator,
        {"reviewer": {"blocks": 1, "steps": 3, "intra": False}, "discriminative": 0.2,
         "target_attention": True, "output": "concat"},
    ),
    "translator": (
        translator,
        {"attention": "additive", "reconstruction": 0.1, "encoder_reconstruction": 0.2},
    ),
    "translator, two layers": (translator, {"decoder_layers": 2, "tied_embeddings": True}),
    "translator, bilinear": (translator, {"attention": "bilinear", "num_layers": 2, "output": "linear"}),
    "language": (language, {"decoder_layers": 2, "target_attention": True, "reconstruction": 0.1}),
    "classifier": (classifier, {"reconstruction": 0.1, "num_layers": 2}),
    "classifier, both directions": (
        classifier,
        {"bidirectional": True, "reconstruction": 0.1, "num_layers": 2, "readout": "mean"},
    ),
}  # fmt: skip


TERMS = {"doubly_stochastic", "reconstruction", "encoder_reconstruction", "discriminative"}


def trained(make, options, run_dir=None, noise=False, **solver_options):
    model, data = make(np.random.default_rng(0), **options)
    defaults = {"num_epochs": 3, "batch_size": 5, "seed": 1, "clip_norm": 1.0, "verbose": False}
    solver = Solver(model, data, run_dir=run_dir, **defaults | solver_options)
    solver.train()
    return solver


def parameters(solver):
    return solver.model.to("cpu").params.flat


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_training_of_the_cpu(model, device):
    plain = trained(*MODELS[model])
    graphs = trained(*MODELS[model], device="gpu", graphs=True)
    np.testing.assert_allclose(graphs.loss_history, plain.loss_history, rtol=1e-8)
    np.testing.assert_allclose(parameters(graphs), parameters(plain), rtol=1e-6, atol=1e-8)
    weights = {name for name in TERMS if MODELS[model][1].get(name)}
    for row, expected in zip(graphs.history, plain.history, strict=True):
        assert weights == TERMS & set(row) == TERMS & set(expected)
        for weight in weights:
            assert row[weight] == pytest.approx(expected[weight], rel=1e-7)


class Change(Callback):
    """Changes the weight of ARNet's loss, there and back."""

    def on_step(self, solver, loss, grads):
        solver.model.reconstruction = 0.7 if 4 <= solver.iteration % 10 < 8 else 0.1


@pytest.mark.parametrize("prefetch", [0, 2])
def test_weights_of_losses_that_change(prefetch, device):
    """Batches may be prepared before a change and processed after it."""
    options = {"num_epochs": 6, "batch_size": COUNT, "prefetch": prefetch, "callbacks": [Change()]}
    plain = trained(*MODELS["classifier"], **options)
    graphs = trained(*MODELS["classifier"], device="gpu", graphs=True, **options | {"callbacks": [Change()]})
    np.testing.assert_allclose(graphs.loss_history, plain.loss_history, rtol=1e-8)
    np.testing.assert_allclose(parameters(graphs), parameters(plain), rtol=1e-6, atol=1e-8)


class Anneal(Callback):
    """Changes the weight of ARNet's loss at each of the first steps."""

    def on_step(self, solver, loss, grads):
        solver.model.reconstruction = max(0.1, 0.8 - 0.1 * solver.iteration)


def test_a_weight_of_a_loss_that_changes_at_each_step_takes_no_memory(device):
    options = {"num_epochs": 12, "batch_size": COUNT}
    plain = trained(*MODELS["classifier"], **options, callbacks=[Anneal()])
    graphs = trained(*MODELS["classifier"], device="gpu", graphs=True, **options, callbacks=[Anneal()])
    np.testing.assert_allclose(graphs.loss_history, plain.loss_history, rtol=1e-8)
    kept = graphs._update._graphs
    assert {weight for weight, *_ in kept._batches} == {0.1}
    assert kept._graphs


def test_memory_of_graphs_ends_with_their_solver(device):
    """It does not wait for the garbage collector."""
    solver = trained(*MODELS["classifier"], device="gpu", graphs=True)
    memory = weakref.ref(solver._update._graphs._memory)
    gc.disable()
    try:
        del solver
        assert memory() is None
    finally:
        gc.enable()


def test_a_weight_of_a_loss_that_is_not_valid(device):
    model, data = classifier(np.random.default_rng(0), reconstruction=0.1)
    solver = Solver(model, data, device="gpu", graphs=True, verbose=False)
    model.reconstruction = -1.0
    with pytest.raises(ValueError, match="SequenceClassifier.padded_loss: reconstruction is -1.0"):
        solver.train()


@pytest.mark.parametrize("asked", ["0", "grid", "block"])
def test_all_steps_of_an_lstm_in_one_launch_or_not(asked, device, monkeypatch):
    plain = trained(*MODELS["classifier"])
    monkeypatch.setenv("RNNLAB_PERSISTENT", asked)
    graphs = trained(*MODELS["classifier"], device="gpu", graphs=True)
    np.testing.assert_allclose(graphs.loss_history, plain.loss_history, rtol=1e-8)


def trains_in_graphs(make, **options):
    model, data = make(np.random.default_rng(0))
    return Solver(model, data, device="gpu", verbose=False, **options)._update.graphs


class OwnLoss(CaptioningRNN):
    """A captioner with an L2 penalty."""

    def loss(self, *batch, **options):
        loss, grads = super().loss(*batch, **options)
        grads.flat[...] += 0.1 * self.params.flat
        return loss + 0.05 * (self.params.flat**2).sum(), grads


class OwnInit(CaptioningRNN):
    """A captioner with another initialisation."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.params["b_vocab"][...] = 0.1


def own(kind, **options):
    def make(rng):
        model = kind(WORDS, 5, 4, 6, dtype=np.float64, **options)
        return model, Batches(rng.standard_normal((COUNT, 5)), sentences(rng, COUNT))

    return make


def test_graphs_are_the_default_of_a_gpu(device, tmp_path):
    noisy = captioner, {"output_dropout": 0.3}
    found = trained(*noisy, tmp_path / "run", device="gpu")
    asked = trained(*noisy, device="gpu", graphs=True)
    np.testing.assert_array_equal(parameters(found), parameters(asked))
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["computed_by"][2:] == ["training steps: CUDA graphs"]
    assert config["solver"]["graphs"] is None  # a run resumes on any device
    resumed = Solver.resume(tmp_path / "run", *captioner(np.random.default_rng(0), output_dropout=0.3))
    assert not resumed._update.graphs


def test_where_graphs_are_not_the_default(device, monkeypatch):
    class Mine(Adam):
        """Adam, halved."""

        def update(self, *arguments, **options):
            return super().update(*arguments, **options)

    monkeypatch.setattr(UPDATE_RULES, "_classes", dict(UPDATE_RULES._classes))
    register_update_rule("mine", Mine)
    sampling = {"name": "constant", "value": 0.5}
    peephole = {"cell_type": "tests.layers.recurrent.peephole:PeepholeLSTM"}
    for make in (captioner, translator, classifier):
        assert trains_in_graphs(make)
        assert not trains_in_graphs(make, graphs=False)
    assert not trains_in_graphs(captioner, scheduled_sampling=sampling)
    assert not trains_in_graphs(captioner, update_rule="mine")
    for other in (own(OwnInit), own(OwnLoss), own(CaptioningRNN, **peephole)):
        assert not trains_in_graphs(other)
    assert trains_in_graphs(own(OwnInit), graphs=True)
    assert trains_in_graphs(own(CaptioningRNN, **peephole), graphs=True)


def test_a_loss_of_its_own_is_what_is_trained(device):
    """A graph computes ``padded_loss``, which knows nothing of it."""
    with pytest.raises(TypeError, match="this OwnLoss has a loss of its own and no padded_loss of its own"):
        trains_in_graphs(own(OwnLoss), graphs=True)
    on_cpu, on_device = (trained(own(OwnLoss), {}, device=name) for name in ("cpu", "gpu"))
    np.testing.assert_allclose(on_device.loss_history, on_cpu.loss_history, rtol=1e-8)


def test_a_step_is_one_launch(simulated, monkeypatch):
    trained(*MODELS["classifier"], device="gpu", graphs=True, num_epochs=2)
    simulated.launches.clear()
    trained(*MODELS["classifier"], device="gpu", graphs=True, num_epochs=6, prefetch=0)
    assert simulated.launches["graph"] == 6 * 3 - 2  # two shapes, the last batch being smaller
    assert simulated.launches["lstm_forward"] <= 2 * 2 * 2 * 7 * 2  # by the host: a step and a capture each


@pytest.mark.parametrize("rule", RULES)
def test_rules_and_schedules(rule, device):
    options = {
        "update_rule": rule,
        "schedule": {"name": "exponential", "decay": 0.7},
        "clip_value": 0.05,
        "num_epochs": 4,
    }
    plain = trained(*MODELS["captioner"], **options)
    graphs = trained(*MODELS["captioner"], device="gpu", graphs=True, **options)
    np.testing.assert_allclose(graphs.loss_history, plain.loss_history, rtol=1e-8)
    norms = [[row["gradient_norm"] for row in solver.history] for solver in (graphs, plain)]
    np.testing.assert_allclose(*norms, rtol=1e-8)


def test_parts_and_frozen_parameters(device):
    options = {"trains": ["W*", "b_vocab"], "accumulate": 2}
    plain = trained(*MODELS["captioner"], **options)
    graphs = trained(*MODELS["captioner"], device="gpu", graphs=True, **options)
    np.testing.assert_allclose(graphs.loss_history, plain.loss_history, rtol=1e-8)
    np.testing.assert_array_equal(graphs.model.to("cpu").params["b"], plain.model.params["b"])


@pytest.mark.parametrize("graphs", [False, True])
def test_weight_decay_follows_the_schedule(graphs, device):
    """In a graph too, which is captured once."""
    options = {
        "weight_decay": {"*_embed": 0.1, "W*": 0.5},
        "learning_rate_factors": {"W_embed": 0.5, "b*": 2},
        "schedule": {"name": "warmup", "over": 8},
        "trains": ["!W_vocab"],
        "optim_config": {"learning_rate": 0.05},
    }
    plain = trained(*MODELS["captioner"], **options)
    found = trained(*MODELS["captioner"], device="gpu", graphs=graphs, **options)
    np.testing.assert_allclose(found.loss_history, plain.loss_history, rtol=1e-8)
    np.testing.assert_allclose(parameters(found), parameters(plain), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_noise_is_drawn_anew_at_each_launch(device, monkeypatch):
    noisy = captioner, {"word_dropout": 0.3, "output_dropout": 0.3, "regularisation": NOISE}
    graphs = trained(*noisy, device="gpu", graphs=True)
    monkeypatch.setattr(step_graphs, "MOST", 0)  # the same steps, piece by piece
    pieces = trained(*noisy, device="gpu", graphs=True)
    np.testing.assert_allclose(graphs.loss_history, pieces.loss_history, rtol=1e-12)
    np.testing.assert_allclose(parameters(graphs), parameters(pieces), rtol=1e-10)


@pytest.mark.slow
def test_a_run_that_goes_on(device, tmp_path):
    noisy = captioner, {"output_dropout": 0.3}
    whole = trained(*noisy, device="gpu", graphs=True)
    first = trained(*noisy, tmp_path / "run", device="gpu", graphs=True, num_epochs=1)
    model, data = captioner(np.random.default_rng(0), output_dropout=0.3)
    resumed = Solver.resume(tmp_path / "run", model, data, device="gpu", num_epochs=3)
    assert resumed.options.graphs
    resumed.train()
    assert first.loss_history == whole.loss_history[:3]
    assert resumed.loss_history == whole.loss_history
    np.testing.assert_array_equal(parameters(resumed), parameters(whole))
    with pytest.raises(ValueError, match="graphs is true, but the model is on the CPU"):
        Solver.resume(tmp_path / "run", model.to("cpu"), data, device="cpu", num_epochs=4)
    Solver.resume(tmp_path / "run", model, data, device="cpu", num_epochs=4, graphs=False).train()


def test_what_is_not_finite_stops_all_updates(device):
    model, data = captioner(np.random.default_rng(0))
    solver = Solver(model, data, device="gpu", graphs=True, batch_size=5, num_epochs=4, verbose=False)
    solver.train()
    before = device.asnumpy(model.params.flat)
    data.arrays[0][7, 2] = np.inf
    again = Solver(model, data, device="gpu", graphs=True, batch_size=COUNT, num_epochs=30, verbose=False)
    with pytest.raises(NonFiniteError, match="^iteration 1: the loss is nan"):
        again.train()
    np.testing.assert_array_equal(device.asnumpy(model.params.flat), before)
    assert again.loss_history == []


@pytest.mark.slow
def test_memory_does_not_grow(device):
    model, data = captioner(np.random.default_rng(0))
    pool, used = device.get_default_memory_pool(), []
    solver = Solver(
        model, data, device="gpu", graphs=True, batch_size=5, num_epochs=16, verbose=False, prefetch=0,
        evaluate=lambda _: {"val_loss": used.append(pool.used_bytes()) or 1.0},
    )  # fmt: skip
    solver.train()
    assert len(set(used[10:])) == 1  # once every shape has its graph


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "graphs is true, but the model is on the CPU"),
        ({"scheduled_sampling": {"name": "constant", "value": 0.5}}, "graphs is true, but"),
    ],
)
def test_what_it_needs(options, message):
    with pytest.raises(ValueError, match=message):
        trained(*MODELS["captioner"], graphs=True, **options)


@pytest.mark.parametrize("name", ["graphs", "restore_best", "verbose", "progress"])
def test_what_is_true_or_false(name):
    with pytest.raises(ValueError, match=f"Solver: {name} is 'no', expected True or False"):
        trained(*MODELS["captioner"], **{name: "no"})


def test_scheduled_sampling_waits_for_words(device):
    sampling = {"name": "constant", "value": 0.5}
    with pytest.raises(ValueError, match="scheduled_sampling is given, which reads"):
        trained(*MODELS["captioner"], device="gpu", graphs=True, scheduled_sampling=sampling)


def test_numbers_come_back_once_an_interval(simulated):
    model, data = captioner(np.random.default_rng(0))
    for graphs in (False, True):
        solver = Solver(
            model, data, device="gpu", graphs=graphs, batch_size=2, num_epochs=2, print_every=5, verbose=False
        )
        simulated.transfers.reset()
        solver.train()
        assert len(solver.loss_history) == 2 * 7
        # Two transfers after iterations 1, 6 and 11, and at the ends of the epochs, 7 and 14.
        assert simulated.transfers.to_host == 2 * 3 + 3 * 2


def test_losses_are_shown_for_every_interval(device, capsys):
    model, data = captioner(np.random.default_rng(0))
    Solver(model, data, device="gpu", graphs=True, batch_size=5, num_epochs=3, print_every=4).train()
    shown = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["1", "5", "9"]


def test_training_goes_on_after_an_error(device):
    model, data = captioner(np.random.default_rng(0))
    solver = Solver(model, data, device="gpu", graphs=True, batch_size=5, num_epochs=4, verbose=False)
    kept = data.arrays[0].copy()
    data.arrays[0][:] = np.inf
    with pytest.raises(NonFiniteError):
        solver.train()
    data.arrays[0][:] = kept
    solver.train()
    assert len(solver.loss_history) == 4 * 3
    assert np.isfinite(solver.loss_history).all()


def test_parameters_that_move(device):
    model, data = captioner(np.random.default_rng(0))
    options = {"batch_size": 5, "num_epochs": 4, "verbose": False}
    solver = Solver(model, data, device="gpu", graphs=True, evaluate=moves, **options)
    solver.train()
    plain_model, _ = captioner(np.random.default_rng(0))
    plain = Solver(plain_model, data, evaluate=lambda _: {"val_loss": 1.0}, **options)
    plain.train()
    np.testing.assert_allclose(solver.loss_history, plain.loss_history, rtol=1e-8)


def moves(model):
    """The parameters go to the host and come back elsewhere."""
    model.to("cpu").to("gpu")
    return {"val_loss": 1.0}


def test_arrays_of_the_data_stay_what_they_are(device):
    model, data = classifier(np.random.default_rng(0))
    x = device.asarray(data.arrays[0])
    data.batch = lambda split, indices: (x, data.arrays[1])
    before = device.asnumpy(x)
    Solver(model, data, device="gpu", graphs=True, batch_size=COUNT, num_epochs=4, verbose=False).train()
    np.testing.assert_array_equal(device.asnumpy(x), before)


def test_out_of_memory(simulated, monkeypatch):
    model, data = captioner(np.random.default_rng(0))
    solver = Solver(model, data, device="gpu", graphs=True, batch_size=5, num_epochs=3, verbose=False)
    with monkeypatch.context() as patch:

        def looks_and_fails(*args, **options):
            raise MemoryError("none left")

        patch.setattr(simulated.ndarray, "copy", looks_and_fails)  # at the end of the first step
        with pytest.raises(MemoryError, match="none left; .* own, which graphs=False saves$"):
            solver.train()
    simulated.cuda.limit = simulated.get_default_memory_pool().used_bytes()
    with pytest.raises(
        MemoryError, match=r"^out of memory: .* 5 examples and \d+ tokens: a smaller batch_size"
    ):
        solver.train()
    simulated.cuda.limit = None
    solver.train()
    assert len(solver.loss_history) == 3 * 3


@pytest.mark.slow
@pytest.mark.parametrize("graphs", [False, True])
def test_a_step_without_memory_leaves_no_trace(graphs, device, monkeypatch):
    noisy = captioner, {"output_dropout": 0.3}
    options = {"num_epochs": 4, "batch_size": 5, "clip_norm": 1.0, "verbose": False, "seed": 1}
    whole = trained(*noisy, device="gpu", graphs=graphs, num_epochs=4)
    model, data = captioner(np.random.default_rng(0), output_dropout=0.3)
    solver = Solver(model, data, device="gpu", graphs=graphs, **options)
    for failing in (2, 3):  # with graphs, steps that are launched piece by piece and captures count
        backward, calls = model.encoder.backward, []

        def fails(*args, backward=backward, calls=calls, failing=failing, **options):
            calls.append(1)
            if len(calls) == failing:
                raise MemoryError("none left")
            return backward(*args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(model.encoder, "backward", fails)
            with pytest.raises(MemoryError, match="none left"):
                solver.train()
    solver.train()
    assert solver.loss_history == whole.loss_history
    np.testing.assert_array_equal(parameters(solver), parameters(whole))
