"""The solver with the real model and real data structures, small."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import h5py
import numpy as np
import pytest

from rnnlab.data.caption_groups import CaptionGroups
from rnnlab.data.captions import CaptionData
from rnnlab.data.lazy import LazyFeatures
from rnnlab.data.splits import CaptionSplit
from rnnlab.data.vocabulary import Vocabulary
from rnnlab.models import CaptioningRNN
from rnnlab.training import Callback, CheckpointError, Solver, load_checkpoint, load_model, validation_loss

IMAGES, LENGTH = 12, 8


def make_data(splits=("train", "val")):
    rng = np.random.default_rng(17)
    words = [f"word{i}" for i in range(20)]
    vocabulary = Vocabulary(words)
    made = {}
    for name in splits:
        sentences = [list(rng.choice(words, rng.integers(2, LENGTH - 1))) for _ in range(IMAGES)]
        made[name] = CaptionSplit(
            features=rng.standard_normal((IMAGES, 10)).astype(np.float32),
            captions=np.stack([vocabulary.encode(sentence, LENGTH) for sentence in sentences]),
            image_idxs=np.arange(IMAGES, dtype=np.int32),
            names=tuple(f"{name}{i}.jpg" for i in range(IMAGES)),
            references=[[" ".join(sentence)] for sentence in sentences],
        )
    return CaptionData(vocabulary, made)


def make_model(data, cell_type="lstm", **options):
    return CaptioningRNN(data.vocabulary.word_to_idx, 10, 16, 24, cell_type, rng=3, **options)


class Anneal(Callback):
    """Lowers the weight of ARNet's loss at each step, and turns it off at last."""

    def on_step(self, solver, loss, grads):
        solver.model.reconstruction = max(0.0, 0.2 - 0.05 * solver.iteration)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [2, 5])
def test_a_weight_of_a_loss_that_changes_resumes(stop, tmp_path):
    data, options = make_data(), {"num_epochs": 4, "batch_size": 6, "verbose": False, "seed": 1}
    new = partial(make_model, data, reconstruction=0.2)
    reference = Solver(new(), data, callbacks=[Anneal()], **options)
    reference.train()

    class Stop(Callback):
        def on_step(self, solver, loss, grads):
            if solver.iteration == stop:
                solver.stop("enough")

    Solver(new(), data, run_dir=tmp_path, callbacks=[Anneal(), Stop()], **options).train()
    with pytest.raises(
        CheckpointError, match=r"model: reconstruction: found 0.2, expected 0.3, as the model"
    ):
        Solver.resume(tmp_path, make_model(data, reconstruction=0.3), data)
    for _ in range(2):  # the second has nothing left to train
        solver = Solver.resume(tmp_path, new(), data, callbacks=[Anneal()])
        solver.train()
        assert solver.loss_history == reference.loss_history
        np.testing.assert_array_equal(solver.model.params.flat, reference.model.params.flat)
    assert load_model(tmp_path / "last.h5").reconstruction == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("cell_type", ["rnn", "lstm", "gru"])
def test_overfits_a_few_captions(cell_type):
    data = make_data(["train"])
    model = make_model(data, cell_type)
    solver = Solver(
        model,
        data,
        optim_config={"learning_rate": 0.02},
        num_epochs=60,
        batch_size=6,
        clip_norm=5.0,
        schedule={"name": "exponential", "decay": 0.98},
        verbose=False,
    )
    solver.train()
    assert solver.loss_history[-1] < 0.5
    split = data.splits["train"]
    sampled = model.sample(split.features, LENGTH)
    found = [data.vocabulary.decode(row) for row in sampled]
    assert found == [references[0] for references in split.references]
    real = int((split.captions[:, 1:] != 0).sum())
    row = solver.history[0]
    assert row["tokens_per_second"] * row["seconds"] == pytest.approx(real)


OPTIONS = {"num_epochs": 3, "batch_size": 5, "seed": 1, "verbose": False}


SAMPLED = {
    "scheduled_sampling": {"name": "linear", "start": 0.2, "stop": 0.8, "over": 7, "unit": "iterations"},
    "trains": ["W*", "b_vocab"],
}


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, SAMPLED], ids=["dropout", "scheduled sampling, frozen biases"])
def test_resumes_with_noise_bit_for_bit(options, tmp_path):
    options = OPTIONS | options

    def new():
        data = make_data()
        return make_model(data, word_dropout=0.3, output_dropout=0.3, feature_dropout=0.1), data

    reference = Solver(*new(), **options)
    reference.train()

    model, data = new()
    stopped = Solver(model, data, run_dir=tmp_path, checkpoint_every=1, **options)
    batch, taken = data.batch, []

    def failing(split, indices):
        taken.extend([split] * (split == "train"))
        if len(taken) == 6:
            raise OSError("the disk is gone")
        return batch(split, indices)

    data.batch = failing
    with pytest.raises(OSError, match="the disk is gone"):
        stopped.train()

    resumed = Solver.resume(tmp_path, *new())
    assert len(resumed.loss_history) == 5
    resumed.train()
    assert resumed.loss_history == reference.loss_history
    for column in ("val_loss", "sampling"):
        assert [row.get(column) for row in resumed.history] == [row.get(column) for row in reference.history]
    np.testing.assert_array_equal(resumed.model.params.flat, reference.model.params.flat)

    best = load_model(tmp_path / "best.h5")
    assert type(best) is CaptioningRNN
    np.testing.assert_array_equal(best.params.flat, resumed.model.params.flat)
    features = data.splits["val"].features
    np.testing.assert_array_equal(best.sample(features), resumed.model.sample(features))
    assert load_checkpoint(tmp_path / "best.h5").vocabulary == data.vocabulary.idx_to_word


def test_features_read_lazily_by_another_thread(tmp_path):
    path = tmp_path / "features.h5"
    with h5py.File(path, "w") as file:
        file["features"] = np.random.default_rng(5).standard_normal((IMAGES, 10)).astype(np.float32)

    def train(prefetch):
        data = make_data()
        features = LazyFeatures(path, cache_bytes=4 * 10 * 4)  # four images
        splits = {name: replace(split, features=features) for name, split in data.splits.items()}
        model = make_model(data, output_dropout=0.3)
        lazy = CaptionData(data.vocabulary, splits)
        assert (data.in_memory, lazy.in_memory) == (True, False)
        solver = Solver(model, lazy, prefetch=prefetch, **OPTIONS)
        solver.train()
        return solver

    one, other = train(0), train(3)
    assert one.loss_history == other.loss_history
    assert [row["val_loss"] for row in one.history] == [row["val_loss"] for row in other.history]
    np.testing.assert_array_equal(one.model.params.flat, other.model.params.flat)


@pytest.mark.parametrize("loss_average", ["batch", "token"])
def test_training_loss_per_token_is_on_the_scale_of_validation(loss_average):
    data = make_data(["train"])
    model = make_model(data, loss_average=loss_average)
    still = {"update_rule": "sgd", "optim_config": {"learning_rate": 1e-9}}
    solver = Solver(model, data, num_epochs=1, batch_size=5, verbose=False, **still)
    solver.train()
    expected = validation_loss(model, data, 64, "train")["train_loss"]
    assert solver.history[0]["train_loss_per_token"] == pytest.approx(expected, rel=1e-5)


def test_validation_loss_is_that_of_the_model(tmp_path):
    data = make_data()
    model = make_model(data)
    solver = Solver(model, data, restore_best=False, **OPTIONS)
    solver.train()
    split = data.splits["val"]
    nats, tokens = model.nll(split.features, split.captions)
    assert solver.history[-1]["val_loss"] == pytest.approx(nats / tokens, rel=1e-5)


# ------------------------------------------------------------------ several captions of each image


def grouped_data(regions=0, images=7):
    """Images with one to five captions each; ``regions`` vectors each, or one if it is 0."""
    rng = np.random.default_rng(19)
    vocabulary, made = Vocabulary([f"word{i}" for i in range(20)]), {}
    for name in ("train", "val"):
        image_idxs = np.repeat(np.arange(images), 1 + np.arange(images) % 5)
        sentences = [list(rng.choice(vocabulary.idx_to_word[4:], rng.integers(2, 7))) for _ in image_idxs]
        made[name] = CaptionSplit(
            features=rng.standard_normal((images, *(regions,) * bool(regions), 10)).astype(np.float32),
            captions=np.stack([vocabulary.encode(sentence, LENGTH) for sentence in sentences]),
            image_idxs=image_idxs,
            names=tuple(f"{name}{i}.jpg" for i in range(images)),
            references=[["a"]] * images,
        )
    return CaptionData(vocabulary, made)


class Ungrouped:
    """The captions of the same batches, each with the features of its image."""

    def __init__(self, groups, data):
        self._groups, self.splits, self.num_tokens = groups, data.splits, data.num_tokens
        self.batch = data.batch

    def epoch(self, split, batch_size, rng):
        return [indices.ravel() for indices in self._groups.epoch(split, batch_size, rng)]


REVIEWED = {
    "attention": "additive",
    "reviewer": {"blocks": 2, "steps": 2},
    "doubly_stochastic": 0.2,
    "discriminative": 0.1,
}
TERMS = {"doubly_stochastic", "discriminative", "reconstruction"}
GROUPED = [
    ({}, {}),
    (REVIEWED, {"scheduled_sampling": {"name": "constant", "value": 0.5}}),
    (REVIEWED | {"loss_average": "token", "reconstruction": 0.2}, {"accumulate": 2}),
    ({"label_smoothing": 0.1}, {"accumulate": 9}),
]


@pytest.mark.parametrize(("model", "options"), GROUPED)
def test_captions_of_an_image_train_as_those_of_copies_of_it(model, options):
    data = grouped_data(3 if "attention" in model else 0)
    groups, trained = CaptionGroups(data, 3), []
    for each in (groups, Ungrouped(groups, data)):
        solver = Solver(
            make_model(data, dtype="float64", **model),
            each,
            **({"update_rule": "sgd", "clip_norm": 1.0} | OPTIONS | {"batch_size": 4} | options),
        )
        solver.train()
        trained.append(solver)
    grouped, flat = trained
    assert len(grouped.loss_history) == OPTIONS["num_epochs"] * 2  # 7 images
    np.testing.assert_allclose(grouped.loss_history, flat.loss_history, rtol=1e-10)
    np.testing.assert_allclose(grouped.model.params.flat, flat.model.params.flat, rtol=1e-8, atol=1e-12)
    for found, expected in zip(grouped.history, flat.history, strict=True):
        for column in (
            "train_loss",
            "train_loss_per_token",
            "gradient_norm",
            "val_loss",
            *TERMS & set(model),
        ):
            assert found[column] == pytest.approx(expected[column], rel=1e-6)
        tokens = [row["tokens_per_second"] * row["seconds"] for row in (found, expected)]
        assert tokens[0] == pytest.approx(tokens[1])


def test_a_column_of_the_history_is_the_mean_of_a_term_of_the_loss():
    data = grouped_data(3)
    model = make_model(data, dtype="float64", **REVIEWED, reconstruction=0.3)
    solver = Solver(
        model,
        data,
        update_rule="sgd",
        optim_config={"learning_rate": 1e-14},
        **(OPTIONS | {"batch_size": 6}),
    )
    solver.train()  # of 18 captions: batches of one size
    model.loss(*data.batch("train", np.arange(18)))
    for row in solver.history:
        assert {name: row[name] for name in TERMS} == pytest.approx(model.last_terms, rel=1e-9)


def test_a_term_of_the_loss_falls_where_it_has_a_weight():
    data, columns = grouped_data(3), []
    for weight in (1e-6, 5.0):
        options = REVIEWED | {"discriminative": weight, "doubly_stochastic": 0.0}
        fast = {"num_epochs": 6, "optim_config": {"learning_rate": 2e-2}}
        solver = Solver(make_model(data, **options), data, **(OPTIONS | fast))
        solver.train()
        assert TERMS & set(solver.history[0]) == {"discriminative"}
        columns.append([row["discriminative"] for row in solver.history])
    assert columns[1][-1] < 0.7 * columns[0][-1]
    assert columns[1][-1] < 0.7 * columns[1][0]


def count_reviews(model, monkeypatch):
    """The numbers of images of each call of the model's reviewer, from now on."""
    rows, forward = [], model.reviewer.forward

    def counted(params, source, **options):
        rows.append(len(source.memory))
        return forward(params, source, **options)

    monkeypatch.setattr(model.reviewer, "forward", counted)
    return rows


@pytest.mark.parametrize("captions_per_image", [1, 3, 8])
@pytest.mark.parametrize("model", [{}, REVIEWED], ids=["one vector", "reviewer"])
def test_validation_by_images_is_that_by_captions(model, captions_per_image):
    data = grouped_data(3 if model else 0, images=11)
    model, groups = make_model(data, dtype="float64", **model), CaptionGroups(data, captions_per_image)
    found = validation_loss(model, groups, 2)
    assert found == pytest.approx(validation_loss(model, data, 7), rel=1e-12)


def test_an_image_is_reviewed_once_for_its_captions(monkeypatch):
    data = grouped_data(3, images=5)
    model = make_model(data, **REVIEWED)
    rows = count_reviews(model, monkeypatch)
    options = {"num_epochs": 1, "batch_size": 2, "evaluate": lambda model: {"val_loss": 1.0}}
    Solver(model, CaptionGroups(data, 5), verbose=False, **options).train()
    assert rows == [2, 2, 1]
    rows.clear()
    Solver(model, data, verbose=False, **options).train()
    assert sum(rows) == 15  # once for each caption
    rows.clear()
    validation_loss(model, CaptionGroups(data, 5), 2)
    assert sum(rows) == 5


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"accumulate": 2} | SAMPLED], ids=["dropout", "scheduled sampling"])
def test_groups_of_captions_resume_bit_for_bit(options, tmp_path):
    options = OPTIONS | {"batch_size": 2} | options

    def new(captions_per_image=2):
        data = grouped_data(3)
        model = make_model(data, feature_dropout=0.1, output_dropout=0.3, **REVIEWED)
        return model, CaptionGroups(data, captions_per_image)

    reference = Solver(*new(), **options)
    reference.train()
    model, data = new()
    stopped, batch, taken = (
        Solver(model, data, run_dir=tmp_path, checkpoint_every=1, **options),
        data.batch,
        [],
    )

    def failing(split, indices):
        taken.extend([split] * (split == "train"))
        if len(taken) == 6 * stopped.options.accumulate + 1:  # the seventh batch, in the second epoch
            raise OSError("the disk is gone")
        return batch(split, indices)

    data.batch = failing
    with pytest.raises(OSError, match="the disk is gone"):
        stopped.train()
    with pytest.raises(CheckpointError, match="fingerprint: captions per image: found 2, expected 3"):
        Solver.resume(tmp_path, *new(3))
    resumed = Solver.resume(tmp_path, *new())
    assert len(resumed.loss_history) == 6
    resumed.train()
    assert resumed.loss_history == reference.loss_history
    np.testing.assert_array_equal(resumed.model.params.flat, reference.model.params.flat)
    for column in ("doubly_stochastic", "discriminative"):
        assert [row[column] for row in resumed.history] == [row[column] for row in reference.history]


@pytest.mark.slow
def test_graphs_train_on_groups_of_captions(device):
    data = grouped_data(3)
    trained = []
    for graphs in (False, True):
        solver = Solver(
            make_model(data, dtype="float64", **REVIEWED),
            CaptionGroups(data, 3),
            **(OPTIONS | {"batch_size": 4, "device": "gpu", "graphs": graphs, "accumulate": 2}),
        )
        solver.train()
        trained.append(solver)
    np.testing.assert_allclose(trained[1].loss_history, trained[0].loss_history, rtol=1e-9)
    on_cpu = Solver(
        make_model(data, dtype="float64", **REVIEWED), CaptionGroups(data, 3), **(OPTIONS | {"batch_size": 4})
    )
    on_cpu.train()
    np.testing.assert_allclose(trained[1].loss_history, on_cpu.loss_history, rtol=1e-8)
    for column in ("doubly_stochastic", "discriminative"):
        columns = [[row[column] for row in solver.history] for solver in (*trained, on_cpu)]
        np.testing.assert_allclose(columns[:2], [columns[2]] * 2, rtol=1e-8)
