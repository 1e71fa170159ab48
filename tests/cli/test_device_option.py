"""Errors of ``--device`` and ``--graphs`` where there is no GPU."""

import sys

import pytest

from rnnlab import cli


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
