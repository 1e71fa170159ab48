"""Labelled images from files to scores: a model learns which digit is which, and all commands know it."""

import csv
import json
import os
import struct

import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.data.pixels import PixelSplit
from rnnlab.recipes.recipe import load_recipe, recipe_from_dict
from rnnlab.recipes.tables import ClassificationEvaluationTable, DecodingTable
from rnnlab.training import load_checkpoint

pytestmark = pytest.mark.usefixtures("no_pictures")

RECIPE = """
[data]
kind = "mnist"
directory = "{directory}"
num_val = 30
permute_seed = 1
[model]
cell_type = "gru"
hidden_dim = 12
output_dropout = 0.1
[training]
num_epochs = 3
batch_size = 16
optim_config.learning_rate = 2e-2
monitor = "val_accuracy"
[evaluation]
split = "test"
"""


def idx(array):
    array = array.astype(np.uint8)
    return struct.pack(f">{1 + array.ndim}I", 0x0800 | array.ndim, *array.shape) + array.tobytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of 3 x 3 pixels, of ten classes: the number of its class is how much is bright."""
    rng, folder = np.random.default_rng(1), tmp_path_factory.mktemp("counts")
    for stem, count in (("train", 330), ("t10k", 40)):
        labels = rng.integers(0, 10, count)
        order = rng.permuted(np.tile(np.arange(9), (count, 1)), axis=1)
        images = np.where(order < labels[:, None], 255, 0).reshape(count, 3, 3)
        (folder / f"{stem}-images-idx3-ubyte").write_bytes(idx(images))
        (folder / f"{stem}-labels-idx1-ubyte").write_bytes(idx(labels))
    return folder


@pytest.fixture(scope="module")
def file(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipes") / "counts.toml"
    path.write_text(RECIPE.format(directory=folder))
    return path


# ---------------------------------------------------------------- learning


@pytest.mark.slow
def test_a_few_epochs_over_the_digits(tmp_path):
    pytest.importorskip("sklearn")
    recipe = load_recipe("digits_lstm", ["training.num_epochs=8"])
    run = runs.train(recipe, tmp_path / "run", progress=False)
    assert runs.evaluate(run).accuracy > 0.6


@pytest.mark.long
def test_the_recipe_of_the_digits(tmp_path):
    pytest.importorskip("sklearn")
    recipe = load_recipe("digits_lstm")
    run = runs.train(recipe, tmp_path / "run", progress=False)
    assert runs.evaluate(run, "val").accuracy > 0.92
    assert runs.evaluate(run, "test").accuracy > 0.9


@pytest.mark.slow
@pytest.mark.skipif("RNNLAB_DATA" not in os.environ, reason="RNNLAB_DATA names no folder of real data")
def test_a_step_on_real_digits():
    recipe = load_recipe("pmnist_lstm", ["model.hidden_dim=4"])
    data = runs.open_data(recipe.data)
    model = runs.new_model(recipe, data)
    batch = data.batch("train", data.epoch("train", 4, np.random.default_rng(0))[0])
    assert model.loss(*batch)[0] == pytest.approx(np.log(10), rel=0.3)


# ---------------------------------------------------------------- runs


@pytest.mark.slow
def test_a_run_has_the_files_and_metrics_of_every_run(run):
    checkpoints = {"best.h5", "best.previous.h5", "last.h5", "last.previous.h5"}
    assert {path.name for path in run.iterdir()} == checkpoints | {
        ".lock",
        "config.json",
        "history.csv",
        "loss.png",
    }
    rows = list(csv.DictReader((run / "history.csv").read_text().splitlines()))
    assert float(rows[-1]["val_loss"]) < float(rows[0]["val_loss"])
    best = max(float(row["val_accuracy"]) for row in rows)
    assert runs.evaluate(runs.load_run(run), "val").accuracy == best > 0.2


@pytest.mark.slow
def test_a_resumed_run_ends_where_an_unbroken_one_does(file, run, tmp_path):
    broken = tmp_path / "broken"
    assert cli.main(["train", str(file), "--out", str(broken), "--epochs", "1", "--no-progress"]) == 0
    assert cli.main(["train", "--resume", str(broken), "--epochs", "3", "--no-progress"]) == 0
    one, other = (load_checkpoint(path / "last.h5") for path in (run, broken))
    np.testing.assert_array_equal(one.parameters.flat, other.parameters.flat)


def test_scores_by_hand(run):
    opened = runs.load_run(run)
    found = runs.evaluate(opened)
    assert found.statistics()["accuracy"].examples.mean() == found.accuracy
    x, labels = opened.data.batch("test", np.arange(40))
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.predictions, opened.model.predict(x))
    assert found.accuracy == np.mean(found.predictions == labels)
    nats, count = opened.model.nll(x, labels)
    assert found.loss == pytest.approx(nats / count, rel=1e-5)
    assert found.confusion.sum() == 40
    assert found.confusion.trace() == round(40 * found.accuracy)
    few = runs.evaluate(opened, "val", evaluation=ClassificationEvaluationTable(max_images=17))
    np.testing.assert_array_equal(few.labels, opened.data.split("val").labels[:17])


def test_an_empty_split(run):
    opened = runs.load_run(run)
    opened.data.splits["val"] = PixelSplit(np.zeros((0, 49), np.uint8), np.zeros(0, np.int64))
    with pytest.raises(ValueError, match="evaluate: val is empty, expected at least one image"):
        runs.evaluate(opened, "val")


def test_the_permutation_belongs_to_the_run(run, file):
    opened = runs.load_run(run)
    assert opened.data.permute_seed == 1
    other = load_recipe(file, ["data.permute_seed=2"])
    assert (runs.open_data(other.data).permutation != opened.data.permutation).any()


def test_a_warm_start(file, run, tmp_path, capsys):
    options = ["--set", f"training.warm_start={run}", "--epochs", "1"]
    assert cli.main(["train", str(file), "--out", str(tmp_path / "warm"), "--no-progress", *options]) == 0
    assert "5 parameters loaded" in capsys.readouterr().out


# ---------------------------------------------------------------- commands


def test_training_ends_with_scores_and_what_is_confused(file, tmp_path, capsys):
    assert cli.main(["train", str(file), "--out", str(tmp_path / "run"), "--epochs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "Scores of the test split:" in printed
    assert "accuracy" in printed
    assert "columns: predicted" in printed
    assert str(tmp_path / "run" / "loss.png") in printed


def test_evaluation_prints_a_table_and_writes_json(run, tmp_path, capsys):
    path = tmp_path / "scores.json"
    options = ["--split", "val", "--max-images", "20", "--json", str(path)]
    assert cli.main(["evaluate", str(run), *options]) == 0
    printed, written = capsys.readouterr().out, json.loads(path.read_text())
    assert f"{written['corpus']['accuracy']:.4f}" in printed
    assert written["split"] == "val"
    labels, predictions = np.array(written["labels"]), np.array(written["predictions"])
    assert len(labels) == 20
    assert written["corpus"]["accuracy"] == np.mean(labels == predictions)
    assert np.sum(written["confusion"]) == 20


def test_data_are_described(file, capsys):
    assert cli.main(["data", "info", str(file), "--set", "data.max_train=70"]) == 0
    printed = capsys.readouterr().out
    assert "3 x 3 images, 9 pixels each, permuted with seed 1" in printed
    assert "70" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["caption", "RUN", "val"], "holds a model that classifies: rnnlab evaluate"),
        (["translate", "RUN", "a"], "holds a model that classifies: rnnlab evaluate"),
        (["lexicon", "RUN", "x.tsv"], "holds a model that classifies: rnnlab evaluate"),
        (
            ["evaluate", "RUN", "--metrics", "BLEU"],
            "--metrics BLEU is for captions and translations, but the model of",
        ),
        (["evaluate", "RUN", "--lexicon", "x"], "--lexicon is for translations, but the model of"),
        (
            ["evaluate", "RUN", "--beam", "3"],
            "--beam is for scores of captions and translations, which need a search, but the",
        ),
        (["evaluate", "RUN", "--split", "dev"], "has the splits train, val, test, not 'dev'"),
        (
            ["train", "RECIPE", "--set", "training.scheduled_sampling={name='constant', value=0.2}"],
            "training.scheduled_sampling is for models that write sentences",
        ),
        (["train", "RECIPE", "--set", "training.monitor=CIDEr"], "expected one of val_loss, val_accuracy"),
        (
            ["train", "RECIPE", "--set", "model.forget_bias=1", "--out", "OUT"],
            "cell 'gru' has no forget gate",
        ),
        (
            ["train", "RECIPE", "--set", "data.num_val=330", "--out", "OUT"],
            "num_val is 330, expected at least",
        ),
        (["train", "RECIPE", "--set", "data.directory=nowhere", "--out", "OUT"], "nowhere: found no such"),
    ],
)
def test_errors_name_what_is_wrong(arguments, message, run, file, tmp_path, capsys):
    places = {"RUN": str(run), "RECIPE": str(file), "OUT": str(tmp_path / "out")}
    assert cli.main([places.get(argument, argument) for argument in arguments]) == 2
    assert message in capsys.readouterr().err


def test_there_is_nothing_to_search_for(run):
    with pytest.raises(ValueError, match="decoding is given, but the scores of a model that classifies need"):
        runs.evaluate(runs.load_run(run), decoding=DecodingTable())


def test_recipes_of_the_digits(tmp_path):
    pytest.importorskip("sklearn")
    tables = {"data": {"kind": "digits", "permute_seed": 3, "max_train": 40}, "model": {"hidden_dim": 2}}
    recipe = recipe_from_dict(tables)
    data = runs.open_data(recipe.data)
    assert (len(data.split("train")), data.permute_seed) == (40, 3)
    assert runs.new_model(recipe, data).params["Wx"].shape == (1, 8)
