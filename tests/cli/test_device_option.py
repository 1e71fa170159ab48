"""Errors of ``--device`` and ``--graphs`` where there is no GPU; ``--matmul`` of all commands."""

import sys

import pytest

from rnnlab import cli
from rnnlab.cli import evaluate
from rnnlab.ops import describe_products, precision
from rnnlab.ops.precision import products_in, products_precision
from rnnlab.training import load_checkpoint


def test_graphs_need_a_gpu(recipe, tmp_path, capsys):
    assert cli.main(["train", str(recipe), "--out", str(tmp_path / "run"), "--graphs"]) == 2
    assert "graphs is true, but the model is on the CPU: CUDA graphs need a GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda", "rnnlab caption: device is 'cuda', expected 'cpu', 'gpu' or 'gpu:N'"),
        ("gpu", "rnnlab caption: device is 'gpu', which needs CuPy: pip install \"rnnlab[cuda12]\" or"),
    ],
)
def test_a_device_that_is_not_there(device, message, run, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "rnnlab.ops.cuda.devices", raising=False)
    assert cli.main(["caption", str(run), "test", "--device", device]) == 2
    assert message in capsys.readouterr().err


def test_a_command_computes_in_the_precision_that_it_is_given(monkeypatch):
    seen, before = [], products_precision()
    monkeypatch.setattr(evaluate, "_evaluate", lambda options: seen.append(products_precision()) or 0)
    for words in (["--matmul", "bfloat16"], []):
        assert cli.main(["evaluate", "somewhere", *words]) == 0
    assert seen == ["bfloat16", before]
    assert products_precision() == before


COMMANDS = {
    "train": [], "sweep": ["r"], "caption": ["r", "test"], "translate": ["r", "a"], "lexicon": ["r", "f"],
    "serve": ["r"], "evaluate": ["r"], "report": ["r"], "compare": ["r"], "discrepancy": ["r"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_computes_has_it(command, capsys):
    with pytest.raises(SystemExit):
        cli.main([command, *COMMANDS[command], "--matmul", "half"])
    assert "argument --matmul: invalid choice: 'half'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_is_trained_and_resumed_in_a_precision(recipe, tmp_path, capsys):
    out, words = tmp_path / "run", ["--no-progress", "--matmul"]
    short = ["--epochs", "1", "--set", "data.max_train=10"]
    for command, matmul, first in (
        (["train", str(recipe), "--out", str(out), *short], "bfloat16", []),
        (["train", "--resume", str(out), "--epochs", "2"], "tf32", ["From iteration 2 on, matmul is tf32."]),
    ):
        assert cli.main([*command, *words, matmul]) == 0
        saved = load_checkpoint(out / "last.h5")
        assert saved.solver["options"]["matmul"] == saved.config["training"]["matmul"] == matmul
        with products_in(matmul):
            first = [*first, describe_products()]
        assert capsys.readouterr().out.splitlines()[: len(first)] == first
    assert [row.get("former_matmul") for row in saved.history] == [None, "bfloat16"]


@pytest.mark.parametrize("spaces", ["", " "])
def test_the_option_and_the_key_are_not_given_together(spaces, recipe, tmp_path, capsys):
    override = f"training.matmul{spaces}=tf32"
    words = ["--matmul", "bfloat16", "--set", override, "--out", str(tmp_path / "run")]
    assert cli.main(["train", str(recipe), *words]) == 2
    message = f"--matmul bfloat16 and --set {override} are both given, expected one"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_bad_precision_of_the_environment_is_an_error_before_any_work(
    recipe, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("RNNLAB_MATMUL", "half")
    precision._of_process.cache_clear()
    try:
        assert cli.main(["train", str(recipe), "--out", str(tmp_path / "run")]) == 2
    finally:
        precision._of_process.cache_clear()
    assert "RNNLAB_MATMUL is 'half', expected" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_choice_about_graphs_is_kept(recipe, tmp_path):
    out = tmp_path / "run"
    short = ["--epochs", "1", "--set", "data.max_train=10", "--no-progress"]
    assert cli.main(["train", str(recipe), "--out", str(out), *short, "--no-graphs"]) == 0
    assert load_checkpoint(out / "last.h5").solver["options"]["graphs"] is False
    assert cli.main(["train", "--resume", str(out), "--epochs", "2", "--no-progress"]) == 0
    assert load_checkpoint(out / "last.h5").solver["options"]["graphs"] is False
