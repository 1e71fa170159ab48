"""Steps of several ranks, and the model of their times."""

import numpy as np
import pytest

from benchmarks import captioning, distributed
from benchmarks.distributed import CASES, SIDES, StepTimes, Work
from benchmarks.turns import Result
from rnnlab.training import gradient_sum
from rnnlab.training.distributed import ALONE
from tests.training.ranks import on_ranks

TRUE = StepTimes(fixed=8.0, row=0.5, latency=0.02, number=1e-6, gather=0.03, parameters=3_000_000)


def time_of(side, work):
    """What TRUE expects, as the suite would measure it on two processors."""
    ranks = distributed.RANKS[side]
    if work.kind == "step":
        return TRUE.step(ranks, distributed.BATCH / ranks, 2)
    if work.kind == "rows":
        return TRUE.computation(work.count)
    if work.kind == "gather":
        return 2 * TRUE.gather
    return TRUE.gather + 2 * TRUE.latency + work.count * TRUE.number


@pytest.fixture
def results(monkeypatch, tmp_path):
    monkeypatch.setattr(distributed, "PICTURE", tmp_path / "distributed.png")
    monkeypatch.setattr(distributed, "num_parameters", lambda name: TRUE.parameters)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    return [
        Result("distributed", case, "ms", {side: time_of(side, work) for side in SIDES}, {})
        for case, work in CASES.items()
    ]


def test_the_times_that_the_model_has_are_found(results):
    times = {result.case: result.measured["rnnlab"] for result in results}
    for name in distributed.MODELS:
        assert distributed.fitted(times, name, TRUE.parameters) == pytest.approx(TRUE, rel=1e-6)


def test_the_model():
    assert TRUE.computation(64) == 40
    assert TRUE.exchange(1) == 0
    assert TRUE.exchange(2) == pytest.approx(0.04 + 3 + 0.09)
    assert TRUE.exchange(1000) == pytest.approx(2 * 999 * 0.02 + 2 * 0.999 * 3 + 0.09 * np.log2(1000))
    assert TRUE.step(4, 16) == TRUE.computation(16) + TRUE.exchange(4)
    assert TRUE.step(4, 16, processors=2) == 2 * TRUE.step(4, 16)
    assert TRUE.step(1, 16, processors=2) == TRUE.step(1, 16)


@pytest.mark.slow
def test_the_rows_and_the_picture(results, tmp_path):
    rows = {row.case: row for row in distributed.conclude(results)}
    efficiency = rows["captioning: efficiency of 2 ranks"]
    assert efficiency.ours == pytest.approx(TRUE.step(1, 64) / TRUE.step(2, 32) / 2)
    assert efficiency.ratio == pytest.approx(1)
    assert rows["attention: 2 ranks, gradients sent early"].ratio == pytest.approx(1)
    for ranks in ("1 rank", "2 ranks", "4 ranks"):
        assert rows[f"attention: {ranks}, 64 rows in all"].ratio == pytest.approx(1)
    assert rows["attention: model, 1,000 ranks of 64 rows"].ours == pytest.approx(TRUE.step(1000, 64))
    assert (tmp_path / "distributed.png").stat().st_size > 0


@pytest.mark.parametrize("at_the_end", [False, True])
def test_the_step_of_ranks_is_that_of_one(at_the_end, monkeypatch):
    monkeypatch.setattr(gradient_sum, "_SMALLEST", 1)
    sizes = captioning.Sizes(N=5, T=9, D=6, W=4, H=8, V=30, mean=5, spread=2, least=2, most=8)
    monkeypatch.setattr(captioning, "DROPOUT", dict.fromkeys(captioning.DROPOUT, 0.0))
    monkeypatch.setitem(distributed.MODELS, "captioning", sizes)

    def losses(ranks):
        taken = distributed.work_of(ranks, Work("step", "captioning", at_the_end=at_the_end))
        sums.append(ranks)
        return [taken() for _ in range(10)]

    sums = []
    expected = losses(ALONE)
    assert expected[-1] < expected[0]
    for found in on_ranks(2, losses):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert [ranks.calls.count("sum") > 10 for ranks in sums[1:]] == [not at_the_end] * 2


def test_a_suite_that_lacks_something_is_left_out(monkeypatch, capsys):
    from benchmarks import __main__ as command

    pytest.importorskip("torch")
    monkeypatch.setattr(command, "_about", lambda options: "a machine")
    monkeypatch.setattr(distributed, "which", lambda name: None)
    assert command.main(["distributed"]) == 0
    assert "\ndistributed needs mpirun and mpi4py: pip install" in capsys.readouterr().out
