"""``rnnlab features``, and captions of photographs by runs that were trained on its files."""

import json
import shutil
import unicodedata

import h5py
import numpy as np
import pytest
from PIL import Image

from rnnlab import cli
from rnnlab.data import read_features
from rnnlab.data.photographs.encoding import read_encoding

from .. import quick_runs
from . import photographs
from .photographs import train, write_photographs

GREEDY = ("--method", "greedy")


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    return write_photographs(tmp_path_factory.mktemp("album"))


def features(album, out, *options):
    command = ["features", str(album.photographs), "--encoder", str(album.network), "--out", str(out)]
    return cli.main([*command, "--no-progress", *options])


@pytest.fixture(scope="module")
def pooled(album):
    assert features(album, album.folder / "pooled.h5", "--pixels", "unit", "--crop", "none") == 0
    return album.folder / "pooled.h5"


@pytest.fixture(scope="module")
def grids(album):
    assert features(album, album.folder / "grids.h5", "--grid", "--pca-components", "3") == 0
    return album.folder / "grids.h5"


@pytest.fixture(scope="module")
def run(album, pooled):
    return train(album, pooled, album.folder / "run")


@pytest.fixture(scope="module")
def attending_run(album, grids):
    return train(album, grids, album.folder / "attending", "model.attention=additive")


@pytest.fixture(scope="module")
def unrecorded(album, pooled, grids):
    """The same features without a record, and a run on each."""
    runs = {}
    for file, changes in ((pooled, ()), (grids, ("model.attention=additive",))):
        copy = file.with_name(f"unrecorded_{file.name}")
        with h5py.File(file) as source, h5py.File(copy, "w") as target:
            for name in ("features", "filenames"):
                target[name] = source[name][()]
        runs[file.stem] = train(album, copy, file.with_name(f"unrecorded_{file.stem}"), *changes)
    return runs


def caption(capsys, *words):
    capsys.readouterr()  # what was printed before
    status = cli.main(["caption", *map(str, words)])
    out, error = capsys.readouterr()
    return (out if status == 0 else error).strip()


def test_what_is_printed_and_written(album, tmp_path, capsys):
    shutil.copytree(album.photographs, tmp_path / "own")
    (tmp_path / "own" / "broken.jpg").write_text("no image")
    command = ["features", str(tmp_path / "own"), "--encoder", str(album.network), "--grid"]
    assert cli.main([*command, "--pca-components", "2", "--out", str(tmp_path / "f.h5")]) == 0
    out, error = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("network.onnx (")
    assert lines[1].startswith("shorter side 8, 8 x 8 RGB NCHW, (pixel - (123.675, 116.28, 103.53))")
    assert lines[2].startswith("PCA: 2 components explain ")
    assert lines[3] == f"{tmp_path / 'f.h5'}: 16 photographs, 16 x 2 float16 each"
    assert lines[4] == f"1 skipped, because they cannot be read: {tmp_path / 'own' / 'broken.jpg'}"
    assert f"rnnlab features: skipped: {tmp_path / 'own' / 'broken.jpg'}: found no image" in error
    assert "17/17" in error  # the progress bar
    for number in range(6):
        (tmp_path / "own" / f"broken_{number}.jpg").touch()
    assert cli.main([*command, "--out", str(tmp_path / "more.h5")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("7 skipped, because they cannot be read: ")
    assert cli.main([*command, "--out", str(tmp_path / "f.h5")]) == 2
    assert "already exists" in capsys.readouterr().err
    options = ["--pca", str(tmp_path / "f.h5"), "--out", str(tmp_path / "g.h5")]
    assert cli.main([*command, *options, "--dtype", "float32"]) == 0
    ours, theirs = (read_features(tmp_path / name)[1] for name in ("f.h5", "g.h5"))
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)
    assert cli.main([*command, *options, "--pca-components", "2"]) == 2
    assert "give either --pca, to apply a PCA, or --pca-components" in capsys.readouterr().err


def test_the_pca_of_a_training_split(album, tmp_path, capsys):
    options = ["--grid", "--pca-components", "2", "--dtype", "float32"]
    split = ["--karpathy", str(album.annotations)]
    assert features(album, tmp_path / "f.h5", *options, *split) == 0
    said = "The PCA is fitted to 10 of 16 photographs, those of the training split."
    assert said in capsys.readouterr().out
    training = [str(album.photographs / f"photo_{number}.png") for number in range(10)]
    command = ["features", *training, "--encoder", str(album.network), "--no-progress"]
    assert cli.main([*command, *options, "--out", str(tmp_path / "g.h5")]) == 0
    ours, theirs = (dict(zip(*read_features(tmp_path / name), strict=True)) for name in ("f.h5", "g.h5"))
    assert len(ours) == 16
    for name, values in theirs.items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-4, atol=1e-4)
    capsys.readouterr()
    assert features(album, tmp_path / "h.h5", *split) == 2
    assert "--karpathy is given, which needs --pca-components" in capsys.readouterr().err
    other = tmp_path / "other.json"
    image = {"filename": "x.png", "split": "train", "sentences": [{"raw": "a photo"}]}
    other.write_text(json.dumps({"images": [image]}))
    assert features(album, tmp_path / "h.h5", *options, "--karpathy", str(other)) == 2
    assert "has 1 training images, expected some of the 16 photographs" in capsys.readouterr().err


def test_a_training_split_has_its_accented_names_in_any_form(album, tmp_path, capsys):
    (tmp_path / "own").mkdir()
    photo = next(album.photographs.glob("photo_1.*"))
    for name in ("K\u00f6ln.png", "other.png"):
        shutil.copy(photo, tmp_path / "own" / unicodedata.normalize("NFD", name))
    image = {"filename": "K\u00f6ln.png", "split": "train", "sentences": [{"raw": "a photo"}]}
    (tmp_path / "split.json").write_text(json.dumps({"images": [image]}))
    command = ["features", str(tmp_path / "own"), "--encoder", str(album.network), "--no-progress", "--grid"]
    options = ["--pca-components", "1", "--karpathy", str(tmp_path / "split.json")]
    assert cli.main([*command, *options, "--out", str(tmp_path / "f.h5")]) == 0
    assert "The PCA is fitted to 1 of 2 photographs" in capsys.readouterr().out


def test_an_interrupted_command_says_that_it_resumes(album, tmp_path, capsys, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("rnnlab.cli.features.extract_features", interrupt)
    assert features(album, tmp_path / "f.h5") == 130
    out, error = capsys.readouterr()
    assert out.endswith("The same command resumes.\n")
    assert "interrupted" in error


def test_photographs_are_captioned_as_in_training(run, attending_run, album, tmp_path, capsys):
    """The options of the features are repeated: another copy of a photograph has its caption."""
    for trained in (run, attending_run):
        expected = caption(capsys, trained, "test", "--n-best", "3", "--beam", "3").replace("photo_", "copy_")
        copies = []
        for number in (13, 14, 15):
            copies.append(tmp_path / f"copy_{number}.png")
            shutil.copy(album.photographs / f"photo_{number}.png", copies[-1])
        found = caption(capsys, trained, *copies, "--n-best", "3", "--beam", "3").replace(f"{tmp_path}/", "")
        assert similar(found, expected)


def similar(found, expected):
    """Whether two outputs have the same words, and scores that differ by the rounding of features only."""
    pairs = list(zip(found.split(), expected.split(), strict=True))
    return all(a == b or abs(float(a) - float(b)) < 0.02 for a, b in pairs)


def test_neither_data_nor_features_are_needed(run, album, tmp_path, capsys, monkeypatch):
    photo = album.photographs / "photo_13.png"
    expected = caption(capsys, run, photo, *GREEDY)
    monkeypatch.setattr("rnnlab.runs.loading.open_data", None)
    assert caption(capsys, run, photo, *GREEDY) == expected
    assert caption(capsys, run, photo, photo, "--max-images", "1", *GREEDY) == expected


@pytest.mark.slow
def test_a_photograph_without_a_suffix(run, unrecorded, album, tmp_path, capsys, monkeypatch):
    shutil.copy(album.photographs / "photo_13.png", tmp_path / "photo")
    shutil.copy(album.photographs / "photo_13.png", tmp_path / "val")
    expected = caption(capsys, run, "photo_13.png", *GREEDY).partition(": ")[2]
    assert caption(capsys, run, tmp_path / "photo", *GREEDY) == f"{tmp_path / 'photo'}: {expected}"
    monkeypatch.chdir(tmp_path)
    assert caption(capsys, run, "photo", *GREEDY) == f"photo: {expected}"
    assert len(caption(capsys, run, "val", *GREEDY).splitlines()) == 3  # the split
    assert "give with --encoder the ONNX file" in caption(capsys, unrecorded["pooled"], "photo")
    given = ["--encoder", album.network, "--pixels", "unit", "--crop", "none"]
    for name in ("photo", "val"):
        assert caption(capsys, unrecorded["pooled"], name, *given, *GREEDY) == f"{name}: {expected}"


def test_the_attention_over_a_photograph_is_drawn(run, attending_run, tmp_path, capsys):
    wide = tmp_path / "wide.jpg"
    Image.new("RGB", (40, 16), "red").save(wide)
    picture = tmp_path / "attention.png"
    assert caption(capsys, attending_run, wide, "--show-attention", picture).startswith(f"{wide}: ")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "does not attend to regions" in caption(capsys, run, wide, "--show-attention", picture)


def test_what_is_drawn_is_what_the_encoder_saw(attending_run, tmp_path, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "rnnlab.cli.caption.attention_picture", lambda *arguments, images, download: drawn.extend(images)
    )
    Image.new("RGB", (40, 16), "red").save(tmp_path / "wide.png")
    caption(capsys, attending_run, tmp_path / "wide.png", "--show-attention", tmp_path / "a.png")
    assert [image.shape for image in drawn] == [(16, 16, 3)]


@pytest.mark.slow
def test_an_encoder_that_has_moved(album, pooled, tmp_path, capsys):
    network = shutil.copy(album.network, tmp_path / "there.onnx")
    command = ["features", str(album.photographs), "--encoder", str(network), "--no-progress"]
    cli.main([*command, "--out", str(tmp_path / "f.h5")])
    moved = train(album, tmp_path / "f.h5", tmp_path / "run")
    photo = album.photographs / "photo_14.png"
    expected = caption(capsys, moved, photo, *GREEDY)
    (tmp_path / "there.onnx").rename(tmp_path / "here.onnx")
    error = caption(capsys, moved, photo)
    assert "there.onnx, which is no longer there: give the file with --encoder (sha256 " in error
    assert caption(capsys, moved, photo, "--encoder", tmp_path / "here.onnx", *GREEDY) == expected
    from ..data.photographs.networks import KERNEL, write_network

    other = write_network(tmp_path / "other.onnx", kernel=KERNEL * 2)
    assert "other.onnx: sha256: found " in caption(capsys, moved, photo, "--encoder", other)
    error = caption(capsys, moved, photo, "--encoder", tmp_path / "absent.onnx")
    assert error.startswith(
        f"rnnlab caption: {tmp_path / 'absent.onnx'}: found no such file, expected the ONNX file"
    )
    settings = ["--encoder", tmp_path / "here.onnx", "--mean", "0"]
    assert "mean given, but the features that the model was trained on record" in caption(
        capsys, moved, photo, *settings
    )


def test_a_run_that_recorded_no_encoder(album, run, unrecorded, grids, tmp_path, capsys):
    photo = shutil.copy(album.photographs / "photo_15.png", tmp_path / "new.png")
    given = ["--encoder", album.network]
    error = caption(capsys, unrecorded["pooled"], photo)
    assert "has no image" in error
    assert "give with --encoder the ONNX file of the encoder that made the features" in error
    settings = ["--pixels", "unit", "--crop", "none"]
    expected = caption(capsys, run, photo, "--n-best", "2", "--beam", "2")
    found = caption(capsys, unrecorded["pooled"], photo, *given, *settings, "--n-best", "2", "--beam", "2")
    assert similar(found, expected)
    error = caption(capsys, unrecorded["grids"], photo, *given)
    assert "layer map has 5 numbers, and the model reads 3 in a vector of features" in error
    assert error.endswith("give with --pca the PCA that the features went through")
    assert caption(capsys, unrecorded["grids"], photo, *given, "--pca", grids).startswith(f"{photo}: ")
    error = caption(capsys, unrecorded["pooled"], photo, *given, "--pca", grids)
    assert "layer pool has 3 numbers after the PCA, and the model reads 5" in error
    assert "found no layer 'fc'" in caption(capsys, unrecorded["pooled"], photo, *given, "--layer", "fc")


def test_features_of_another_encoding_are_refused(album, run, attending_run, unrecorded, pooled, capsys):
    other = album.folder / "symmetric.h5"
    assert features(album, other, "--pixels", "symmetric", "--crop", "none") == 0
    error = caption(capsys, run, other)
    assert "symmetric.h5: found features by network.onnx" in error
    assert "as those of the training (" in error
    error = caption(capsys, unrecorded["pooled"], run, other)
    assert f"{run}: {other}: found features by" in error
    assert len(caption(capsys, run, pooled).splitlines()) == 16
    assert len(caption(capsys, unrecorded["pooled"], other).splitlines()) == 16  # nothing to compare with


def test_a_photograph_that_does_not_exist(run, unrecorded, album, tmp_path, capsys):
    photo = album.photographs / "photo_15.png"
    for wanted in (["nothere.jpg"], [photo, "nothere.jpg"], ["photo_15.png", "nothere.jpg"]):
        assert caption(capsys, run, *wanted) == (
            "rnnlab caption: nothere.jpg: no such photograph, and no image of the run's data "
            "(captions.json), whose splits are train, val, test"
        )
    error = caption(capsys, run, unrecorded["grids"], "nothere.jpg")
    assert "nothere.jpg: no such photograph, and no image of the run's data (captions.json)" in error
    error = caption(capsys, run, album.photographs)
    assert error.endswith(f"{album.photographs} is a folder: folders are not read; name files")


def test_one_photograph_is_counted_as_one(album, tmp_path, capsys):
    photo = album.photographs / "photo_15.png"
    command = ["features", str(photo), "--encoder", str(album.network), "--no-progress"]
    assert cli.main([*command, "--out", str(tmp_path / "f.h5")]) == 0
    assert "f.h5: 1 photograph, 5 float16 each" in capsys.readouterr().out


def test_features_unlike_those_of_training_are_reported(unrecorded, album, capsys):
    photo = album.photographs / "photo_15.png"
    command = ["caption", str(unrecorded["pooled"]), str(photo), "--encoder", str(album.network)]
    assert cli.main([*command, "--pixels", "none"]) == 0
    assert "standard deviations from those of the training images" in capsys.readouterr().err
    assert cli.main([*command, "--pixels", "unit"]) == 0
    assert capsys.readouterr().err == ""


def test_options_of_an_encoder_without_one(run, album, capsys):
    photo = album.photographs / "photo_15.png"
    assert "--pca is given without --encoder" in caption(capsys, run, photo, "--pca", "p.h5")
    assert "--size is given without --encoder" in caption(capsys, run, photo, "--size", "8")
    error = caption(capsys, run, "val", "--encoder", album.network)
    assert "--encoder is for photographs, expected their files instead of val" in error


def test_an_ensemble_of_vectors_and_grids(run, attending_run, unrecorded, album, tmp_path, capsys):
    photo = shutil.copy(album.photographs / "photo_15.png", tmp_path / "new.png")
    expected = caption(capsys, run, attending_run, "photo_15.png", *GREEDY).partition(": ")[2]
    assert caption(capsys, run, attending_run, photo, *GREEDY) == f"{photo}: {expected}"
    picture = tmp_path / "attention.png"
    caption(capsys, run, attending_run, photo, "--show-attention", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    error = caption(capsys, run, unrecorded["grids"], photo, "--encoder", album.network)
    assert f"{unrecorded['grids']}: {album.network}: layer map has 5 numbers" in error


def test_a_broken_photograph_is_named(run, tmp_path, capsys):
    (tmp_path / "broken.jpg").write_text("no image")
    assert "broken.jpg: found no image of a format that is read" in caption(
        capsys, run, tmp_path / "broken.jpg"
    )


@pytest.mark.slow
def test_prepared_data_record_the_encoder_and_both_projections(album, pooled, grids, tmp_path, capsys):
    """Features go through one PCA or two; a photograph then takes the same way."""
    for source, kind in ((pooled, ()), (grids, ("model.attention=additive",))):
        out = tmp_path / source.stem
        command = ["data", "prepare", "--karpathy", str(album.annotations), "--features", str(source)]
        assert cli.main([*command, "--out", str(out), "--pca", "2", "--min-count", "1"]) == 0
        assert "PCA to 2" in capsys.readouterr().out
        encoding = read_encoding(out / "val2014_vgg16_fc7_pca.h5")
        assert encoding.projection.components.shape == (2, 5)
        changes = ["data.kind=course", f"data.directory={out}", "data.standardise=true", *kind]
        trained = train_prepared(out, tmp_path / f"run_{source.stem}", *changes)
        expected = caption(capsys, trained, "photo_15.png", "--beam", "2", "--n-best", "2")
        photo = album.photographs / "photo_15.png"
        found = caption(capsys, trained, photo, "--beam", "2", "--n-best", "2")
        assert similar(found.replace(f"{album.photographs}/", ""), expected)


def train_prepared(directory, out, *changes):
    recipe = out.with_suffix(".toml")
    _, _, after = photographs.RECIPE.partition("[model]")
    recipe.write_text(f'[data]\nkind = "course"\ndirectory = "{directory}"\n[model]{after}')
    return quick_runs.train(recipe, out, *changes)
