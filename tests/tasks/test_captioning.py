"""Captioning: inputs from the run alone, splits, and failures before training or decoding."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from rnnlab import cli, metrics, runs
from rnnlab.data import CaptionData, write_shapes
from rnnlab.errors import MissingDataError
from rnnlab.metrics import JavaError
from rnnlab.recipes.recipe import load_recipe, recipe_from_dict
from rnnlab.recipes.tables import CaptioningEvaluationTable, DecodingTable
from rnnlab.tasks import captioning
from rnnlab.tasks.captioning import CaptioningTask, check_features
from rnnlab.tasks.search import decode
from rnnlab.training import CheckpointError, load_checkpoint

pytestmark = pytest.mark.usefixtures("no_pictures")

SIZES = {"train": 40, "val": 12, "test": 10}


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, SIZES)
    return folder


def saved_recipe(folder, **tables):
    data = {"kind": "course", "directory": str(folder), "max_train": 60} | tables.pop("data", {})
    model = {"cell_type": "lstm", "wordvec_dim": 8, "hidden_dim": 12} | tables.pop("model", {})
    training = {"num_epochs": 1, "batch_size": 20} | tables.pop("training", {})
    decoding = {"method": "greedy", "max_length": 6}
    evaluation = {"metrics": ["BLEU"]} | tables.pop("evaluation", {})
    return recipe_from_dict(
        {"data": data, "model": model, "training": training, "decoding": decoding, "evaluation": evaluation}
        | tables
    )


@pytest.fixture(scope="module")
def run(shapes, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "course"
    return runs.train(saved_recipe(shapes), out, progress=False)


# ------------------------------------------------------------------ inputs from the run alone


@pytest.mark.slow
def test_captions_need_the_run_alone(run, shapes, tmp_path, monkeypatch):
    """Scaling and vocabulary are the checkpoint's, and the captions are those with the data."""
    with h5py.File(tmp_path / "new.h5", "w") as file:
        file["features"] = CaptionData.from_course(shapes, standardise=False).split("test").features
        file["filenames"] = [f"{k}.png" for k in range(SIZES["test"])]
    monkeypatch.setattr("rnnlab.runs.loading.open_data", None)
    alone = runs.load_run(run.directory, with_data=False)
    with h5py.File(tmp_path / "new.h5") as file:
        features = alone.inputs.standardise(file["features"][()], "new.h5")
    np.testing.assert_allclose(features, run.data.split("test").features, rtol=1e-5, atol=1e-6)
    assert alone.inputs.vocabulary == run.data.vocabulary == run.inputs.vocabulary
    found = decode(alone.model, features, DecodingTable(method="greedy"))
    assert found == decode(run.model, run.data.split("test").features, DecodingTable(method="greedy"))
    assert cli.main(["caption", str(run.directory), str(tmp_path / "new.h5")]) == 0


def test_a_wrong_width_names_the_file(run, tmp_path, capsys):
    with h5py.File(tmp_path / "narrow.h5", "w") as file:
        file["features"], file["filenames"] = np.ones((2, 5)), ["a.png", "b.png"]
    assert cli.main(["caption", str(run.directory), str(tmp_path / "narrow.h5")]) == 2
    printed = capsys.readouterr().err
    assert f"{tmp_path / 'narrow.h5'}: features: found shape (2, 5), expected (..., 39) as" in printed


def test_data_of_another_scaling_or_vocabulary(run, shapes, tmp_path, monkeypatch):
    spoiled = tmp_path / "spoiled"
    shutil.copytree(shapes, spoiled)
    with h5py.File(next(spoiled.glob("train*pca.h5")), "a") as file:
        file["features"][...] *= 2
    monkeypatch.setattr("rnnlab.runs.loading.open_data", lambda table: CaptionData.from_course(spoiled))
    with pytest.raises(CheckpointError, match="preprocessing: features_mean: found .* as the data"):
        runs.load_run(run.directory)
    with pytest.raises(CheckpointError, match="preprocessing: features_mean"):
        runs.resume(run.directory, num_epochs=2, progress=False)


def test_parameters_scaling_and_fingerprint_are_in_the_checkpoint(run):
    checkpoint = load_checkpoint(run.directory)
    assert set(checkpoint.preprocessing) == {"features_mean", "features_std", "tokenizer"}
    assert checkpoint.fingerprint == run.data.fingerprint()


# ------------------------------------------------------------------ several captions of each image


@pytest.mark.slow
def test_a_recipe_trains_on_images_with_several_captions(shapes, tmp_path):
    """In two stages, resumed, with lazy features of two kinds."""
    pytest.importorskip("pycocoevalcap")
    data = {"captions_per_image": 5, "features": "local", "global_features": "pca", "lazy": True}
    training = {"batch_size": 16, "checkpoint_every": 1}
    tables = saved_recipe(
        shapes, data=data | {"max_train": None}, model={"attention": "additive"}, training=training
    ).to_dict()
    tables["stage"] = [{"num_epochs": 1}, {"num_epochs": 2, "trains": ["W_vocab"]}]
    run = runs.train(recipe_from_dict(tables), tmp_path / "run", progress=False)
    first, last = (load_checkpoint(tmp_path / "run" / name) for name in ("stage1/last.h5", "last.h5"))
    assert (len(first.losses), len(last.losses)) == (3, 6)  # 40 images
    assert last.fingerprint["captions per image"] == "5"

    tables["stage"][1]["num_epochs"] = 1
    runs.train(recipe_from_dict(tables), tmp_path / "shorter", progress=False)
    resumed = runs.resume(tmp_path / "shorter", num_epochs=2, progress=False)
    np.testing.assert_array_equal(resumed.model.params.flat, run.model.params.flat)

    opened = runs.load_run(run.directory)
    batch = opened.data.batch("val", np.arange(60))
    nats, tokens = opened.model.nll(*batch)
    assert min(row["val_loss"] for row in last.history) == pytest.approx(nats / tokens, rel=1e-5)
    assert runs.evaluate(opened, "val").perplexity == pytest.approx(np.exp(nats / tokens), rel=1e-5)


def test_an_image_is_validated_once_beside_scores_of_each_epoch(shapes, monkeypatch):
    pytest.importorskip("pycocoevalcap")
    evaluation = {"metrics": ["BLEU"], "each_epoch": ["BLEU"], "max_images": 3}
    recipe = saved_recipe(shapes, data={"captions_per_image": 5}, evaluation=evaluation)
    data = runs.open_data(recipe.data)
    model = runs.new_model(recipe, data)
    nats, tokens = model.nll(*data.batch("val", np.arange(60)))
    batches, nll = [], model.nll
    monkeypatch.setattr(model, "nll", lambda *batch: batches.append(batch) or nll(*batch))
    found = CaptioningTask().epoch_scores(recipe, data)(model)
    assert sum(len(features) for features, _ in batches) == SIZES["val"]
    assert found["val_loss"] == pytest.approx(nats / tokens, rel=1e-6)
    assert {"val_perplexity", "BLEU-4"} < set(found)


@pytest.mark.parametrize("is_greedy", [False, True])
def test_captions_of_each_epoch_by_the_search_of_the_recipe_or_greedily(is_greedy, shapes, monkeypatch):
    pytest.importorskip("pycocoevalcap")
    evaluation = {"each_epoch": ["BLEU"], "each_epoch_greedy": is_greedy, "max_images": 3}
    decoding = {"beam_size": 2, "length_penalty": 0.7, "max_length": 5}
    recipe = saved_recipe(shapes, evaluation=evaluation, decoding=decoding)
    data, used = runs.open_data(recipe.data), []
    monkeypatch.setattr(captioning, "decode", lambda *args, **options: used.append(args[2]) or [[]] * 3)
    monkeypatch.setattr(captioning, "written", lambda *_: ["a star"] * 3)
    CaptioningTask().epoch_scores(recipe, data)(runs.new_model(recipe, data))
    (table,) = used
    expected = ("greedy", 3, 5) if is_greedy else ("beam", 2, 5)
    assert (table.method, table.beam_size, table.max_length) == expected


# ------------------------------------------------------------------ features before PCA


def test_features_before_pca_are_described(tmp_path, capsys):
    """``data prepare`` without ``--pca``, then ``data info``, and a recipe that asks for the other kind."""
    images = [
        {"filename": f"{k}.jpg", "split": split, "sentences": [{"raw": "a dog runs"}]}
        for k, split in enumerate(["train"] * 6 + ["val"] * 2)
    ]
    (tmp_path / "dataset.json").write_text(json.dumps({"images": images}))
    with h5py.File(tmp_path / "features.h5", "w") as file:
        file["features"], file["filenames"] = np.eye(8, 5), [f"{k}.jpg" for k in range(8)]
    files = ["--karpathy", str(tmp_path / "dataset.json"), "--features", str(tmp_path / "features.h5")]
    out = tmp_path / "prepared"
    assert cli.main(["data", "prepare", *files, "--out", str(out), "--min-count", "1"]) == 0
    described = capsys.readouterr().out
    assert cli.main(["data", "info", str(out)]) == 0
    assert capsys.readouterr().out == described
    with pytest.raises(
        FileNotFoundError, match="expected features of kind 'pca': set data.features to 'full'"
    ):
        CaptionData.from_course(out)


# ------------------------------------------------------------------ what fails early


@pytest.mark.parametrize(
    ("model", "features", "message"),
    [
        ({"attention": "additive"}, "pca", "model.attention is 'additive', and data.features has one vector"),
        ({}, "local", r"data.features has a grid of shape \(36, 32\) .* model.attention"),
    ],
)
def test_files_of_features_that_do_not_fit_the_model(shapes, model, features, message, tmp_path, monkeypatch):
    data = CaptionData.from_course(shapes, features=features)
    monkeypatch.setattr("rnnlab.runs.training.open_data", lambda table: data)
    files = {"kind": "karpathy", "annotations": "dataset.json", "features": "features.h5"}
    recipe = recipe_from_dict({"data": files, "model": model})
    with pytest.raises(ValueError, match=message):
        runs.train(recipe, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_global_features_of_a_model_that_does_not_attend():
    files = {"kind": "karpathy", "annotations": "a.json", "features": "f.h5", "global_features": "g.h5"}
    recipe = recipe_from_dict({"data": files})
    data = SimpleNamespace(feature_shape=(5,), num_global_features=4)
    with pytest.raises(ValueError, match=r"data\.global_features is set, which needs model\.attention"):
        check_features(recipe, data)


def test_data_without_a_test_split(shapes, tmp_path, monkeypatch):
    data = CaptionData.from_course(shapes, splits=["train", "val"])
    monkeypatch.setattr("rnnlab.runs.training.open_data", lambda table: data)
    with pytest.raises(
        MissingDataError, match="evaluation.split is 'test', and shapes has the splits train, val"
    ):
        runs.train(saved_recipe(shapes), tmp_path / "run", progress=False)


@pytest.mark.parametrize("split", ["test", "val"])
def test_an_image_that_has_no_reference_is_named_before_training(split, shapes, tmp_path, monkeypatch):
    data = CaptionData.from_course(shapes)
    references = [list(each) for each in data.split(split).references]
    references[1] = ["...", ""]
    data.splits[split] = replace(data.split(split), references=references)
    monkeypatch.setattr("rnnlab.runs.training.open_data", lambda table: data)
    name = data.split(split).names[1]
    with pytest.raises(ValueError, match=f"image {name} has no sentence with words, expected at least one"):
        runs.train(saved_recipe(shapes, evaluation={"split": split}), tmp_path / "run", progress=False)
    scored = saved_recipe(shapes, evaluation={"split": split, "max_images": 1})
    CaptioningTask().check_scorable(scored, data)
    assert not (tmp_path / "run").exists()


def test_self_critical_stages_need_references_of_all_training_images(shapes, tmp_path, monkeypatch):
    data = CaptionData.from_course(shapes)
    references = [list(each) for each in data.split("train").references]
    references[3] = [" "]
    data.splits["train"] = replace(data.split("train"), references=references)
    monkeypatch.setattr("rnnlab.runs.training.open_data", lambda table: data)
    stages = [{"num_epochs": 1}, {"num_epochs": 1, "monitor": "CIDEr", "self_critical": {"samples": 2}}]
    recipe = saved_recipe(shapes, stage=stages, evaluation={"metrics": ["CIDEr"], "each_epoch": ["CIDEr"]})
    name = data.split("train").names[3]
    with pytest.raises(ValueError, match=f"image {name} has no sentence with words, expected at least one"):
        runs.train(recipe, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_a_validation_split_without_captions(shapes, tmp_path, monkeypatch):
    data = CaptionData.from_course(shapes)
    val = data.split("val")
    data.splits["val"] = replace(val, captions=val.captions[:0], image_idxs=val.image_idxs[:0])
    monkeypatch.setattr("rnnlab.runs.training.open_data", lambda table: data)
    with pytest.raises(ValueError, match="the split val has .* images and no captions, expected captions to"):
        runs.train(saved_recipe(shapes), tmp_path / "run", progress=False)


@pytest.fixture
def no_java(monkeypatch):
    monkeypatch.setattr(metrics.java.shutil, "which", lambda program: None)


def test_meteor_of_each_epoch_needs_java_before_training(shapes, tmp_path, no_java):
    pytest.importorskip("pycocoevalcap")
    tables = {"training": {"monitor": "METEOR"}, "evaluation": {"each_epoch": ["METEOR"]}}
    with pytest.raises(JavaError, match="METEOR, in evaluation.each_epoch, needs Java"):
        runs.train(saved_recipe(shapes, **tables), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_a_metric_of_each_epoch_that_fails_is_named(shapes, monkeypatch, capsys):
    pytest.importorskip("pycocoevalcap")
    monkeypatch.setattr(captioning, "check_java", lambda who: None)

    def broken(*sentences):
        raise JavaError("METEOR ended")

    monkeypatch.setitem(metrics.captions._SCORERS, "METEOR", broken)
    recipe = saved_recipe(shapes, evaluation={"each_epoch": ["BLEU", "METEOR"]})
    data = runs.open_data(recipe.data)
    found = CaptioningTask().epoch_scores(recipe, data)(runs.new_model(recipe, data))
    assert "METEOR" not in found
    assert capsys.readouterr().err == "note: METEOR is left out: METEOR ended\n"


def test_the_ptb_tokenizer_needs_java_before_decoding(run, monkeypatch, no_java):
    pytest.importorskip("pycocoevalcap")
    monkeypatch.setattr("rnnlab.tasks.captioning.decode", None)
    with pytest.raises(JavaError, match='evaluation.tokenizer = "ptb" needs Java'):
        runs.evaluate(run, evaluation=CaptioningEvaluationTable(tokenizer="ptb"))


def test_scores_name_split_and_tokenizer(run):
    pytest.importorskip("pycocoevalcap")
    found = runs.evaluate(run)
    assert found.split == "test"
    assert found.notes()[0].startswith("tokenizer: simple")
    assert found.report()["tokenizer"] == "simple"
    assert any("chosen on val" in note for note in runs.evaluate(run, "val").notes())


def test_unknown_words_of_captions_match_no_word_of_references():
    """References that are decoded from tokens have <UNK> where the vocabulary has no word."""
    pytest.importorskip("pycocoevalcap")
    references = [["a dog in the <UNK>", "a <UNK> dog"], ["the red cat"]]
    with_unknown, other = (
        captioning._scores([f"a dog in the {word}", "the red cat"], references, ["BLEU", "CIDEr"]).corpus
        for word in ("<UNK>", "zebra")
    )
    assert with_unknown == other
    (note,) = captioning._unknown_words(references)
    assert note.startswith("2 of 3 references have <UNK> for a rare word")
    assert captioning._unknown_words(references[1:]) == []


# ------------------------------------------------------------------ COCO


@pytest.mark.skipif("RNNLAB_DATA" not in os.environ, reason="RNNLAB_DATA names no folder of real data")
def test_the_recipe_of_coco(tmp_path, monkeypatch):
    """Two updates of a small model on COCO's own captions, with drawn features."""
    coco = Path(os.environ["RNNLAB_DATA"]) / "coco_mini"
    names = [
        image["file_name"]
        for split in ("train", "val")
        for image in json.loads((coco / f"captions_{split}2017.json").read_text())["images"]
    ]
    (tmp_path / "coco").mkdir()
    for path in coco.glob("*.json"):
        (tmp_path / "coco" / path.name).symlink_to(path)
    with h5py.File(tmp_path / "coco" / "features_local.h5", "w") as file:
        file["features"] = np.random.default_rng(0).standard_normal((len(names), 4, 6)).astype(np.float32)
        file["filenames"] = names
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path))
    sizes = {"attention_dim": 5, "wordvec_dim": 6, "hidden_dim": 7}
    changes = [f"model.{name}={size}" for name, size in sizes.items()]
    changes += ["training.num_epochs=1", "evaluation.each_epoch=[]", "training.monitor=val_loss"]
    recipe = load_recipe("coco_soft_attention", [*changes, "data.max_train=200"])
    run = runs.train(recipe, tmp_path / "run", progress=False)
    assert {name: split.num_images for name, split in run.data.splits.items()} == {"train": 80, "val": 79}
    found = decode(run.model, run.data.split("val").model_inputs, recipe.decoding, first=5)
    assert len(found) == 5
