"""``rnnlab compare`` over trained runs."""

import importlib.util

import pytest

from rnnlab import cli

needs_scorers = pytest.mark.skipif(
    importlib.util.find_spec("pycocoevalcap") is None, reason="the extra eval is not installed"
)


@needs_scorers
def test_runs_are_compared(run, attending_run, capsys):
    assert cli.main(["compare", str(run), str(attending_run), "--max-images", "4"]) == 0
    printed = capsys.readouterr()
    assert f"scoring {run}" in printed.err
    lines = [line.split() for line in printed.out.splitlines()]
    assert ["Runs", "tiny", "attending"] in lines
    assert ["images", "4", "4"] in lines
    assert ["model.attention", "none", "additive"] in lines
    assert any(line[:2] == ["attending", "validation"] for line in lines)


def test_without_scores_no_data_are_read(run, capsys, monkeypatch):
    monkeypatch.setattr("rnnlab.runs.load_run", lambda *args, **options: pytest.fail("the run was opened"))
    assert cli.main(["compare", str(run), "--no-scores"]) == 0
    assert "Scores" not in capsys.readouterr().out


def test_what_is_no_run_is_an_error(tmp_path, capsys):
    assert cli.main(["compare", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err
