"""The built-in data from end to end: a model learns to say what is in a picture, and needs it for that."""

import json
import shutil
from dataclasses import replace
from functools import partial

import h5py
import numpy as np
import pytest

from rnnlab import runs
from rnnlab.data import write_shapes
from rnnlab.ensembles import load_ensemble
from rnnlab.metrics.library import Library
from rnnlab.recipes.recipe import Config, EvaluationConfig
from rnnlab.tasks.search import decode
from rnnlab.training import validation_loss

TABLES = {
    "model": {
        "cell_type": "lstm",
        "wordvec_dim": 64,
        "hidden_dim": 96,
        "state_activation": "tanh",
        "project_cell": True,
    },
    "training": {"num_epochs": 6, "optim_config": {"learning_rate": 6e-3}, "clip_norm": 5.0},
    "decoding": {"method": "greedy", "max_length": 15},
    "evaluation": {"split": "test", "metrics": ["BLEU"]},
}


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, {"train": 700, "val": 60, "test": 150})
    return Config.from_dict({"data": {"kind": "shapes", "directory": str(folder)}, **TABLES})


@pytest.mark.slow
def test_every_kind_of_data_is_opened(config, tmp_path):
    path = config.data.directory
    images = [
        {
            "id": n,
            "file_name": f"{n}.jpg",
            "filename": f"{n}.jpg",
            "split": split,
            "sentences": [{"raw": "a"}],
        }
        for n, split in enumerate(["train", "val"])
    ]
    annotations = [{"image_id": n, "caption": "a"} for n in (0, 1)]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    with h5py.File(tmp_path / "features.h5", "w") as file:
        file["features"], file["filenames"] = np.eye(2, 3), ["0.jpg", "1.jpg"]
    captions, features = str(tmp_path / "captions.json"), str(tmp_path / "features.h5")
    for table, images_of_val in (
        ({"kind": "shapes", "directory": str(path)}, 60),
        ({"kind": "course", "directory": str(path), "lazy": True}, 60),
        ({"kind": "karpathy", "annotations": captions, "features": features}, 1),
        (
            {
                "kind": "coco",
                "annotations_train": captions,
                "annotations_val": captions,
                "features": features,
            },
            2,
        ),
    ):
        data = runs.open_data(Config.from_dict({"data": table}).data)
        assert data.split("val").num_images == images_of_val


def test_arguments_that_are_something_else(config, tmp_path):
    with pytest.raises(
        TypeError, match="train: config is 'shapes', expected a recipe, as load_config returns"
    ):
        runs.train("shapes", tmp_path / "run")
    with pytest.raises(
        TypeError, match="evaluate: run is 'runs/a', expected a Run, such as load_run returns"
    ):
        runs.evaluate("runs/a", "val")
    run = runs.Run(tmp_path, config, None, None)
    with pytest.raises(ValueError, match="was opened without its data"):
        runs.evaluate(run, "val")
    run = replace(run, data=runs.open_data(config.data))
    for name in ("decoding", "evaluation"):
        with pytest.raises(TypeError, match=f"evaluate: {name} is {{}}, expected a .*run.config.{name}[.,]"):
            runs.evaluate(run, "val", **{name: {}})


@pytest.mark.slow
def test_captions_need_the_picture(config, tmp_path, monkeypatch):
    pytest.importorskip("pycocoevalcap")
    seeing = runs.evaluate(runs.train(config, tmp_path / "seeing", progress=False))

    opened = runs.open_data

    def open_blind(table):
        data = opened(table)
        data.splits = {
            name: replace(split, features=np.zeros_like(split.features))
            for name, split in data.splits.items()
        }
        return data

    monkeypatch.setattr(runs, "open_data", open_blind)
    blind = runs.evaluate(runs.train(config, tmp_path / "blind", progress=False))
    assert seeing.perplexity < 0.75 * blind.perplexity
    assert seeing.scores.corpus["BLEU-4"] > blind.scores.corpus["BLEU-4"] + 0.15
    assert len(set(seeing.sentences)) > 50  # not the same caption for every image
    assert len(set(blind.sentences)) == 1


@pytest.mark.slow
def test_scores_of_each_epoch_steer_training(config, tmp_path):
    pytest.importorskip("pycocoevalcap")
    tables = config.to_dict()
    tables["training"] |= {"num_epochs": 2, "monitor": "BLEU-4"}
    tables["evaluation"] |= {"each_epoch": ["BLEU"]}
    runs.train(Config.from_dict(tables), tmp_path / "run", progress=False)
    header = (tmp_path / "run" / "history.csv").read_text().splitlines()[0]
    assert "BLEU-4" in header.split(",")
    run = runs.load_run(tmp_path / "run")
    assert run.config.training.monitor == "BLEU-4"
    assert runs.evaluate(run, "val", evaluation=EvaluationConfig(metrics=["BLEU"], max_images=5)).names == (
        "val_00000.png",
        "val_00001.png",
        "val_00002.png",
        "val_00003.png",
        "val_00004.png",
    )


def test_the_perplexity_is_that_of_the_images_that_are_scored(config, tmp_path):
    pytest.importorskip("pycocoevalcap")
    data = runs.open_data(config.data)
    run = runs.Run(tmp_path, config, data, runs.new_model(config, data))

    def perplexity(**options):
        options = EvaluationConfig(metrics=["BLEU"], **options)
        return runs.evaluate(run, "val", evaluation=options).perplexity

    expected = validation_loss(run.model, data, 64)["val_perplexity"]
    assert perplexity() == perplexity(max_images=1000) == pytest.approx(expected, rel=1e-6)
    val = data.split("val")
    nats, tokens = run.model.nll(np.repeat(val.features[:7], 5, axis=0), val.captions[:35])
    assert perplexity(max_images=7) == pytest.approx(np.exp(nats / tokens), rel=1e-6)
    data.splits["val"] = replace(val, captions=val.captions[-5:], image_idxs=val.image_idxs[-5:])
    with pytest.raises(ValueError, match="max_images: found no captions of the first 7 images of val"):
        perplexity(max_images=7)


def test_a_recipe_that_wants_scores_fails_before_training_without_the_extra(config, tmp_path, monkeypatch):
    def missing(_):
        raise ImportError('pip install "rnnlab[eval]"')

    tables = config.to_dict()
    tables["training"] |= {"monitor": "BLEU-4"}
    tables["evaluation"] |= {"each_epoch": ["BLEU"]}
    monkeypatch.setattr(Library, "require", missing)
    with pytest.raises(ImportError, match="rnnlab\\[eval\\]"):
        runs.train(Config.from_dict(tables), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_checkpoint_of_a_bare_solver_is_no_run(config, tmp_path):
    data = runs.open_data(config.data)
    model = runs.new_model(config, data)
    solver = runs.Solver(model, data, num_epochs=1, run_dir=tmp_path / "run", verbose=False)
    solver.train()
    with pytest.raises(ValueError, match="holds no recipe"):
        runs.load_run(tmp_path / "run")


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_forbidden_words_are_never_written(config, method):
    data = runs.open_data(config.data)
    model = runs.new_model(config, data)
    model.params["b_vocab"][:4] = 5.0  # an untrained model that loves the special words
    captions = decode(model, data.split("val").features[:20], config.decoding.changed(method=method))
    assert len(captions) == 20
    for (best,) in captions:
        assert not set(best.tokens) & {0, 1, 2, 3}


def test_a_checkpoint_makes_no_folder(config, tmp_path):
    """The built-in data are made where a recipe says, not where the checkpoint of a run does."""
    away = tmp_path / "far away" / "shapes"
    write_shapes(away, {"train": 30, "val": 5, "test": 5})
    tables = {"data": {"kind": "shapes", "directory": str(away)}, **TABLES}
    tables |= {"training": TABLES["training"] | {"num_epochs": 1}}
    runs.train(Config.from_dict(tables), tmp_path / "run", progress=False)
    shutil.rmtree(away.parent)
    message = (
        f"{away}: found no such folder, expected the built-in data of the run; rnnlab data info shapes --set "
        f"'data.directory={away}' makes them"
    )
    copy = shutil.copytree(tmp_path / "run", tmp_path / "copy")
    resume = partial(runs.resume, num_epochs=2, progress=False)
    for open_run in (runs.load_run, resume, lambda run: load_ensemble([run, copy])):
        with pytest.raises(FileNotFoundError, match=message):
            open_run(tmp_path / "run")
    assert not away.parent.exists()
    assert runs.load_run(tmp_path / "run", with_data=False).inputs.vocabulary


@pytest.mark.slow
def test_a_folder_of_runs_is_no_run_with_stages(config, tmp_path):
    """A run may have the name of a stage."""
    run = tmp_path / "experiments" / "stage1"
    runs.train(replace(config, training=config.training.with_changes(num_epochs=1)), run, progress=False)
    with pytest.raises(ValueError, match=f"{run} is a separate run, not a stage of one in .*: resume {run}$"):
        runs.resume(run.parent, num_epochs=2)


def test_a_relative_folder_is_one_of_the_current_folder(config, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    write_shapes("shapes", {"train": 30, "val": 5, "test": 5})
    tables = {"data": {"kind": "shapes", "directory": "shapes"}, **TABLES}
    tables |= {"training": TABLES["training"] | {"num_epochs": 1}}
    runs.train(Config.from_dict(tables), "run", progress=False)
    monkeypatch.chdir("elsewhere")
    message = (
        f"; the path is relative to the current folder, {tmp_path / 'elsewhere'}: go to the folder where"
    )
    with pytest.raises(FileNotFoundError, match=message):
        runs.load_run(tmp_path / "run")
