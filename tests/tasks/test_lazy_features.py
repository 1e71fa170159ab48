"""Tasks on features that are larger than memory: no request reads many rows, and the cache stays small."""

import json

import h5py
import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.data import CaptionData, write_shapes
from rnnlab.data.block_cache import BlockCache
from rnnlab.data.lazy import LazyFeatures
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.serving.captioning import PictureCaptioner

pytestmark = pytest.mark.usefixtures("no_pictures")

SIZES = {"train": 40, "val": 12, "test": 10}
MOST_ROWS = 8  # at once, those that a fingerprint samples: less than a split
GRIDS = {"features": "local", "global_features": "pca"}


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, SIZES)
    return folder


class Watch:
    """What was read: the most rows at once, and the most bytes in the cache."""

    most_rows = most_bytes = 0


@pytest.fixture
def watch(monkeypatch):
    """A small shared cache, blocks of few rows, and an error if one request reads many rows."""
    found, cache, read = Watch(), BlockCache(1 << 16), LazyFeatures.__getitem__

    def watched(features, indices):
        rows = np.arange(len(features))[indices].size
        assert rows <= MOST_ROWS, f"{features}: {rows} rows are read at once"
        try:
            return read(features, indices)
        finally:
            found.most_rows = max(found.most_rows, rows)
            found.most_bytes = max(found.most_bytes, cache.num_bytes)

    monkeypatch.setattr(LazyFeatures, "__getitem__", watched)
    monkeypatch.setattr("rnnlab.data.lazy.SHARED", cache)
    monkeypatch.setattr("rnnlab.data.lazy.BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr("rnnlab.data.course.BLOCK_BYTES", 1 << 6)
    monkeypatch.setattr("rnnlab.data.pca._ROWS", MOST_ROWS)
    monkeypatch.setattr("rnnlab.tasks.search._ROWS", 3)
    return found


def saved_recipe(folder, *, lazy=True, **tables):
    data = {"kind": "course", "directory": str(folder), "max_train": 60, "lazy": lazy}
    defaults = {
        "data": data,
        "model": {"wordvec_dim": 8, "hidden_dim": 12},
        "training": {"num_epochs": 1, "batch_size": 4},
        "decoding": {"method": "greedy", "max_length": 6},
        "evaluation": {"metrics": ["BLEU"]},
    }
    return recipe_from_dict({name: table | tables.get(name, {}) for name, table in defaults.items()})


def sentences(folder, recipe):
    """The captions of the split "test", by the run of ``folder`` on the data of a recipe."""
    run = runs.load_run(folder)
    run.data.splits["test"] = runs.open_data(recipe.data).split("test")
    return runs.evaluate(run, "test").sentences


@pytest.mark.slow
@pytest.mark.parametrize(
    "tables",
    [
        {"data": {"standardise": True}},
        {"data": GRIDS, "model": {"attention": "additive"}},
        {"data": {"captions_per_image": 2}},
    ],
    ids=["vectors", "grids", "captions_per_image"],
)
def test_no_task_reads_a_whole_split(shapes, tmp_path, watch, tables):
    """Opening, training, validation, scores of each epoch, captions, evaluation, discrepancy and report."""
    pytest.importorskip("pycocoevalcap")
    pytest.importorskip("jinja2")
    tables = tables | {"evaluation": {"metrics": ["BLEU"], "each_epoch": ["BLEU"]}}
    run = runs.train(saved_recipe(shapes, **tables), tmp_path / "run", progress=False)
    lazy = runs.evaluate(run, "test").sentences
    runs.discrepancy(run, "test")
    PictureCaptioner(run, run.recipe.decoding).caption("test", 3, beam_size=1)
    for command in (
        ["caption", "test"],
        ["discrepancy", "--split", "val"],
        ["evaluate", "--split", "val"],
        ["report", "--examples", "5"],
    ):
        assert cli.main([command[0], str(run.directory), *command[1:]]) == 0
    assert 0 < watch.most_bytes <= 1 << 16
    assert 3 <= watch.most_rows <= MOST_ROWS
    assert sentences(run.directory, saved_recipe(shapes, lazy=False, **tables)) == lazy


@pytest.mark.slow
def test_rewards_of_sampled_captions(shapes, tmp_path, watch):
    pytest.importorskip("pycocoevalcap")
    scores = {"evaluation": {"each_epoch": ["CIDEr"]}, "training": {"monitor": "CIDEr"}}
    tables = saved_recipe(shapes, **scores).to_dict()
    tables["stage"] = [{"num_epochs": 1}, {"self_critical": {"samples": 2, "max_length": 6}}]
    runs.train(recipe_from_dict(tables), tmp_path / "run", progress=False)
    assert watch.most_rows >= 3


def test_a_whole_split_at_once_is_noticed(shapes, watch):
    features = CaptionData.from_course(shapes, lazy=True).split("val").features
    with pytest.raises(AssertionError, match="12 rows are read at once"):
        features[:]


def test_a_file_is_joined_written_and_captioned(tmp_path, watch, capsys):
    """``data prepare`` and ``data info``, a recipe of Karpathy's JSON, and ``caption`` of a features file."""
    images = [
        {"filename": f"{k}.jpg", "split": split, "sentences": [{"raw": "a dog runs"}]}
        for k, split in enumerate(["train"] * 20 + ["val"] * 10)
    ]
    annotations, features = tmp_path / "dataset.json", tmp_path / "features.h5"
    annotations.write_text(json.dumps({"images": images}))
    with h5py.File(features, "w") as file:
        file["features"] = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)
        file["filenames"] = np.array([f"{k}.jpg" for k in range(30)], "S")
    data = {"kind": "karpathy", "annotations": str(annotations), "features": str(features), "min_count": 1}
    data |= {"lazy": True}
    tables = saved_recipe(tmp_path, evaluation={"split": "val"}).to_dict() | {"data": data}
    run = runs.train(recipe_from_dict(tables), tmp_path / "run", progress=False)
    assert cli.main(["caption", str(run.directory), str(features)]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 20
    files = ["--karpathy", str(annotations), "--features", str(features), "--min-count", "1"]
    assert cli.main(["data", "prepare", *files, "--pca", "3", "--out", str(tmp_path / "prepared")]) == 0
    assert cli.main(["data", "info", str(tmp_path / "prepared")]) == 0
    assert watch.most_rows == MOST_ROWS
