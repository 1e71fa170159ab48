"""``--device``: a GPU gives the results of the CPU, and a missing one is reported."""

import importlib
import importlib.util
import sys

import pytest

from rnnlab import cli


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
