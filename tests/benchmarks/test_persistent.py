"""The table of where one launch is faster, on the stand-in."""

import importlib
import json

import pytest

from benchmarks import gpu, lstm, persistent


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(persistent, "STEPS", 2)
    monkeypatch.setenv("RNNLAB_PERSISTENT", "0")  # prepare sets it


def test_ratios_and_a_size_that_does_not_fit(simulated, monkeypatch, tmp_path, capsys):
    cuda = importlib.import_module("rnnlab.ops.cuda.persistent")
    cuda.layout_on.cache_clear()
    monkeypatch.setattr(cuda, "_limits", lambda device: (4, 4000))
    in_one = {}  # whether a work launches all steps together

    def prepare(*arguments):
        before = simulated.launches["lstm_steps_forward"]
        work = lstm.prepare(*arguments)
        in_one[work] = simulated.launches["lstm_steps_forward"] > before
        return work

    def milliseconds(work):
        work()
        return 1.0 if in_one[work] else 3.0

    monkeypatch.setattr(persistent, "prepare", prepare)
    monkeypatch.setattr(gpu, "our_milliseconds", milliseconds)
    file = tmp_path / "times.json"
    assert (
        persistent.main(["--rows", "1", "3", "--units", "4", "40", "--rounds", "2", "--json", str(file)]) == 0
    )
    cuda.layout_on.cache_clear()
    assert [line.split() for line in capsys.readouterr().out.splitlines()[2:]] == [
        ["H", "N=1", "N=3"],
        ["4", "3.00", "3.00"],
        ["40"],
    ]
    assert json.loads(file.read_text()) == [
        {"N": N, "H": H, "step by step": 3.0, "one launch": one}
        for H, one in ((4, 1.0), (40, None))
        for N in (1, 3)
    ]
    assert list(in_one.values()) == [False, True, False, True, False, False]


def test_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "no_device", lambda: "there is no GPU")
    assert persistent.main([]) == 2
    assert capsys.readouterr().err == "python -m benchmarks persistent: there is no GPU\n"
