"""Runs, and data of every kind, are opened from where the recipe says."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

from rnnlab import runs
from rnnlab.data import write_shapes
from rnnlab.ensembles import load_ensemble
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.training import Solver
from rnnlab.training.monitor import MODES

from .. import quick_runs
from .conftest import TABLES


def test_repr_is_one_line(recipe):
    data = runs.open_data(recipe.data)
    run = runs.Run(Path("runs/one"), recipe, data, runs.new_model(recipe, data))
    assert repr(run) == f"Run('runs/one', model={run.model!r}, data={data!r})"
    assert "\n" not in repr(run)


@pytest.mark.slow
def test_every_kind_of_data_is_opened(recipe, tmp_path):
    path = recipe.data.directory
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
    for k, split in enumerate(("train", "val")):
        content = {"images": images[k : k + 1], "annotations": annotations[k : k + 1]}
        (tmp_path / f"{split}.json").write_text(json.dumps(content))
    with h5py.File(tmp_path / "features.h5", "w") as file:
        file["features"], file["filenames"] = np.eye(2, 3), ["0.jpg", "1.jpg"]
    captions, features = str(tmp_path / "captions.json"), str(tmp_path / "features.h5")
    for table, images_of_val in (
        ({"kind": "shapes", "directory": str(path)}, 20),
        ({"kind": "course", "directory": str(path), "lazy": True}, 20),
        ({"kind": "karpathy", "annotations": captions, "features": features}, 1),
        (
            {
                "kind": "coco",
                "annotations_train": str(tmp_path / "train.json"),
                "annotations_val": str(tmp_path / "val.json"),
                "features": features,
            },
            1,
        ),
    ):
        data = runs.open_data(recipe_from_dict({"data": table}).data)
        assert data.split("val").num_images == images_of_val


@pytest.mark.slow
def test_a_checkpoint_of_a_bare_solver_is_no_run(recipe, tmp_path):
    data = runs.open_data(recipe.data)
    model = runs.new_model(recipe, data)
    solver = Solver(model, data, num_epochs=1, run_dir=tmp_path / "run", verbose=False)
    solver.train()
    with pytest.raises(ValueError, match="holds no recipe"):
        runs.load_run(tmp_path / "run")


def test_a_checkpoint_makes_no_folder(recipe, tmp_path, no_pictures):
    """The built-in data are made where a recipe says, not where the checkpoint of a run does."""
    away = tmp_path / "far away" / "shapes"
    write_shapes(away, {"train": 30, "val": 5, "test": 5})
    tables = {"data": {"kind": "shapes", "directory": str(away)}, **TABLES}
    tables |= {"training": TABLES["training"] | {"num_epochs": 1}}
    runs.train(recipe_from_dict(tables), tmp_path / "run", progress=False)
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


def test_a_relative_folder_is_one_of_the_current_folder(recipe, tmp_path, monkeypatch, no_pictures):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    write_shapes("shapes", {"train": 30, "val": 5, "test": 5})
    tables = {"data": {"kind": "shapes", "directory": "shapes"}, **TABLES}
    tables |= {"training": TABLES["training"] | {"num_epochs": 1}}
    runs.train(recipe_from_dict(tables), "run", progress=False)
    monkeypatch.chdir("elsewhere")
    message = (
        f"; the path is relative to the current folder, {tmp_path / 'elsewhere'}: go to the folder where"
    )
    with pytest.raises(FileNotFoundError, match=message):
        runs.load_run(tmp_path / "run")


def test_a_run_without_its_best_checkpoint(recipe, tmp_path, capsys, no_pictures):
    recipe = replace(recipe, training=recipe.training.with_changes(num_epochs=1))
    runs.train(recipe, tmp_path / "run", progress=False)
    assert runs.load_run(tmp_path / "run").model.params.flat.size
    assert not capsys.readouterr().err
    (tmp_path / "run" / "best.h5").unlink()
    runs.load_run(tmp_path / "run", with_data=False)
    assert capsys.readouterr().err.endswith(f"{tmp_path / 'run' / 'last.h5'} is read\n")


def test_a_checkpoint_is_read_once(recipe, tmp_path, monkeypatch):
    recipe = replace(recipe, training=recipe.training.with_changes(num_epochs=1))
    one, other = quick_runs.train(recipe, tmp_path / "a"), tmp_path / "b"
    shutil.copytree(one, other)
    opened = []

    class File(h5py.File):
        def __init__(self, path, *mode, **options):
            opened.extend([Path(path)] if "best" in Path(path).name else [])
            super().__init__(path, *mode, **options)

    monkeypatch.setattr("rnnlab.training.checkpoint.h5py.File", File)
    assert runs.load_run(one).data is not None
    assert opened == [one / "best.h5"]
    opened.clear()
    assert load_ensemble([one, other]).data is not None
    assert opened == [one / "best.h5", other / "best.h5"]


@pytest.mark.slow
def test_a_run_is_opened_with_the_parameters_that_it_ended_with(recipe, tmp_path, monkeypatch):
    monkeypatch.setitem(MODES, "val_loss", "max")  # so that the last epoch is not the best one
    for restore_best in (True, False):
        training = recipe.training.with_changes(restore_best=restore_best, num_epochs=2)
        path = tmp_path / str(restore_best)
        trained = runs.train(replace(recipe, training=training), path, progress=False)
        opened = runs.load_run(path)
        np.testing.assert_array_equal(opened.model.params.flat, trained.model.params.flat)
