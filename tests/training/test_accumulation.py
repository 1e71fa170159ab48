"""Gradient accumulation: parts of a batch add up to the whole, in every model and through a training."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.data import ArrayData
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.recipes.recipe import load_recipe
from rnnlab.training import load_checkpoint
from rnnlab.training.accumulation import balanced
from rnnlab.training.solver import Solver

from . import trainings
from .parts import parts_of

WORDS = {word: index for index, word in enumerate(["<NULL>", "<START>", "<END>", "a", "b", "c", "d"])}
N, L, D, G, W, H = 11, 3, 4, 5, 3, 4

# ------------------------------------------------------------------ parts


@pytest.mark.parametrize(
    ("lengths", "count", "expected"),
    [
        ([5, 5, 5, 5], 2, [2, 2]),
        ([9, 1, 1, 1, 1, 1, 1, 1, 1, 1], 2, [1, 9]),
        ([1, 1, 1, 1, 1, 1, 1, 1, 1, 9], 2, [9, 1]),
        ([9, 9, 1, 1, 1], 4, [1, 1, 1, 2]),
        ([1, 1, 1, 100], 3, [2, 1, 1]),
        ([0, 0, 0], 2, [1, 2]),
        ([3, 4], 5, [1, 1]),
        ([3, 4], 1, [2]),
    ],
)
def test_parts_have_about_as_many_tokens(lengths, count, expected):
    parts = balanced(np.array(lengths), count)
    assert [part.stop - part.start for part in parts] == expected
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == len(lengths)


# ------------------------------------------------------------------ the gradient of every model


def sentences(lengths, rng):
    """<START>, words, <END>, then <NULL>; nothing but <NULL> where the length is 0."""
    tokens = np.zeros((len(lengths), max(lengths) + 2), np.int32)
    for row, length in zip(tokens, lengths, strict=True):
        if length:
            row[: length + 2] = [1, *rng.integers(3, len(WORDS), length), 2]
    return tokens


# The last of three or four parts has short sentences only, the last of eleven no token at all.
TARGETS = [6, 1, 9, 4, 4, 2, 7, 3, 1, 1, 0]
SOURCES = [2, 7, 1, 5, 0, 3, 3, 8, 2, 1, 1]
AVERAGES = ("batch", "token")
ARNET = {"reconstruction": 0.3, "reconstructor_dim": 3}
CAPTIONERS = [
    {"cell_type": "rnn"},
    {"cell_type": "lstm", "image_input": "second_layer", **ARNET},
    {"cell_type": "gru", "image_input": "first_input", "label_smoothing": 0.1, **ARNET},
    {"cell_type": "simplified_gru", "image_input": "every_step", "output": "deep", "tied_embeddings": True},
    {"cell_type": "lstm", "attention": "additive", "selector": True, "doubly_stochastic": 0.5},
    {"cell_type": "gru", "attention": "bilinear", "global_dim": G, "output": "deep", **ARNET},
    {
        "cell_type": "lstm",
        "attention": "dot",
        "target_attention": True,
        "project_cell": True,
        "output": "deep",
        "doubly_stochastic": 0.5,
        "label_smoothing": 0.2,
        **ARNET,
    },
]
TRANSLATORS = [
    {"attention": None, "label_smoothing": 0.1},
    {"cell_type": "lstm", "num_layers": 2, "encoder_reconstruction": 0.2, **ARNET},
    {"decoder_layers": 2, "target_attention": True, **ARNET},
    {"target_attention": True, "bidirectional": False, "encoder_reconstruction": 0.2, "output": "linear"},
]
CLASSIFIERS = [
    {},
    {"readout": "mean", "cell_type": "gru", "num_layers": 2, "label_smoothing": 0.1, **ARNET},
]


def captioner(options, rng):
    model = CaptioningRNN(WORDS, D, W, **{"hidden_dim": H, "dtype": np.float64} | options)
    features = rng.standard_normal((N, L, D) if "attention" in options else (N, D))
    if "global_dim" in options:
        features = (features, rng.standard_normal((N, G)))
    return model, (features, sentences(TARGETS, rng))


def translator(options, rng):
    return Seq2Seq(WORDS, WORDS, W, H, dtype=np.float64, **options), (
        sentences(SOURCES, rng),
        sentences(TARGETS, rng),
    )


def classifier(options, rng, lengths=True):
    model = SequenceClassifier(3, D, H, dtype=np.float64, **options)
    x, labels = rng.standard_normal((N, 6, D)), rng.integers(0, 3, N)
    return model, (x, labels, rng.integers(0, 7, N) if lengths else None)


CASES = [
    *((captioner, each | {"loss_average": average}) for each in CAPTIONERS for average in AVERAGES),
    *((translator, each | {"loss_average": average}) for each in TRANSLATORS for average in AVERAGES),
    *((classifier, each) for each in CLASSIFIERS),
]


def name_of(value):
    return "-".join(map(str, value.values())) if isinstance(value, dict) else getattr(value, "__name__", "")


def tokens_of(batch):
    return len(batch[1]) if batch[1].ndim == 1 else int(np.count_nonzero(batch[1][:, 1:]))


def accumulated(model, batch, count, rng=None):
    grads, part_of = model.params.zeros_like(), (len(batch[1]), tokens_of(batch))
    parts = parts_of(batch, count)
    return sum(model.loss(*part, rng=rng, grads=grads, part_of=part_of)[0] for part in parts), grads


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("make", "options"), CASES, ids=name_of)
@pytest.mark.parametrize("count", [2, 3, 4, N])
def test_the_gradient_of_the_whole(make, options, count, rng):
    model, batch = make(options, rng)
    model.params.flat[...] = rng.uniform(-0.8, 0.8, model.params.flat.size)
    expected, whole = model.loss(*batch)
    loss, grads = accumulated(model, batch, count)
    assert loss == pytest.approx(expected, rel=1e-12)
    for name, grad in whole.items():
        assert grad.any(), name
        np.testing.assert_allclose(grads[name], grad, rtol=0, atol=1e-12 * np.abs(grad).max(), err_msg=name)


@pytest.mark.parametrize("options", [CAPTIONERS[1], CAPTIONERS[-1]], ids=name_of)
def test_in_single_precision_with_numpy_s_own_integers(options, rng):
    model, batch = captioner(options | {"dtype": np.float32, "loss_average": "token"}, rng)
    expected, whole = model.loss(*batch)
    grads, part_of = model.params.zeros_like(), (np.int64(N), np.int64(tokens_of(batch)))
    loss = sum(model.loss(*part, grads=grads, part_of=part_of)[0] for part in parts_of(batch, 3))
    assert loss == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(grads.flat, whole.flat, rtol=1e-3, atol=1e-5)


def test_without_lengths(rng):
    model, batch = classifier({}, rng, lengths=False)
    expected, whole = model.loss(*batch)
    loss, grads = accumulated(model, batch, 4)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grads.flat, whole.flat, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("make", "options"), CASES[-4:] + CASES[:2], ids=name_of)
def test_a_part_that_is_the_whole_is_bit_for_bit(make, options, rng):
    model, batch = make(options, rng)
    expected, whole = model.loss(*batch, rng=np.random.default_rng(3))
    loss, grads = accumulated(model, batch, 1, rng=np.random.default_rng(3))
    assert loss == expected
    np.testing.assert_array_equal(grads.flat, whole.flat)


def test_without_room_a_part_has_its_own_gradient(rng):
    model, batch = captioner(CAPTIONERS[-1], rng)
    grads = [model.loss(*part, part_of=(N, tokens_of(batch)))[1].flat for part in parts_of(batch, 3)]
    np.testing.assert_allclose(sum(grads), model.loss(*batch)[1].flat, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("make", "part_of"), [(captioner, (N - 1, 100)), (translator, (N, 3)), (classifier, (N - 1, N))]
)
def test_a_batch_smaller_than_its_part(make, part_of, rng):
    model, batch = make({}, rng)
    for name, function in (("loss", model.loss), ("padded", model.padded)):
        with pytest.raises(ValueError, match=rf"\.{name}: part_of is \({part_of[0]}, .*, expected at least"):
            function(*batch, part_of=part_of)


# ------------------------------------------------------------------ training


class Captions:
    """23 captions to train on, so that the last batch of 5 has 3."""

    in_memory = True

    def __init__(self, attention=False):
        rng = np.random.default_rng(4)
        features = rng.standard_normal((23, L, D) if attention else (23, D))
        captions = sentences(rng.integers(1, 8, 23), rng)
        self.splits = {"train": (features, captions), "val": (features[:6], captions[:6])}

    def epoch(self, split, batch_size, rng):
        order = np.arange(len(self.splits[split][1]))
        if rng is not None:
            rng.shuffle(order)
        return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]

    def batch(self, split, indices):
        return tuple(array[indices] for array in self.splits[split])

    def num_tokens(self, batch):
        return tokens_of(batch)


def new_model(**options):
    return CaptioningRNN(WORDS, D, W, H, "lstm", np.float64, rng=2, **options)


OPTIONS = {
    "num_epochs": 2,
    "batch_size": 5,
    "optim_config": {"learning_rate": 0.01},
    "schedule": {"name": "exponential", "decay": 0.9},
    "clip_norm": 1.0,
    "trains": ["W*", "arnet*"],
    "verbose": False,
}
LOSSES = {"attention": "additive", "doubly_stochastic": 0.5, "label_smoothing": 0.1, **ARNET}

pytestmark = pytest.mark.usefixtures("no_pictures")


def assert_close(one, other):
    """Two solvers with the same losses and history, the time aside."""
    assert one.loss_history == pytest.approx(other.loss_history, rel=1e-10)
    for row, expected in zip(one.history, other.history, strict=True):
        assert list(row) == list(expected)
        for name in row.keys() - {"seconds", "tokens_per_second"}:
            assert row[name] == pytest.approx(expected[name], rel=1e-10), name
    np.testing.assert_allclose(one.model.params.flat, other.model.params.flat, rtol=1e-6, atol=1e-9)


def copy_of(solver):
    """The model of a solver as it was before training."""
    return CaptioningRNN.from_config(solver.model.config(), rng=2)


@pytest.fixture(scope="module", params=AVERAGES)
def reference(request):
    model = new_model(loss_average=request.param, **LOSSES)
    solver = Solver(model, Captions(attention=True), **OPTIONS)
    solver.train()
    return solver


@pytest.mark.one_in(3)
@pytest.mark.parametrize("accumulate", [2, 4, 50])
def test_the_same_training(reference, accumulate):
    solver = Solver(copy_of(reference), Captions(attention=True), accumulate=accumulate, **OPTIONS)
    solver.train()
    assert_close(solver, reference)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("change", [{}, {"accumulate": 1}, {"accumulate": 2}])
def test_resume_in_the_middle(reference, change, tmp_path):
    class Killed(Exception):
        """In the middle of the batch after the eighth."""

    def loss(*batch, **options):
        calls.append(batch)
        if len(calls) == 4 + 4 + 4 + 4 + 3 + 4 + 4 + 4 + 2:
            raise Killed
        return whole_loss(*batch, **options)

    calls, model = [], copy_of(reference)
    whole_loss, model.loss = model.loss, loss
    options = OPTIONS | {"accumulate": 4, "checkpoint_every": 1, "run_dir": tmp_path}
    with pytest.raises(Killed):
        Solver(model, Captions(attention=True), **options).train()
    solver = Solver.resume(tmp_path, copy_of(reference), Captions(attention=True), **change)
    assert len(solver.loss_history) == 8
    assert solver.options.accumulate == change.get("accumulate", 4)
    solver.train()
    assert_close(solver, reference)


def test_a_resumed_run_with_noise_is_bit_for_bit(tmp_path):
    data, noise = Captions(), {"word_dropout": 0.3, "output_dropout": 0.3}
    options = OPTIONS | {"accumulate": 3, "trains": None}
    sampling = {"scheduled_sampling": {"name": "constant", "value": 0.5}}
    whole = Solver(new_model(**noise), data, **options, **sampling)
    whole.train()
    Solver(new_model(**noise), data, run_dir=tmp_path, **options | {"num_epochs": 1}, **sampling).train()
    resumed = Solver.resume(tmp_path, new_model(**noise), data, num_epochs=2)
    resumed.train()
    assert resumed.loss_history == whole.loss_history
    np.testing.assert_array_equal(resumed.model.params.flat, whole.model.params.flat)


def test_a_run_from_before_there_was_accumulation(make_model, data, tmp_path, monkeypatch):
    options = {"num_epochs": 1, "batch_size": 8, "verbose": False}
    with monkeypatch.context() as patch:
        patch.setattr(
            "rnnlab.training.options.Options.to_dict",
            lambda options: {name: value for name, value in vars(options).items() if name != "accumulate"},
        )
        Solver(make_model(), data, run_dir=tmp_path, **options).train()
    assert "accumulate" not in load_checkpoint(tmp_path / "last.h5").solver["options"]
    solver = Solver.resume(tmp_path, make_model(), data, num_epochs=2)
    assert solver.options.accumulate == 1
    solver.train()


# ------------------------------------------------------------------ options


def test_a_model_without_part_of(make_model, data):
    options = {"num_epochs": 1, "verbose": False}
    message = "accumulate is 4, but the loss of this LinearModel takes no part_of"
    with pytest.raises(TypeError, match=message):
        Solver(make_model(), data, accumulate=4, **options)
    Solver(make_model(), data, accumulate=1, **options).train()


@pytest.mark.parametrize("accumulate", [0, -1, 1.5, "2", True, None])
def test_bad_counts(model, data, accumulate):
    with pytest.raises(ValueError, match=r"accumulate is .*, expected an integer of at least 1"):
        Solver(model, data, accumulate=accumulate)


def test_the_key_of_a_recipe():
    recipe = "shapes"
    assert load_recipe(recipe).training.accumulate == 1
    stage = load_recipe(recipe, ["training.accumulate=4"]).stages()[0]
    assert stage.options()["accumulate"] == 4
    with pytest.raises(ValueError, match=r"training.accumulate is 0, expected an integer of at least 1"):
        load_recipe(recipe, ["training.accumulate=0"])


def test_several_captions_of_each_image_need_no_number_of_examples():
    """The model knows what its loss is a mean over, where the data do not say so."""
    data, losses = trainings.Captions(), []
    features, captions = data.splits["train"]
    arrays = {"train": (features, np.stack([captions, captions[::-1]], axis=1))}
    for parts in (1, 3):
        model = trainings.captioner(attention="additive")
        several = ArrayData(arrays, null_token=0)
        solver = Solver(model, several, num_epochs=1, batch_size=6, accumulate=parts, verbose=False)
        solver.train()
        losses.append(solver.loss_history)
    np.testing.assert_allclose(*losses, rtol=1e-9)


def test_parts_of_each_batch_draw_their_own_masks():
    """The generators of the parts come from that of the run: no two batches have the same dropout."""
    data = trainings.Captions()
    data.epoch = lambda split, size, rng: [np.arange(6)] * 3  # the same batch at each iteration
    losses = {}
    for seed in (0, 0, 1):
        model = trainings.captioner(attention="additive", output_dropout=0.5)
        solver = Solver(
            model,
            data,
            num_epochs=1,
            accumulate=2,
            schedule=lambda iteration, epoch: 0.0,  # the parameters stay
            seed=seed,
            verbose=False,
        )
        solver.train()
        losses.setdefault(seed, []).append(solver.loss_history)
    assert losses[0][0] == losses[0][1]
    assert len({*losses[0][0], *losses[1][0]}) == 6
