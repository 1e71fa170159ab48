"""Targets, means and slopes."""

import importlib
import json
import subprocess
import sys
from math import sqrt
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import scaling, table
from benchmarks.table import AtMost, Row
from benchmarks.turns import Result

MEASURED = {"rnnlab": 10.0, "torch": 13.0, "torch packed": 12.0, "sgemm": 8.0}
RESULT = Result("lstm", "N=1", "ms", MEASURED, {side: [value] for side, value in MEASURED.items()})


@pytest.mark.parametrize("name", command.SUITES)
def test_a_suite_has_what_the_command_needs(name):
    suite = importlib.import_module(f"benchmarks.{name}")
    assert list(suite.TARGETS) == list(suite.CASES)
    assert callable(suite.prepare)
    names = {side.split()[0] for side in suite.SIDES}
    assert all({table.OURS, *targets} <= names for targets in suite.TARGETS.values())


def test_the_help_lists_all_suites(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert ", ".join(command.SUITES) in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lsmt"], "NAME is 'lsmt', expected some of products, lstm, "),
        (["--rounds", "0"], "--rounds: '0', expected an integer of at least 1"),
        (["--threads", "0"], "--threads: '0', expected an integer of at least 1"),
        (["lstm", "breakdown"], "breakdown is a command of its own: python -m benchmarks breakdown"),
        (["--json", "/dev/null/times.json"], "--json /dev/null/times.json cannot be written"),
    ],
)
def test_wrong_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_threads_hold_for_both_sides(monkeypatch):
    """In a process of its own, because these variables count when libraries are loaded."""
    pytest.importorskip("torch")
    script = """if True:
        from benchmarks.turns import use_threads
        use_threads(1)
        import torch
        from rnnlab.ops.threads import num_threads
        print(num_threads(), torch.get_num_threads())
    """
    monkeypatch.setenv("RNNLAB_NUM_THREADS", "2")
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1"]


def test_the_fastest_rival_counts():
    torch, sgemm = table.rows(RESULT, {"torch": 1.2, "sgemm": 0.81})
    assert torch == Row("lstm", "N=1", "ms", 10.0, "torch packed", 12.0, 1.2, 1.2)
    assert torch.met is True
    assert sgemm.ratio == 0.8
    assert sgemm.met is False


def test_another_precision_of_ours_has_rows_of_its_own():
    measured = {"rnnlab": 10.0, "rnnlab graphs": 8.0, "rnnlab graphs tf32x3": 5.0, "torch": 12.0}
    result = Result("lstm", "N=1", "ms", measured, {})
    assert table.rows(result, {"torch": 1.2}) == [
        Row("lstm", "N=1", "ms", 8.0, "torch", 12.0, 1.5, 1.2),
        Row("lstm", "N=1, rnnlab in tf32x3", "ms", 5.0, "torch", 12.0, 2.4, None),
    ]


@pytest.mark.parametrize(
    ("target", "met", "text"),
    [
        (None, None, ""),
        (1.2, True, "1.20"),
        (1.3, False, "1.30"),
        (AtMost(10), True, "at most 10.0 ms"),
        (AtMost(9), False, "at most 9.00 ms"),
    ],
)
def test_targets(target, met, text):
    (row,) = table.rows(RESULT, {"torch": target})
    assert row.met is met
    assert row.cells()[4] == text
    assert json.loads(json.dumps(row.as_dict()))["target"] == text


def test_means():
    def row(case, rival, ratio):
        return Row("cells", case, "ms", 1.0, rival, ratio, ratio, None)

    cases = [row("a: 1", "torch", 2.0), row("a: 2", "torch packed", 1.0), row("b: 1", "torch", 3.0)]
    cases.append(row("b: 1", "sgemm", 0.5))
    first, second = table.means(cases, {"torch": 1.5})
    assert (first.case, second.case) == ("a: geometric mean", "b: geometric mean")
    assert first.ratio == pytest.approx(sqrt(2))
    assert second.ratio == pytest.approx(3)
    assert (first.met, second.met) == (False, True)


def test_the_summary_has_the_rows_with_targets():
    rows = [*table.rows(RESULT, {"torch": 1.3, "sgemm": None}), *table.rows(RESULT, {"sgemm": AtMost(11)})]
    assert table.summary(rows, markdown=True).splitlines()[-4:] == [
        "| lstm: N=1 | torch packed | 1.20 | 1.30 | NO |",
        "| lstm: N=1 | sgemm | 10.0 ms | at most 11.0 ms | yes |",
        "",
        "2 targets, 1 missed",
    ]
    assert table.summary([], markdown=False).strip() == "0 targets, 0 missed"


def test_a_line_in_markdown():
    (row,) = table.rows(RESULT, {"torch": 1.2})
    assert (
        table.line(row.cells(), markdown=True)
        == "| N=1 | 10.0 ms | 12.0 ms torch packed | 1.20 | 1.20 | yes |"
    )


@pytest.mark.slow
def test_slopes(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "PICTURE", tmp_path / "scaling.png")
    results = []
    for case in scaling.CASES:
        size = float(case.partition("=")[2])
        measured = {"rnnlab": 1e-3 * size**1.2, "torch": 1e-3 * size**1.1}
        results.append(Result("scaling", case, "ms", measured, {}))
    rows = scaling.conclude(results)
    assert [row.case for row in rows] == [f"slope over {axis}" for axis in "NTHV"]
    assert [row.ours for row in rows] == pytest.approx([1.2] * 4)
    assert [row.met for row in rows] == [False] * 4
    assert (tmp_path / "scaling.png").stat().st_size > 0
