import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from rnnlab.data import CaptionData, image_from_url, open_shapes, tokenize
from rnnlab.data.shapes import build, shapes_directory, write_shapes
from rnnlab.data.shapes.build import CELLS, ensure_shapes
from rnnlab.data.shapes.drawing import draw
from rnnlab.data.shapes.scenes import Scene, SceneObject

ROOT = Path(__file__).parents[3]
SIZES = {"train": 40, "val": 8, "test": 6}  # of the fixture shapes


def test_the_same_seed_gives_the_same_bytes(shapes, tmp_path):
    write_shapes(tmp_path / "again", SIZES, seed=3)
    for path in shapes.rglob("*.*"):
        other = tmp_path / "again" / path.relative_to(shapes)
        if path.suffix == ".h5":
            with h5py.File(path) as first, h5py.File(other) as second:
                assert list(first) == list(second)
                for field in first:
                    assert first[field][()].tobytes() == second[field][()].tobytes()
        else:
            assert path.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_the_number_of_threads_makes_no_difference(shapes, tmp_path):
    folder = tmp_path / "shapes"
    code = f"from rnnlab.data import write_shapes; write_shapes({str(folder)!r}, {SIZES}, seed=3)"
    threads = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | threads, cwd=ROOT)
    for name in ("train2014_vgg16_fc7_pca.h5", "val2014_vgg16_fc7_pca.h5", "val2014_local.h5"):
        with h5py.File(shapes / name) as first, h5py.File(folder / name) as second:
            np.testing.assert_array_equal(first["features"][()], second["features"][()])


def test_the_number_of_pictures_in_memory_makes_no_difference(monkeypatch, tmp_path):
    found = []
    for at_once in (10, 4):
        monkeypatch.setattr(build, "_CHUNK", at_once)
        folder = tmp_path / str(at_once)
        write_shapes(folder, {"train": 10})
        found.append([(folder / "scenes.json").read_text(), len(list((folder / "images").iterdir()))])
        found[-1] += open_shapes(folder).split("train").features.tolist()
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"val": 3}, "write_shapes: sizes has val, expected train as well"),
        ({}, "write_shapes: sizes has no split, expected train as well"),
        ({"train": 3, "val": 0}, r"write_shapes: sizes\['val'\] is 0, expected an integer of at least 1"),
    ],
)
def test_sizes_that_do_not_fit(tmp_path, sizes, message):
    with pytest.raises(ValueError, match=message):
        write_shapes(tmp_path / "none", sizes)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("seed", [None, -1])
def test_what_is_no_seed(tmp_path, seed):
    message = f"write_shapes: seed is {seed}, expected an integer of at least 0"
    with pytest.raises((TypeError, ValueError), match=message):
        write_shapes(tmp_path / "none", {"train": 1}, seed=seed)
    assert not any(tmp_path.iterdir())


def test_a_single_picture(tmp_path):
    write_shapes(tmp_path / "one", {"train": 1})
    assert open_shapes(tmp_path / "one").split("train").features.tolist() == [[0]]


def test_another_seed_gives_other_scenes(shapes, tmp_path):
    write_shapes(tmp_path / "other", {"train": 4}, seed=4)
    first, second = (
        json.loads((folder / "references.json").read_text()) for folder in (shapes, tmp_path / "other")
    )
    assert first["train"][:4] != second["train"]


def test_contents(shapes):
    data = open_shapes(shapes, standardise=False)
    assert data.image_dir == shapes / "images"
    assert data.num_features == SIZES["train"] - 1  # after the mean is subtracted, no more are independent
    assert list(data.splits) == list(SIZES)
    for name, split in data.splits.items():
        assert split.num_images == SIZES[name]
        assert split.captions.shape == (5 * SIZES[name], 17)
        assert split.captions.dtype == split.image_idxs.dtype == np.int32
        assert split.features.dtype == np.float32
        np.testing.assert_array_equal(split.image_idxs, np.repeat(np.arange(SIZES[name]), 5))
        for caption, image in zip(split.captions, split.image_idxs, strict=True):
            sentences = [" ".join(tokenize(sentence)) for sentence in split.references[image]]
            assert len(set(sentences)) == 5
            if name == "train":
                assert data.vocabulary.decode(caption) in sentences
    assert open_shapes(shapes, max_train=7).splits["train"].captions.shape == (7, 17)


def test_local_features(shapes):
    data = CaptionData.from_course(shapes, features="local")
    assert data.split("val").features.shape == (SIZES["val"], CELLS * CELLS, build.LOCAL_DIMS)
    assert data.num_features == build.LOCAL_DIMS


def test_pictures_are_those_of_the_scenes(shapes):
    data = open_shapes(shapes)
    records = json.loads((shapes / "scenes.json").read_text())
    for name, record in zip(data.split("test").names, records["test"], strict=True):
        things = []
        for fields in record["objects"]:
            cells = fields.pop("cells")
            thing = SceneObject(**fields)
            things.append(thing)
            inside = {int(thing.y * CELLS) * CELLS + int(thing.x * CELLS)}
            hidden = record["relation"] == "inside" and thing.size == "large"
            assert hidden or inside <= set(cells)
            assert 0 < len(cells) <= 16
        scene = Scene(tuple(things), record["relation"], record["hue"])
        np.testing.assert_array_equal(image_from_url(name, data.image_dir), draw(scene)[0])


def test_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("RNNLAB_SHAPES", str(tmp_path / "shapes"))
    assert shapes_directory() == tmp_path / "shapes"
    monkeypatch.delenv("RNNLAB_SHAPES")
    assert shapes_directory().parts[-2:] == ("datasets", "shapes")
    assert (shapes_directory().parents[1] / "setup.cfg").exists()
    monkeypatch.setattr(build, "__file__", str(tmp_path / "a" / "b" / "c" / "build.py"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert shapes_directory() == tmp_path / "home" / ".cache" / "rnnlab" / "shapes"


def test_made_on_first_use(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("RNNLAB_SHAPES", str(tmp_path / "shapes"))
    monkeypatch.setattr(build, "SIZES", {"train": 3})
    monkeypatch.setattr(build.write_shapes, "__defaults__", ({"train": 3},))
    data = open_shapes()
    assert data.split("train").num_images == 3
    assert capsys.readouterr().err == "rnnlab: drawing the built-in data, once, in about 20 seconds\n"
    monkeypatch.setattr(build, "write_shapes", None)
    assert ensure_shapes() == tmp_path / "shapes"
    assert not capsys.readouterr().err


def test_what_another_version_made_is_not_read(monkeypatch, shapes_copy):
    origin = shapes_copy / "shapes.json"
    assert json.loads(origin.read_text()) == {"generator": build.GENERATOR, "sizes": SIZES, "seed": 3}
    monkeypatch.setattr(build, "GENERATOR", 99)
    with pytest.raises(ValueError, match=f"{origin}: generator: found 1, expected 99: if these are built-in"):
        open_shapes(shapes_copy)
    origin.unlink()
    with pytest.raises(ValueError, match="generator: found no such file, expected 99: if these are built-in"):
        ensure_shapes(shapes_copy)


def test_a_change_of_what_is_made_needs_another_number(shapes):
    """If this fails, raise GENERATOR in build.py, and write the new values here."""
    sentences, scenes = (
        hashlib.sha256((shapes / name).read_bytes().rstrip()).hexdigest()[:8]
        for name in ("references.json", "scenes.json")
    )
    data = open_shapes(shapes)
    names = data.split("train").names
    brightness = np.mean([image_from_url(name, data.image_dir).mean() for name in names])
    features = np.abs(data.split("val").features).mean()
    local = np.abs(CaptionData.from_course(shapes, features="local").split("val").features).mean()
    assert (build.GENERATOR, sentences, scenes) == (1, "b1543733", "cf8a8d37")
    assert (brightness, features, local) == pytest.approx((220.783, 0.6295, 0.2651), rel=1e-3)


def test_nothing_is_overwritten_and_nothing_left_half_made(monkeypatch, tmp_path):
    (tmp_path / "shapes").mkdir()
    with pytest.raises(
        FileExistsError, match="write_shapes: directory .*shapes already exists, expected no such"
    ):
        write_shapes(tmp_path / "shapes")
    monkeypatch.setattr(build, "describe_scene", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_shapes(tmp_path / "other", {"train": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["shapes"]


def test_two_processes_may_make_it_at_once(monkeypatch, tmp_path):
    def beaten(folder):
        folder.mkdir()
        (folder / "shapes.json").write_text(json.dumps({"generator": build.GENERATOR}))
        raise FileExistsError

    monkeypatch.setattr(build, "write_shapes", beaten)
    assert ensure_shapes(tmp_path / "shapes") == tmp_path / "shapes"
    monkeypatch.setattr(build, "write_shapes", lambda folder: (_ for _ in ()).throw(PermissionError))
    with pytest.raises(PermissionError):
        ensure_shapes(tmp_path / "none")
