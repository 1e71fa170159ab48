"""``rnnlab data``: what prepare writes is what info describes."""

import json

import h5py
import numpy as np

from rnnlab import cli

from ..tasks.letter_lines import RECIPE, write_lines


def test_info_describes_folders_and_recipes(shapes, recipe, capsys):
    assert cli.main(["data", "info", str(shapes)]) == 0
    folder = capsys.readouterr().out
    assert "train" in folder
    assert "300" in folder  # captions
    assert cli.main(["data", "info", str(recipe), "--set", "data.max_train=7"]) == 0
    assert " 7 " in capsys.readouterr().out


def test_info_describes_the_recipes_that_train_takes(shapes, recipe, tmp_path, capsys):
    path = tmp_path / "recipe"  # without a suffix
    path.write_bytes(recipe.read_bytes())
    assert cli.main(["data", "info", str(path), "--set", "data.max_train=7"]) == 0
    assert " 7 " in capsys.readouterr().out
    assert cli.main(["data", "info", str(shapes), "--set", "data.max_train=7"]) == 2
    assert f"--set changes keys of a recipe, but {shapes} is a folder" in capsys.readouterr().err


def test_info_describes_text(tmp_path, capsys):
    write_lines(tmp_path)
    (tmp_path / "lines.toml").write_text(RECIPE.format(directory=tmp_path))
    assert cli.main(["data", "info", str(tmp_path / "lines.toml")]) == 0
    assert "train.txt, val.txt: 13 words" in capsys.readouterr().out


def test_info_of_another_folder_asks_for_a_recipe(tmp_path, capsys):
    assert cli.main(["data", "info", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"rnnlab data: {tmp_path}: found no coco2014_vocab.json, expected a folder in the layout of cs231n, "
        "or a recipe, which describes any data: rnnlab data info RECIPE\n"
    )


def test_prepare_writes_what_info_reads(tmp_path, capsys):
    names = [f"{number}.jpg" for number in range(8)]
    images = [
        {
            "filename": name,
            "split": "train" if number < 6 else "val",
            "sentences": [{"raw": f"A thing number {number}."}],
        }
        for number, name in enumerate(names)
    ]
    (tmp_path / "dataset.json").write_text(json.dumps({"images": images}))
    with h5py.File(tmp_path / "features.h5", "w") as file:
        file["features"] = np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)
        file["filenames"] = names
    arguments = ["--karpathy", str(tmp_path / "dataset.json"), "--features", str(tmp_path / "features.h5")]
    options = ["--out", str(tmp_path / "out"), "--min-count", "1", "--max-size", "3", "--pca", "3"]
    assert cli.main(["data", "prepare", *arguments, *options]) == 0
    written = capsys.readouterr().out
    assert len(json.loads((tmp_path / "out" / "coco2014_vocab.json").read_text())["idx_to_word"]) == 4 + 3
    assert cli.main(["data", "info", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == written
    assert cli.main(["data", "prepare", *arguments, "--out", str(tmp_path / "out")]) != 0
    message = (
        f"--out {tmp_path / 'out'} already exists, with features of kind 'pca', and others cannot be added"
    )
    assert message in capsys.readouterr().err


def test_an_empty_path_is_an_error(tmp_path, capsys):
    command = ["data", "prepare", "--features", "features.h5", "--out", str(tmp_path / "out")]
    for source in (["--karpathy", ""], ["--coco", "train="]):
        assert cli.main([*command, *source]) == 2
        assert "rnnlab data: an empty path: found no such file, expected" in capsys.readouterr().err


def test_each_split_has_one_file(tmp_path, capsys):
    command = ["data", "prepare", "--features", "features.h5", "--out", str(tmp_path / "out"), "--coco"]
    assert cli.main([*command, "train=a.json", "val=b.json", "train=c.json"]) == 2
    assert "--coco: got train=a.json and train=c.json, expected one file for each" in capsys.readouterr().err
    assert cli.main([*command, "a.json"]) == 2
    assert "--coco: got 'a.json', expected SPLIT=FILE" in capsys.readouterr().err
