"""The times of kernels, with operations on the CPU in their place."""

import json
import os
import threading

import pytest

from benchmarks import gpu, kernels, lstm
from benchmarks.kernels import Kernel, Profile

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch):
    monkeypatch.setattr(kernels, "_PROFILED", ("CPU", "self_cpu_time_total"))
    monkeypatch.setattr(kernels, "_lock", threading.Lock())


def test_kernels_of_one_call():
    x, waits = torch.ones(300, 300), []

    def work():
        x.mm(x)
        x.mm(x)
        torch.ones(2).add_(1)

    found = kernels.kernels_of(work, lambda: waits.append(1))
    launches = {kernel.name: kernel.launches for kernel in found}
    assert (launches["aten::mm"], launches["aten::add_"]) == (2, 1)
    assert found[0].name == "aten::mm"
    times = [kernel.microseconds for kernel in found]
    assert times == sorted(times, reverse=True)
    assert len(waits) == 4


def test_the_profile_of_a_side(simulated, monkeypatch):
    monkeypatch.setenv("RNNLAB_PERSISTENT", "0")  # prepare sets it
    monkeypatch.setenv("RNNLAB_MATMUL", "")
    sizes = lstm.Sizes(2, 3, 4, 5)
    monkeypatch.setattr(lstm, "GPU", gpu.Plan({"a case": sizes}, ("rnnlab",), {"a case": {}}))
    before = simulated.launches["lstm_forward"]
    profile = kernels.profile_side("lstm", "a case", "rnnlab")
    assert (profile.suite, profile.case, profile.side) == ("lstm", "a case", "rnnlab")
    assert profile.milliseconds > 0
    assert simulated.launches["lstm_forward"] >= before + 3 * (3 + 1 + kernels._CALLS)


@pytest.mark.slow
def test_each_side_has_a_process():
    asked = "(__import__('os').getpid(), __import__('benchmarks.kernels').kernels._lock is not None)"
    found = list(kernels.measure([(asked, {}, {})] * 3, eval))
    assert len({os.getpid(), *(process for process, _ in found)}) == 4
    assert [has_lock for _, has_lock in found] == [True] * 3


def test_tables(monkeypatch, tmp_path, capsys):
    asked = []

    def measure(sides):
        asked.extend(sides)
        found = [Kernel("gemm", 3, 60.0), Kernel("cells", 16.5, 30.0), Kernel("sum", 1, 10.0)]
        return [Profile(*each, 0.25, found) for each in sides]

    monkeypatch.setattr(kernels, "measure", measure)
    monkeypatch.setattr(gpu, "lacking", lambda: "")
    monkeypatch.setattr(gpu, "about", lambda: "a GPU")
    file = tmp_path / "kernels.json"
    arguments = ["captioning", "--case", "10516", "--side", "packed", "--most", "2", "--json", str(file)]
    assert kernels.main(arguments) == 0
    (side,) = asked
    assert side == ("captioning", "N=128 T=16 H=512 V=10516", "torch packed")
    first, empty, title, *rows = capsys.readouterr().out.splitlines()
    assert (first, empty, title) == ("a GPU", "", "captioning: N=128 T=16 H=512 V=10516, torch packed")
    assert [row.split() for row in rows] == [
        ["us", "share", "launches", "kernel"],
        ["60.0", "60%", "3", "gemm"],
        ["30.0", "30%", "16.5", "cells"],
        ["100.0", "20.5", "all", "kernels"],
        ["250.0", "one", "call"],
    ]
    (written,) = json.loads(file.read_text())
    assert written["kernels"][2] == {"name": "sum", "launches": 1, "microseconds": 10.0}
    assert kernels.main([*arguments, "--markdown"]) == 0
    assert "\n### captioning: N=128 T=16 H=512 V=10516, torch packed\n" in capsys.readouterr().out


def test_what_is_measured_before_the_end_is_written(monkeypatch, tmp_path):
    def measure(sides):
        yield Profile(*sides[0], 0.25, [Kernel("gemm", 3, 60.0)])
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "measure", measure)
    monkeypatch.setattr(gpu, "lacking", lambda: "")
    monkeypatch.setattr(gpu, "about", lambda: "a GPU")
    file = tmp_path / "kernels.json"
    with pytest.raises(KeyboardInterrupt):
        kernels.main(["captioning", "--json", str(file)])
    (written,) = json.loads(file.read_text())
    assert written["kernels"] == [{"name": "gemm", "launches": 3, "microseconds": 60.0}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["memory"], "SUITE is 'memory', which has no cases for a GPU"),
        (["nothing"], "SUITE is 'nothing', which has no cases for a GPU"),
        (["lstm", "--case", "V="], "no case and side of these suites has these names"),
    ],
)
def test_unknown_names(arguments, message, capsys):
    with pytest.raises(SystemExit):
        kernels.main(arguments)
    assert message in capsys.readouterr().err


def test_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "lacking", lambda: "there is no GPU")
    assert kernels.main(["lstm"]) == 2
    assert capsys.readouterr().err == "python -m benchmarks kernels: there is no GPU\n"
