"""Every command of every task on a GPU: what it prints and writes there is what it does on the CPU."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shutil

import numpy as np
import pytest

from rnnlab import cli
from rnnlab.data import write_shapes

from .. import quick_runs

CAPTIONING = """
[data]
kind = "shapes"
directory = "{folder}/shapes"
features = "local"
[model]
attention = "additive"
attention_dim = 6
target_attention = true
wordvec_dim = 8
hidden_dim = 10
output_dropout = 0.1
regularisation = {{ zoneout_h = 0.1, recurrent_dropout = 0.1 }}
[training]
num_epochs = 2
batch_size = 12
[decoding]
method = "greedy"
max_length = 6
[evaluation]
metrics = ["BLEU"]
"""
TRANSLATION = """
[data]
kind = "parallel"
directory = "{folder}"
source = "src"
target = "trg"
tokenizer = "spaces"
[model]
cell_type = "gru"
wordvec_dim = 8
hidden_dim = 10
[training]
num_epochs = 2
batch_size = 10
[decoding]
max_length = 6
"""
CLASSIFICATION = """
[data]
kind = "digits"
max_train = 100
[model]
hidden_dim = 8
[training]
num_epochs = 2
batch_size = 50
[evaluation]
split = "test"
max_images = 30
"""
RECIPES = {"captioning": CAPTIONING, "translation": TRANSLATION, "classification": CLASSIFICATION}
needs_scorers = pytest.mark.skipif(
    importlib.util.find_spec("pycocoevalcap") is None, reason="the extra eval is not installed"
)
needs_digits = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="the extra sklearn is not installed"
)
every_task = pytest.mark.parametrize(
    "task", ["captioning", "translation", pytest.param("classification", marks=needs_digits)]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data and a recipe for each task."""
    folder = tmp_path_factory.mktemp("tasks")
    write_shapes(folder / "shapes", {"train": 5, "val": 3, "test": 2})
    rng = np.random.default_rng(1)
    for split, count in (("train", 60), ("val", 12), ("test", 6)):
        lines = [" ".join(rng.choice(list("abcd"), rng.integers(2, 6))) for _ in range(count)]
        (folder / f"{split}.src").write_text("\n".join(lines) + "\n")
        (folder / f"{split}.trg").write_text("\n".join(line.upper() for line in lines) + "\n")
    for task, recipe in RECIPES.items():
        (folder / f"{task}.toml").write_text(recipe.format(folder=folder))
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    """The run of a task, trained on the CPU when it is first asked for."""
    runs = {}

    def run(task):
        if task not in runs:
            runs[task] = quick_runs.train(folder / f"{task}.toml", folder / f"run_{task}")
        return runs[task]

    return run


@pytest.fixture
def on_both(capsys, device):
    """Run a command on the CPU and on the GPU; return what it printed there."""

    def on_both(*command):
        printed = []
        for name in ("cpu", "gpu"):
            capsys.readouterr()
            assert cli.main([*map(str, command), "--device", name]) == 0
            printed.append(capsys.readouterr().out)
        return printed

    return on_both


def assert_close(one, other):
    """The same but for the rounding of numbers, in JSON or text."""
    number = re.compile(r"-?\d+\.\d+")
    assert number.sub("#", one) == number.sub("#", other)
    values = [[float(found) for found in number.findall(text)] for text in (one, other)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-3, atol=2e-3)


def history(run):
    return list(csv.DictReader((run / "history.csv").read_text().splitlines()))


@pytest.mark.slow
@every_task
@pytest.mark.parametrize("graphs", [["--no-graphs"], []], ids=["steps", "graphs"])
def test_train_and_resume(task, graphs, folder, trained, tmp_path, device):
    """Two epochs in two calls on the GPU are the two epochs of one call on the CPU."""
    expected, out = history(trained(task)), tmp_path / "run"
    tolerance = 1e-3 if graphs else 0.05  # graphs pad their batches, so that masks drop other elements
    train = ["train", str(folder / f"{task}.toml"), "--out", str(out), "--epochs", "1"]
    assert cli.main([*train, "--device", "gpu", "--no-progress", *graphs]) == 0
    resume = ["train", "--resume", str(out), "--epochs", "2"]
    assert cli.main([*resume, "--device", "gpu:0", "--no-progress", *graphs]) == 0
    found = history(out)
    assert len(found) == len(expected) == 2
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        assert float(one["val_loss"]) == pytest.approx(float(other["val_loss"]), rel=tolerance)


@pytest.mark.parametrize(
    "options",
    [[], ["--beam", "3", "--n-best", "2"], ["--method", "sample", "--seed", "3"]],
    ids=["recipe", "beam", "sample"],
)
def test_caption(options, trained, on_both):
    cpu, gpu = on_both("caption", trained("captioning"), "val", *options)
    assert len(cpu.splitlines()) >= 3
    assert_close(cpu, gpu)


@pytest.mark.slow
def test_caption_with_attention(trained, tmp_path, on_both):
    on_both("caption", trained("captioning"), "val_00001.png", "--show-attention", tmp_path / "looks.png")
    assert (tmp_path / "looks.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "options", [[], ["--beam", "3", "--n-best", "2"], ["--method", "sample", "--seed", "3"]]
)
def test_translate(options, trained, on_both):
    cpu, gpu = on_both("translate", trained("translation"), "a b c", "d", *options)
    assert cpu.strip()
    assert_close(cpu, gpu)


def test_translate_with_attention(trained, tmp_path, on_both):
    on_both("translate", trained("translation"), "a b c", "--show-attention", tmp_path / "looks.png")
    assert (tmp_path / "looks.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "task",
    [
        pytest.param("captioning", marks=needs_scorers),
        pytest.param("translation", marks=needs_scorers),
        pytest.param("classification", marks=needs_digits),
    ],
)
def test_evaluate(task, trained, tmp_path, on_both):
    scores = tmp_path / "scores.json"
    cpu, gpu = on_both("evaluate", trained(task), "--split", "test", "--json", scores)
    assert_close(cpu, gpu)
    assert json.loads(scores.read_text())


@pytest.mark.parametrize(
    ("task", "options"),
    [
        pytest.param("captioning", ["--average", "log_probabilities"], marks=needs_scorers),
        pytest.param("translation", ["--metrics", "CS-k"]),
        pytest.param("classification", [], marks=needs_digits),
    ],
)
def test_evaluate_an_ensemble(task, options, trained, tmp_path, on_both):
    again = shutil.copytree(trained(task), tmp_path / "again")
    cpu, gpu = on_both("evaluate", trained(task), again, "--split", "test", *options)
    assert "an ensemble of 2 runs" in cpu
    assert_close(cpu, gpu)


@pytest.mark.parametrize("task", ["captioning", "translation"])
def test_discrepancy(task, trained, on_both):
    cpu, gpu = on_both("discrepancy", trained(task), "--split", "val")
    assert_close(cpu, gpu)


def test_lexicon(trained, tmp_path, on_both):
    on_both("lexicon", trained("translation"), tmp_path / "lexicon.tsv")
    assert (tmp_path / "lexicon.tsv").read_text().strip()


def test_gradcheck(capsys, device):
    assert cli.main(["gradcheck", "--only", "affine", "--jobs", "1", "--device", "gpu"]) == 0
    assert "affine" in capsys.readouterr().out


def test_kernels(simulated, capsys):
    assert cli.main(["kernels"]) == 0
    assert "GPU: simulated, 16.0 GiB" in capsys.readouterr().out
