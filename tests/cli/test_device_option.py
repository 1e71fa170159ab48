"""Errors of ``--device`` and ``--graphs`` where there is no GPU; ``--matmul`` of all commands."""

import sys

import pytest

from rnnlab import cli
from rnnlab.cli import evaluate
from rnnlab.ops import describe_products
from rnnlab.ops.precision import products_in, products_precision
from rnnlab.training import load_checkpoint


def test_graphs_need_a_gpu(recipe, tmp_path, capsys):
    assert cli.main(["train", str(recipe), "--out", str(tmp_path / "run"), "--graphs"]) == 2
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


def test_a_run_is_trained_and_resumed_in_a_precision(recipe, tmp_path, capsys):
    out, words = tmp_path / "run", ["--no-progress", "--matmul"]
    short = ["--epochs", "1", "--set", "data.max_train=10"]
    for command, matmul in (
        (["train", str(recipe), "--out", str(out), *short], "bfloat16"),
        (["train", "--resume", str(out), "--epochs", "2"], "tf32"),
    ):
        assert cli.main([*command, *words, matmul]) == 0
        saved = load_checkpoint(out / "last.h5")
        assert saved.solver["options"]["matmul"] == saved.config["training"]["matmul"] == matmul
        with products_in(matmul):
            assert capsys.readouterr().out.splitlines()[0] == describe_products()
