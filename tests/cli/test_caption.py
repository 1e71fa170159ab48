"""``rnnlab caption``: splits, images by name, files of features, n-best lists and pictures."""

import json
import shutil
from argparse import Namespace

import h5py
import matplotlib.pyplot as plt
import pytest
from PIL import Image

from rnnlab import cli
from rnnlab.cli import caption


def test_captions_of_a_split_and_of_named_images_agree(run, capsys):
    assert cli.main(["caption", str(run), "val"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert cli.main(["caption", str(run), "elsewhere/val_00003.png"]) == 0
    assert capsys.readouterr().out.strip() == f"elsewhere/{lines[3]}"


def test_captions_of_a_features_file(run, shapes, tmp_path, capsys):
    cli.main(["caption", str(run), "val", "--method", "greedy"])
    expected = capsys.readouterr().out
    with h5py.File(shapes / "val2014_vgg16_fc7_pca.h5") as source, h5py.File(tmp_path / "f.h5", "w") as file:
        file["features"] = source["features"][...]
        file["filenames"] = [f"val_{number:05}.png" for number in range(10)]
    assert cli.main(["caption", str(run), str(tmp_path / "f.h5"), "--method", "greedy"]) == 0
    assert capsys.readouterr().out == expected


def test_results_for_coco_s_evaluation(run, shapes, tmp_path, capsys):
    results = tmp_path / "results.json"
    with h5py.File(shapes / "val2014_vgg16_fc7_pca.h5") as source, h5py.File(tmp_path / "f.h5", "w") as file:
        file["features"] = source["features"][...]
        file["filenames"] = [f"COCO_test2014_{7 * number:012}.jpg" for number in range(10)]
    options = ["--coco", str(results), "--beam", "2", "--n-best", "2", "--max-images", "3"]
    assert cli.main(["caption", str(run), str(tmp_path / "f.h5"), *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = json.loads(results.read_text())
    assert [each["image_id"] for each in found] == [0, 7, 14]
    assert [each["caption"] for each in found] == [line.split(maxsplit=1)[1] for line in lines[1::3]]
    results.unlink()
    assert cli.main(["caption", str(run), "val", *options]) == 2
    assert "'val_00000.png' is no file name of COCO" in capsys.readouterr().err
    assert not results.exists()


def test_n_best_lists_are_sorted_and_pictures_written(run, tmp_path, capsys):
    picture = tmp_path / "captions.png"
    options = ["--beam", "4", "--n-best", "3", "--max-images", "2", "--picture", str(picture)]
    assert cli.main(["caption", str(run), "val", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["val_00000.png:", "val_00001.png:"]
    scores = [float(line.split()[0]) for line in lines[1:4]]
    assert scores == sorted(scores, reverse=True)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_n_best_lists_as_json(run, second_run, tmp_path, capsys):
    path = tmp_path / "captions.json"
    options = ["val", "--max-images", "2", "--n-best", "2", "--beam", "3", "--json", str(path)]
    assert cli.main(["caption", str(run), *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = json.loads(path.read_text())
    assert found["run"] == str(run)
    assert [image["name"] for image in found["images"]] == ["val_00000.png", "val_00001.png"]
    best, second = found["images"][0]["captions"]
    assert lines[1].split() == [f"{best['score']:.3f}", *best["caption"].split()]
    assert best["score"] >= second["score"]
    assert best["log_prob"] < 0
    assert cli.main(["caption", str(run), str(second_run), *options]) == 0
    assert json.loads(path.read_text())["runs"] == [str(run), str(second_run)]
    checkpoint = ["caption", str(run), "val", "--json", str(run / "last.h5")]
    assert cli.main(checkpoint) == 2  # it is not replaced


def test_pictures_are_written_even_if_nothing_reads_the_captions(run, tmp_path, monkeypatch):
    def closed(*_):
        raise BrokenPipeError

    monkeypatch.setattr(caption, "print", closed, raising=False)
    with pytest.raises(BrokenPipeError):
        cli._run(["caption", str(run), "val", "--max-images", "2", "--picture", str(tmp_path / "some.png")])
    assert (tmp_path / "some.png").exists()


def test_a_seed_is_no_negative_number(run, capsys):
    with pytest.raises(SystemExit):
        cli.main(["caption", str(run), "val", "--method", "sample", "--seed", "-1"])
    assert "--seed: '-1', expected an integer of at least 0" in capsys.readouterr().err


def test_a_picture_has_the_first_images(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("rnnlab.cli.caption._PICTURED", 3)
    drawn = []
    monkeypatch.setattr(
        "rnnlab.cli.caption.captions_picture",
        lambda path, names, captions, *rest, **options: drawn.append((names, captions)),
    )
    assert cli.main(["caption", str(run), "val", "--picture", str(tmp_path / "p.png")]) == 0
    ((names, captions),) = drawn
    assert names == ("val_00000.png", "val_00001.png", "val_00002.png")
    assert len(captions) == 3
    assert len(capsys.readouterr().out.splitlines()) == 10


@pytest.mark.slow
def test_sampling_follows_its_seed(run, capsys):
    printed = []
    for seed in ("1", "1", "2"):
        cli.main(["caption", str(run), "val", "--method", "sample", "--seed", seed])
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]


@pytest.mark.slow
def test_several_runs_are_an_ensemble(run, second_run, attending_run, capsys):
    """By name and by split, with different features for each model."""
    runs = [str(run), str(second_run), str(attending_run)]
    assert cli.main(["caption", *runs, "val", "--beam", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert cli.main(["caption", *runs, "val_00003.png", "val_00001.png", "--beam", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [lines[3], lines[1]]


def test_the_attention_of_an_ensemble_is_that_of_the_models_that_attend(
    run, second_run, attending_run, tmp_path, capsys
):
    picture = tmp_path / "attention.png"
    options = ["val_00003.png", "--show-attention", str(picture)]
    assert cli.main(["caption", str(run), str(attending_run), *options]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert cli.main(["caption", str(run), str(second_run), *options]) == 2
    assert f"none of the models of {run}, {second_run} attends to regions" in capsys.readouterr().err
    assert cli.main(["caption", str(run), *options]) == 2
    assert capsys.readouterr().err == (
        f"rnnlab caption: --show-attention: the model of {run} does not attend to regions; "
        "it was trained with model.attention = none\n"
    )


def test_an_ensemble_captions_a_features_file(run, second_run, attending_run, shapes, tmp_path, capsys):
    cli.main(["caption", str(run), str(second_run), "val", "--method", "greedy"])
    expected = capsys.readouterr().out
    with h5py.File(shapes / "val2014_vgg16_fc7_pca.h5") as source, h5py.File(tmp_path / "f.h5", "w") as file:
        file["features"] = source["features"][...]
        file["filenames"] = [f"val_{number:05}.png" for number in range(10)]
    file = [str(tmp_path / "f.h5"), "--method", "greedy"]
    assert cli.main(["caption", str(run), str(second_run), *file]) == 0
    assert capsys.readouterr().out == expected
    assert cli.main(["caption", str(run), str(attending_run), *file]) == 2
    assert "one file of features does not serve both" in capsys.readouterr().err


def test_a_split_is_no_run_even_if_a_run_has_its_name(run, tmp_path, monkeypatch, capsys):
    shutil.copytree(run, tmp_path / "val")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["caption", str(run), "val"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 10


@pytest.mark.parametrize(
    ("wanted", "words", "kind"),
    [
        (["f.h5"], [], "features"),
        (["f.h5", "photo.jpg"], [], "files"),
        (["photo.jpg", "./bare"], [], "files"),
        (["bare"], [], "data"),
        (["bare"], ["--encoder", "network.onnx"], "files"),
        (["photo.jpg", "absent.jpg"], [], "data"),
        (["folder"], [], "data"),
    ],
)
def test_what_is_wanted_is_said_by_names_and_files(wanted, words, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("f.h5", "photo.jpg", "bare"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    options = cli._parser().parse_args(["caption", "run", *wanted, *words])
    assert caption._kind_of(wanted, options) == kind


def test_options_of_other_images_are_refused_before_a_run_is_opened(tmp_path, capsys):
    assert cli.main(["caption", "nowhere", "val", "--global-features", "g.h5"]) == 2
    assert "--global-features needs an HDF5 file of local features as well" in capsys.readouterr().err


def test_images_may_come_after_options(run, second_run, capsys):
    runs = [str(run), str(second_run)]
    assert cli.main(["caption", *runs, "val_00003.png", "--beam", "2"]) == 0
    expected = capsys.readouterr().out
    assert cli.main(["caption", *runs, "--beam", "2", "val_00003.png"]) == 0
    assert capsys.readouterr().out == expected


def test_a_run_on_shapes_captions_no_photographs(run, tmp_path, capsys):
    (tmp_path / "photo.jpg").touch()
    assert cli.main(["caption", str(run), str(tmp_path / "photo.jpg")]) == 2
    error = capsys.readouterr().err
    assert "this run captions no photographs: its features come from no encoder" in error
    assert "--encoder" not in error


def test_what_is_no_regular_file_is_named(run, capsys):
    assert cli.main(["caption", str(run), "/dev/zero"]) == 2
    assert capsys.readouterr().err == "rnnlab caption: /dev/zero: found a device, expected a photograph\n"


def test_pictures_of_a_features_file_stay_below_the_folder(run, shapes, tmp_path, monkeypatch, capsys):
    """Its names may be any text; photographs of the command line may be anywhere."""
    folder, drawn = tmp_path / "work", []
    folder.mkdir()
    for place in (folder, tmp_path):
        Image.new("RGB", (8, 8)).save(place / "1.png")
    with h5py.File(shapes / "val2014_vgg16_fc7_pca.h5") as source, h5py.File(folder / "f.h5", "w") as file:
        file["features"] = source["features"][:4]
        file["filenames"] = ["1.png", "../1.png", str(tmp_path / "1.png"), "http://127.0.0.1:9/1.png"]
    monkeypatch.chdir(folder)

    def draw(images, *arguments, **options):
        drawn.extend(images)
        return plt.figure()

    monkeypatch.setattr("rnnlab.plots.caption_grid", draw)
    assert cli.main(["caption", str(run), "f.h5", "--picture", "p.png"]) == 0
    assert [image.shape for image in drawn] == [(8, 8, 3), *3 * [(224, 224, 3)]]  # placeholders


def test_images_are_fetched_only_to_be_drawn(run, capsys):
    assert cli.main(["caption", str(run), "val", "--download"]) == 2
    assert (
        "--download is for the images to draw, and needs --picture or --show-att" in capsys.readouterr().err
    )


def test_names_that_are_not_coco_s_are_found_before_photographs_are_encoded(monkeypatch):
    def encode(*_):
        raise AssertionError("the encoder was opened")

    monkeypatch.setattr(caption, "with_encoder", encode)
    with pytest.raises(ValueError, match="'dog.jpg' is no file name of COCO"):
        caption._encoded(None, ["dog.jpg"], Namespace(coco="results.json", first=None))
