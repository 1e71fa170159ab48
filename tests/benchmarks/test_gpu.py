"""Every side of every case for a GPU computes what rnnlab does on the CPU, with sizes of a few units."""

import gc
import importlib
import json
import os
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import arnet, attention, captioning, decoding, gpu, lstm, pmnist, pytorch, review, turns

torch = pytest.importorskip("torch")

CAPTIONS = captioning.Sizes(N=4, T=7, D=6, W=4, H=8, V=20, mean=4, spread=2, least=2, most=6)
SEARCHED = captioning.Sizes(N=12, T=21, D=16, W=16, H=16, V=50)
TINY = {
    lstm: lambda sizes: sizes._replace(N=3, T=4, D=5, H=6),
    captioning: lambda sizes: CAPTIONS,
    attention: lambda sizes: sizes._replace(L=5, A=3, captions=CAPTIONS),
    arnet: lambda sizes: sizes._replace(R=3, captions=CAPTIONS),
    decoding: lambda sizes: sizes._replace(images=12, model=SEARCHED),
    review: lambda sizes: sizes._replace(steps=2, model=sizes.model._replace(L=5, A=3, captions=CAPTIONS)),
    pmnist: lambda sizes: sizes._replace(batches=2, N=3, T=5, H=6),
}
# Cases that differ in more than their sizes; nn.GRUCell, in "torch nn", is another cell than ours.
SIDES = [
    (suite, case, side)
    for suite, case in [
        *((suite, next(iter(suite.GPU.cases))) for suite in TINY),
        (attention, list(attention.CASES)[1]),
    ]
    for side in suite.GPU.sides
    if not (side == "torch nn" and suite.GPU.cases[case].cell == "gru")
]


@pytest.fixture(autouse=True)
def _comparable(monkeypatch):
    """No noise, which differs; all of PyTorch on the CPU, and nothing compiled."""
    for suite in (captioning, attention, review):
        monkeypatch.setattr(suite, "DROPOUT", dict.fromkeys(suite.DROPOUT, 0.0))
    monkeypatch.setattr(review, "REVIEWER_DROPOUT", 0.0)
    monkeypatch.setenv("RNNLAB_PERSISTENT", "0")  # the suite lstm sets it
    monkeypatch.setattr(arnet, "RECONSTRUCTION", 0.5)
    monkeypatch.setattr(decoding, "END_BIAS", 1)
    monkeypatch.setitem(pytorch.DEVICES, "gpu", "cpu")
    monkeypatch.setattr(torch, "compile", lambda function: function)


def ends(outcome):
    """What sides may be compared by: losses and sentences as they are, gradients by their norms."""
    if not isinstance(outcome, tuple):
        return outcome
    arrays = [array.get() if hasattr(array, "get") else np.asarray(array) for array in outcome]
    return sorted(np.linalg.norm(array) for array in arrays if array.any())


def test_the_suites_of_the_command_are_those_that_have_cases():
    suites = {name: importlib.import_module(f"benchmarks.{name}") for name in command.SUITES}
    assert set(command.GPU_SUITES) == {name for name, suite in suites.items() if hasattr(suite, "GPU")}
    assert {suites[name] for name in command.GPU_SUITES} == set(TINY)


@pytest.mark.parametrize("suite", TINY, ids=lambda suite: suite.__name__)
def test_a_suite_has_what_the_command_needs(suite):
    assert suite.GPU.cases.keys() == suite.GPU.targets.keys()
    names = {side.split()[0] for side in suite.GPU.sides}
    assert all({"rnnlab", *targets} == names for targets in suite.GPU.targets.values())


def test_another_precision_of_ours_is_for_cases_of_full_precision():
    for suite in TINY:
        for case, sizes in suite.GPU.cases.items():
            sides = suite.GPU.sides_of(case)
            assert sides == [
                side
                for side in suite.GPU.sides
                if not (getattr(sizes, "tf32", False) and side.endswith("tf32x3"))
            ]
            assert any(side.endswith("tf32x3") for side in sides) != getattr(sizes, "tf32", False)


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "case", "side"), SIDES)
def test_the_sides_compute_the_same(simulated, suite, case, side):
    sizes = TINY[suite](suite.GPU.cases[case])
    first = next(each for each in suite.GPU.sides if each.startswith("rnnlab"))
    expected, work = suite.prepare(first, sizes), suite.prepare(side, sizes, "gpu")
    for _ in range(2 if suite is decoding else 3):  # later losses depend on gradients and on Adam
        theirs, ours = ends(expected()), ends(work())
        if suite is decoding:
            assert sum(a != b for a, b in zip(theirs, ours, strict=True)) <= 1  # but for a tie in float32
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("suite", TINY, ids=lambda suite: suite.__name__)
def test_our_side_works_on_the_gpu(simulated, suite):
    side = next(each for each in suite.GPU.sides if each.startswith("rnnlab"))
    sizes = TINY[suite](next(iter(suite.GPU.cases.values())))
    gc.collect()  # what other tests have left
    used = simulated.get_default_memory_pool().used_bytes()
    work = suite.prepare(side, sizes, "gpu")
    assert simulated.get_default_memory_pool().used_bytes() > used
    assert not simulated.launches
    work()
    assert simulated.launches


def test_pytorch_is_compiled_where_the_side_says_so(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda function: compiled.append(function) or function)
    for side in captioning.GPU.sides:
        captioning.prepare(side, CAPTIONS)
        assert len(compiled) == (side == "torch.compile")


def test_the_clock_waits_before_and_after_and_takes_the_median(monkeypatch):
    now, durations, waits = [0.0], iter([3.0, 1.0, 20.0]), []

    def work():
        now[0] += next(durations)

    monkeypatch.setattr(gpu.time, "perf_counter", lambda: now[0])
    assert gpu.milliseconds(work, lambda: waits.append(now[0])) == 3000
    assert waits == [0, 3, 3, 4, 4, 24]


def test_a_side_begins_with_its_precision_and_its_clock(simulated, monkeypatch):
    monkeypatch.setenv("RNNLAB_MATMUL", "")
    case = next(case for case, sizes in lstm.GPU.cases.items() if sizes.tf32)
    prepared = []

    def prepare(side, sizes, device):
        prepared.append((side, sizes, device, os.environ["RNNLAB_MATMUL"]))
        return lambda: simulated.zeros(1)

    work, measure = gpu.begin(SimpleNamespace(GPU=lstm.GPU, prepare=prepare), "rnnlab", case)
    assert prepared == [("rnnlab", lstm.GPU.cases[case], "gpu", "tf32")]
    assert measure(work) > 0
    assert simulated.transfers.synchronisations >= 6


def test_precision(monkeypatch):
    monkeypatch.setenv("RNNLAB_MATMUL", "")
    flags = [torch.backends.cuda.matmul, torch.backends.cudnn]
    before = [flag.allow_tf32 for flag in flags]
    try:
        for on in (True, False):
            gpu.use_precision("torch time-first", on)
            assert [flag.allow_tf32 for flag in flags] == [on, on]
            gpu.use_precision("rnnlab 100", on)
            assert os.environ["RNNLAB_MATMUL"] == ("tf32" if on else "float32")
            gpu.use_precision("rnnlab graphs tf32x3", on)
            assert os.environ["RNNLAB_MATMUL"] == "tf32x3"
    finally:
        for flag, value in zip(flags, before, strict=True):
            flag.allow_tf32 = value


class Process:
    """One that measures 1, 2 and 9."""

    started: ClassVar[list] = []

    def __init__(self, command):
        self.started.append(command)
        self._times = iter((1.0, 2.0, 9.0))

    def answer(self):
        return "ready"

    def turn(self):
        return next(self._times)

    def end(self):
        pass


@pytest.fixture
def _processes(monkeypatch):
    monkeypatch.setattr(turns, "Process", Process)
    monkeypatch.setattr(Process, "started", [])


@pytest.mark.usefixtures("_processes")
def test_over_the_rounds():
    result = turns.measure("lstm", "a case", ["rnnlab"], rounds=3)
    assert result.measured == {"rnnlab": 1.0}
    assert Process.started == [["lstm", "rnnlab", "a case", "cpu"]]


@pytest.mark.usefixtures("_processes")
@pytest.mark.parametrize("at_once", [1, 2, 4, 30])
def test_over_the_rounds_on_a_gpu(monkeypatch, at_once):
    monkeypatch.setattr(turns, "_AT_ONCE", at_once)
    cases = [(case, ("rnnlab", "torch")) for case in ("one", "two", "three")]
    began = []
    for number, result in enumerate(turns.measure_on_gpu("lstm", cases, rounds=3), 1):
        assert (result.case, result.measured) == (cases[number - 1][0], {"rnnlab": 2.0, "torch": 2.0})
        began.append(len(Process.started))
    assert Process.started == [["lstm", side, case, "gpu"] for case, sides in cases for side in sides]
    assert began == {1: [2, 4, 6], 2: [2, 4, 6], 4: [4, 4, 6], 30: [6, 6, 6]}[at_once]


def test_a_suite_without_cases_for_a_gpu(capsys):
    with pytest.raises(SystemExit):
        command.main(["lstm", "memory", "--device", "gpu"])
    suites = ", ".join(command.GPU_SUITES)
    assert f"memory is not for a GPU: with --device gpu, some of {suites}\n" in capsys.readouterr().err


def test_what_is_lacking(simulated, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    assert gpu.lacking() == f"PyTorch {torch.__version__} is built without CUDA"
    monkeypatch.setattr(torch.version, "cuda", "12.9")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.lacking() == f"PyTorch {torch.__version__} finds no GPU"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert gpu.lacking() == ""
    assert gpu.about().endswith("; rnnlab on simulated, 16.0 GiB, CuPy 14.0.0")
    monkeypatch.setattr(simulated.cuda.runtime, "getDeviceCount", lambda: 0)
    assert gpu.lacking() == "device is 'gpu', but there are 0 GPUs, numbered from 0"


def test_one_line_where_something_is_lacking(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "lacking", lambda: "there is no GPU")
    assert command.main(["--device", "gpu"]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "python -m benchmarks: there is no GPU\n")


def test_the_command_measures_the_cases_for_a_gpu(monkeypatch, capsys):
    measured = []

    def measure(name, cases, *, rounds):
        for case, sides in cases:
            measured.append((name, case))
            rounds = {side: [2.0 if side == "rnnlab" else 5.0] for side in sides}
            yield turns.Result(name, case, "ms", {side: times[0] for side, times in rounds.items()}, rounds)

    monkeypatch.setattr(gpu, "lacking", lambda: "")
    monkeypatch.setattr(gpu, "about", lambda: "a GPU")
    monkeypatch.setattr(command, "measure_on_gpu", measure)
    assert command.main(["lstm", "captioning", "--device", "gpu"]) == 0
    suites = (("lstm", lstm), ("captioning", captioning))
    assert measured == [(name, case) for name, suite in suites for case in suite.GPU.cases]
    assert capsys.readouterr().out.endswith("20 targets, 0 missed\n")


def test_what_is_measured_before_the_end_is_written(monkeypatch, tmp_path):
    def measure(name, cases, *, rounds):
        case, sides = cases[0]
        yield turns.Result(name, case, "ms", dict.fromkeys(sides, 2.0), {side: [2.0] for side in sides})
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "lacking", lambda: "")
    monkeypatch.setattr(gpu, "about", lambda: "a GPU")
    monkeypatch.setattr(command, "measure_on_gpu", measure)
    file = tmp_path / "suites.json"
    with pytest.raises(KeyboardInterrupt):
        command.main(["lstm", "--device", "gpu", "--json", str(file)])
    report = json.loads(file.read_text())
    case = next(iter(lstm.GPU.cases))
    assert [(result["suite"], result["case"]) for result in report["results"]] == [("lstm", case)]
    assert report["about"].endswith("; a GPU")
    assert report["rows"]
