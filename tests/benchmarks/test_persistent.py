"""The table of where one launch is faster, on the stand-in."""

import importlib
import json
import sys

import pytest

from benchmarks import gpu, lstm, persistent


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(persistent, "STEPS", 2)
    monkeypatch.setenv("RNNLAB_PERSISTENT", "0")  # prepare sets it
    yield
    for module, layouts in (("persistent", "layout_on"), ("whole_sequences", "whole_layout_on")):
        if loaded := sys.modules.get(f"rnnlab.ops.cuda.{module}"):
            getattr(loaded, layouts).cache_clear()


def test_ratios_and_sizes_that_do_not_fit(simulated, monkeypatch, tmp_path, capsys):
    cuda = importlib.import_module("rnnlab.ops.cuda.persistent")
    cuda.layout_on.cache_clear()
    monkeypatch.setattr(cuda, "_limits", lambda device: (4, 4000))
    took = {"lstm_forward": 3.0, "lstm_steps_forward": 2.0, "lstm_sequences_forward": 1.0}
    works = {}  # the kernel that each launches

    def prepare(*arguments):
        before = simulated.launches.copy()
        work = lstm.prepare(*arguments)
        (works[work],) = set(took) & set(simulated.launches - before)
        return work

    def milliseconds(work):
        work()
        return took[works[work]]

    monkeypatch.setattr(persistent, "prepare", prepare)
    monkeypatch.setattr(gpu, "our_milliseconds", milliseconds)
    file = tmp_path / "times.json"
    arguments = ["--rows", "1", "3", "--units", "4", "40", "130", "--rounds", "2", "--json", str(file)]
    assert persistent.main(arguments) == 0
    cuda.layout_on.cache_clear()
    assert [line.split() for line in capsys.readouterr().out.splitlines()[2:]] == [
        ["H", "N=1", "N=3"],
        ["4", "1.50", "3.00", "1.50", "3.00"],
        ["40", "-", "3.00", "-", "3.00"],
        ["130", "-", "-", "-", "-"],
    ]
    assert json.loads(file.read_text()) == [
        {"N": N, "H": H, "step by step": 3.0, "barriers": barriers, "blocks": blocks}
        for H, barriers, blocks in ((4, 2.0, 1.0), (40, None, 1.0), (130, None, None))
        for N in (1, 3)
    ]


def test_rows_of_the_weight_in_registers(simulated, monkeypatch, tmp_path, capsys):
    """Each number is measured, the other ways once."""
    whole, measured = importlib.import_module("rnnlab.ops.cuda.whole_sequences"), []
    monkeypatch.setattr(whole, "HELD", {4: {1: 24, 2: 22, 4: 18}})
    launch = whole.launch

    def recording(name, *arguments):
        measured.append(arguments[-1][-1])
        launch(name, *arguments)

    monkeypatch.setattr(whole, "launch", recording)
    times = iter([3.0, 1.0, 2.0, 1.5])
    monkeypatch.setattr(gpu, "our_milliseconds", lambda work: next(times))
    file = tmp_path / "times.json"
    sizes = ["--rows", "1", "--units", "4", "--rounds", "1", "--json", str(file)]
    assert persistent.main([*sizes, "--held", "3", "5"]) == 0
    assert list(dict.fromkeys(measured)) == ["-DHELD=3", "-DHELD=5"]
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[3:]]
    assert rows == [["4,", "3", "3.00", "1.50"], ["4,", "5", "3.00", "2.00"]]
    common = {"N": 1, "H": 4, "step by step": 3.0, "barriers": 1.0}
    different = {"held": 3, "blocks": 2.0}, {"held": 5, "blocks": 1.5}
    assert json.loads(file.read_text()) == [common | each for each in different]


def test_what_is_measured_before_the_end_is_written(simulated, monkeypatch, tmp_path):
    times = iter([3.0, 1.0, 2.0])  # of one size

    def milliseconds(work):
        if (time := next(times, None)) is None:
            raise KeyboardInterrupt
        return time

    monkeypatch.setattr(gpu, "our_milliseconds", milliseconds)
    file = tmp_path / "times.json"
    with pytest.raises(KeyboardInterrupt):
        persistent.main(["--rows", "1", "2", "--units", "4", "--rounds", "1", "--json", str(file)])
    assert [(row["N"], row["blocks"]) for row in json.loads(file.read_text())] == [(1, 2.0)]


def test_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "no_device", lambda: "there is no GPU")
    assert persistent.main([]) == 2
    assert capsys.readouterr().err == "python -m benchmarks persistent: there is no GPU\n"
