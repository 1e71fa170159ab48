"""The command as a user has it: train, caption, evaluate, resume, look at data; and its errors."""

import csv
import dataclasses
import importlib
import importlib.util
import json
import sys

import h5py
import numpy as np
import pytest

from rnnlab import cli, ops, plots, runs
from rnnlab.data import write_shapes
from rnnlab.decoding import greedy
from rnnlab.metrics import mean_centroid_distance, pointwise_distance
from rnnlab.training import load_checkpoint

needs_scorers = pytest.mark.skipif(
    importlib.util.find_spec("pycocoevalcap") is None, reason="the extra eval is not installed"
)


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, {"train": 60, "val": 10, "test": 12})
    return folder


@pytest.fixture(scope="module")
def recipe(shapes, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipes") / "tiny.toml"
    path.write_text(
        f"""
        [data]
        kind = "shapes"
        directory = "{shapes}"
        [model]
        hidden_dim = 24
        wordvec_dim = 16
        output_dropout = 0.1
        [training]
        num_epochs = 2
        optim_config.learning_rate = 1e-2
        [decoding]
        max_length = 12
        [evaluation]
        split = "test"
        metrics = ["BLEU"]
        """
    )
    return path


@pytest.fixture(scope="module")
def run(recipe, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "tiny"
    assert cli.main(["train", str(recipe), "--out", str(out), "--no-progress"]) == 0
    return out


def test_training_leaves_a_whole_run(run):
    names = {path.name for path in run.iterdir()}
    assert names == {"best.h5", "captions.png", "config.json", "history.csv", "last.h5", "loss.png"}
    rows = list(csv.DictReader((run / "history.csv").read_text().splitlines()))
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert float(rows[1]["val_loss"]) < float(rows[0]["val_loss"])


def test_training_ends_with_captions(recipe, tmp_path, capsys):
    assert cli.main(["train", str(recipe), "--out", str(tmp_path / "run"), "--epochs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "test_00000.png: " in printed
    assert "BLEU-4" in printed or "pip install" in printed


def test_a_resumed_run_ends_where_an_unbroken_one_does(recipe, run, tmp_path):
    broken = tmp_path / "broken"
    assert cli.main(["train", str(recipe), "--out", str(broken), "--epochs", "1", "--no-progress"]) == 0
    assert cli.main(["train", "--resume", str(broken), "--epochs", "2", "--no-progress"]) == 0
    one, other = load_checkpoint(run / "last.h5"), load_checkpoint(broken / "last.h5")
    np.testing.assert_array_equal(one.parameters.flat, other.parameters.flat)


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


def test_n_best_lists_are_sorted_and_pictures_written(run, tmp_path, capsys):
    picture = tmp_path / "captions.png"
    options = ["--beam", "4", "--n-best", "3", "--max-images", "2", "--picture", str(picture)]
    assert cli.main(["caption", str(run), "val", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["val_00000.png:", "val_00001.png:"]
    scores = [float(line.split()[0]) for line in lines[1:4]]
    assert scores == sorted(scores, reverse=True)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_sampling_follows_its_seed(run, capsys):
    printed = []
    for seed in ("1", "1", "2"):
        cli.main(["caption", str(run), "val", "--method", "sample", "--seed", seed])
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]


@needs_scorers
def test_evaluation_prints_a_table_and_writes_json(run, tmp_path, capsys):
    path = tmp_path / "scores.json"
    assert cli.main(["evaluate", str(run), "--split", "val", "--beam", "2", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    report = json.loads(path.read_text())
    assert report["split"] == "val"
    assert f"{report['corpus']['BLEU-4']:.4f}" in printed
    assert [image["name"] for image in report["images"]] == [f"val_{number:05}.png" for number in range(10)]
    assert all(
        len(image["references"]) == 5 and 0 <= image["scores"]["BLEU-1"] <= 1 for image in report["images"]
    )


def test_the_discrepancy_of_a_split(run, capsys):
    """Of the first caption of each image, and of the greedy one."""
    numbers = run / "discrepancy.json"
    arguments = ["discrepancy", str(run), "--split", "val", "--first", "7", "--json", str(numbers)]
    assert cli.main(arguments) == 0
    found = json.loads(numbers.read_text())
    assert found["sentences"] == 7
    assert all(0 <= found[distance] <= 2 for distance in ("d_mc", "d_pw"))
    lines = capsys.readouterr().out.splitlines()
    opened = runs.load_run(run)
    val, model = opened.data.split("val"), opened.model
    firsts = [np.flatnonzero(val.image_idxs == image)[0] for image in range(7)]
    unknown = model.word_to_idx["<UNK>"]
    found = greedy(
        model, val.features[:7], max_length=12, forbid=(model.null_token, model.start_token, unknown)
    )
    rows = [[model.start_token, *best.tokens, *[model.end_token] * best.finished] for best, *_ in found]
    taught, free = (
        np.concatenate([model.last_states(val.features[k : k + 1], [row]) for k, row in enumerate(some)])
        for some in (val.captions[firsts], rows)
    )
    d_mc, d_pw = mean_centroid_distance(taught, free), pointwise_distance(taught, free)
    assert [line.split() for line in lines] == [
        ["sentences", "7"],
        ["d_mc", f"{d_mc:.4f}"],
        ["d_pw", f"{d_pw:.4f}"],
    ]
    assert cli.main(["discrepancy", str(run)]) == 0
    assert capsys.readouterr().out.split()[1] == "12"  # images of the recipe's split


def test_a_picture_of_states(run, tmp_path, capsys, monkeypatch):
    pytest.importorskip("sklearn")
    picture = tmp_path / "states.png"
    assert cli.main(["discrepancy", str(run), "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    assert cli.main(["discrepancy", "nowhere", "--picture", str(picture)]) == 2
    assert "rnnlab[sklearn]" in capsys.readouterr().err


def test_gradcheck_prints_a_row_for_each_case(capsys):
    arguments = ["gradcheck", "--only", "gru_step", "--jobs", "1"]
    assert cli.main(arguments) == 0
    captured = capsys.readouterr()
    header, *rows, verdict = captured.out.splitlines()
    assert header.split() == ["layer", "or", "model", "error", "worst"]
    assert [row.split()[0] for row in rows] == ["gru_step", "simplified_gru_step"]
    assert all(row.endswith("ok") for row in rows)
    assert verdict == "All 2 checks passed."
    assert captured.err == ""  # no bar where there is no terminal
    assert cli.main([*arguments, "--tolerance", "1e-30"]) == 1
    assert "2 of 2 checks failed: gradients are WRONG." in capsys.readouterr().out
    assert cli.main([*arguments[:-1], "2"]) == 0
    assert capsys.readouterr().out == captured.out
    assert cli.main(["gradcheck", "--only", "gruu"]) == 2
    assert "rnnlab gradcheck: gradcheck: only is 'gruu', which matches no name" in capsys.readouterr().err


def test_kernels_are_shown_and_compiled(capsys, monkeypatch):
    calls = []
    monkeypatch.setattr(ops, "warm_up", lambda: calls.append(1) or [1.23, 0.0][len(calls) - 1])
    assert cli.main(["kernels"]) == 0
    assert not calls
    shown = capsys.readouterr().out.splitlines()
    assert shown == [ops.describe(), f"GPU: {ops.describe_gpu()}"]
    for said in ("Compiled the kernels in 1.2 s.", "All kernels are in the cache."):
        assert cli.main(["kernels", "--warm-up"]) == 0
        assert capsys.readouterr().out.splitlines() == [*shown, said]


def test_commands_on_a_device(run, recipe, tmp_path, capsys, device):
    commands = [["caption", str(run), "test"], ["discrepancy", str(run), "--split", "val"]]
    if importlib.util.find_spec("pycocoevalcap"):
        commands.append(["evaluate", str(run), "--max-images", "6"])
    printed = []
    for name in ("cpu", "gpu"):
        for command in commands:
            assert cli.main([*command, "--device", name]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    out = str(tmp_path / "run")
    assert cli.main(["train", str(recipe), "--out", out, "--epochs", "1", "--device", "gpu"]) == 0
    assert cli.main(["train", "--resume", out, "--epochs", "2", "--device", "gpu:0", "--graphs"]) == 0
    capsys.readouterr()
    assert cli.main(["train", str(recipe), "--out", f"{out}2", "--graphs"]) == 2
    assert "graphs is true, but the model is on the CPU: CUDA graphs need a GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda", "rnnlab caption: device is 'cuda', expected 'cpu', 'gpu' or 'gpu:N'"),
        ("gpu", "rnnlab caption: device is 'gpu', which needs CuPy: pip install 'rnnlab[cuda12]' or"),
    ],
)
def test_a_device_that_is_not_there(device, message, run, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "rnnlab.ops.cuda.devices", raising=False)
    assert cli.main(["caption", str(run), "test", "--device", device]) == 2
    assert message in capsys.readouterr().err


def test_info_describes_folders_and_recipes(shapes, recipe, capsys):
    assert cli.main(["data", "info", str(shapes)]) == 0
    folder = capsys.readouterr().out
    assert "train" in folder
    assert "300" in folder  # captions
    assert cli.main(["data", "info", str(recipe), "--set", "data.max_train=7"]) == 0
    assert " 7 " in capsys.readouterr().out


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
    options = ["--out", str(tmp_path / "out"), "--min-count", "1", "--pca", "3"]
    assert cli.main(["data", "prepare", *arguments, *options]) == 0
    written = capsys.readouterr().out
    assert cli.main(["data", "info", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == written


def test_an_interrupted_training_says_how_to_go_on(recipe, run, capsys, monkeypatch):
    interrupted = dataclasses.replace(runs.load_run(run), interrupted=True)
    monkeypatch.setattr(runs, "train", lambda *_, **__: interrupted)
    assert cli.main(["train", str(recipe), "--out", "elsewhere"]) == 130
    assert capsys.readouterr().out == f"Resume with: rnnlab train --resume {run}\n"
    options = ["--device", "gpu:1", "--graphs"]
    assert cli.main(["train", str(recipe), "--out", "elsewhere", *options]) == 130
    assert capsys.readouterr().out == f"Resume with: rnnlab train --resume {run} --device gpu:1 --graphs\n"
    assert cli.main(["train", str(recipe), "--out", str(run), *options]) == 2
    assert f"rnnlab train --resume {run} --device gpu:1 --graphs, or" in capsys.readouterr().err


def test_an_interrupted_command_ends_quietly(run, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "load_run", interrupt)
    assert cli.main(["caption", str(run), "val"]) == 130
    assert capsys.readouterr().err == "rnnlab caption: interrupted\n"


def test_every_option_of_a_search_has_its_effect(run, capsys):
    def captions(*options):
        assert cli.main(["caption", str(run), "val", *options]) == 0
        return [line.partition(" ")[2].split() for line in capsys.readouterr().out.splitlines()]

    assert {len(words) for words in captions("--min-length", "12")} == {12}
    greedy = captions("--method", "greedy")
    assert captions("--method", "sample", "--top-k", "1") == greedy
    assert captions("--method", "sample", "--top-p", "1e-9") == greedy
    assert captions("--beam", "1") == greedy
    long = captions("--method", "greedy", "--min-length", "12", "--no-repeat-ngram", "1")
    assert all(len(set(words)) == len(words) for words in long)
    n_best = ("--beam", "4", "--n-best", "4", "--max-images", "1", "--length-penalty", "1")
    lists = [captions(*n_best, *more) for more in ((), ("--normalisation", "gnmt"))]
    assert lists[0] != lists[1]  # the scores are


@pytest.mark.parametrize("option", ["--max-images", "--beam", "--n-best"])
@pytest.mark.parametrize("count", ["0", "-3", "2.5"])
def test_counts_are_at_least_one(run, option, count, capsys):
    with pytest.raises(SystemExit):
        cli.main(["caption", str(run), "val", f"{option}={count}"])
    assert "expected an integer of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "either a recipe or --resume"),
        (["train", "nowhere.toml"], "recipe nowhere.toml does not exist"),
        (["data", "info", "nowhere.toml"], "recipe nowhere.toml does not exist"),
        (["train", "RUN"], "is a directory, expected a recipe"),
        (["train", "TYPO"], "did you mean RECIPE?"),
        (["train", "RECIPE", "--set", "model.hiden_dim=3"], "did you mean hidden_dim"),
        (["train", "--resume", "RUN", "--set", "model.hidden_dim=3"], "are for a new run"),
        (
            ["train", "RECIPE", "--out", "RUN"],
            "resume it with rnnlab train --resume RUN, or choose another directory",
        ),
        (["caption", "nowhere", "val"], "holds no run"),
        (["caption", "RUN", "nothing.png"], "nothing.png"),
        (
            ["caption", "RUN", "val", "--method", "greedy", "--n-best", "2"],
            "n_best is given, but only --method beam uses it",
        ),
        (["caption", "RUN", "val", "--method", "greedy", "--beam", "2"], "only --method beam uses it"),
        (["caption", "RUN", "val", "--diversity", "1"], "--diversity needs several groups"),
        (["caption", "RUN", "val", "--beam", "2", "--temperature", "2"], "only --method sample uses it"),
        (["train", "--resume", "RUN", "--epochs", "1"], "epochs already"),
        (["data", "info", "nowhere", "--set", "a=1"], "is not one"),
        (["evaluate", "RUN", "--split", "dev"], "not 'dev'"),
        (["data", "info", "nowhere"], "nowhere"),
        (["data", "prepare", "--coco", "x.json", "--features", "f", "--out", "o"], "SPLIT=FILE"),
    ],
)
def test_errors_name_what_is_wrong(arguments, message, run, recipe, capsys):
    paths = {"RUN": str(run), "RECIPE": str(recipe), "TYPO": str(recipe.with_name("tony.toml"))}
    for name, path in paths.items():
        message = message.replace(name, path)
    assert cli.main([paths.get(argument, argument) for argument in arguments]) == 2
    captured = capsys.readouterr().err
    assert message in captured
    assert len(captured.splitlines()) == 1


def test_a_recipe_is_suggested_from_the_folder_of_recipes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "shapes"]) == 2
    assert "recipe shapes does not exist, expected a TOML file such as" in capsys.readouterr().err
    (tmp_path / "recipes").mkdir()
    for name in ("shapes", "multi30k"):
        (tmp_path / "recipes" / f"{name}.toml").touch()
    assert cli.main(["train", "shaeps"]) == 2
    assert "recipe shaeps does not exist; did you mean recipes/shapes.toml?" in capsys.readouterr().err
    assert cli.main(["train", "else/x.toml"]) == 2
    assert "does not exist; there are recipes/multi30k.toml, recipes/shapes.toml" in capsys.readouterr().err


@pytest.mark.parametrize("error", [TypeError, KeyError, IndexError, ZeroDivisionError, AttributeError])
def test_a_bug_shows_its_traceback(error, run, monkeypatch):
    def fail(*_, **__):
        raise error("ours")

    monkeypatch.setattr(runs, "load_run", fail)
    with pytest.raises(error):
        cli.main(["caption", str(run), "val"])


def test_an_import_that_fails_is_a_bug_and_a_missing_extra_is_not(run, monkeypatch, capsys):
    def missing(*_, **__):
        raise ImportError("needs scikit-learn: pip install ...")

    monkeypatch.setattr(runs, "load_run", missing)
    assert cli.main(["caption", str(run), "val"]) == 2
    assert "needs scikit-learn" in capsys.readouterr().err
    monkeypatch.setattr(runs, "load_run", lambda *_, **__: importlib.import_module("rnnlab.nothing"))
    with pytest.raises(ModuleNotFoundError):
        cli.main(["caption", str(run), "val"])


def test_traceback_on_request(run):
    with pytest.raises(ValueError, match="not 'dev'"):
        cli.main(["--traceback", "evaluate", str(run), "--split", "dev"])


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_a_command_alone_prints_its_help(arguments, capsys):
    assert cli.main(arguments) == 0
    assert "show this help message" in capsys.readouterr().out
