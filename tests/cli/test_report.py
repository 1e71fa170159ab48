"""``rnnlab compare`` over trained runs."""

import csv
import importlib.util
import shutil

import pytest

from rnnlab import cli

needs_scorers = pytest.mark.skipif(
    importlib.util.find_spec("pycocoevalcap") is None, reason="the extra eval is not installed"
)


@needs_scorers
def test_differences_with_their_intervals(run, attending_run, capsys):
    assert cli.main(["compare", str(run), str(attending_run), "--bootstrap", "99"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(f"Differences from {run.name} "))
    assert [line.split()[0] for line in lines[start + 1 : start + 3]] == ["BLEU-1", "BLEU-2"]
    assert "paired bootstrap of 99 samples" in text
    for words, message in (
        ([str(run)], "--bootstrap compares runs with the first one, found 1 run"),
        ([str(run), str(attending_run), "--no-scores"], "--bootstrap is for scores, and --no-scores"),
    ):
        assert cli.main(["compare", *words, "--bootstrap", "99"]) == 2
        assert message in capsys.readouterr().err


def test_the_scores_of_a_comparison(run, capsys):
    assert cli.main(["compare", str(run), "--max-images", "4", "--metrics", "ROUGE-L"]) == 0
    text = capsys.readouterr().out
    assert "ROUGE-L" in text
    assert "BLEU" not in text
    assert cli.main(["compare", str(run), "--max-images", "4", "--metrics", "CS-k"]) == 0
    assert "no scores: CS-k cannot score captions" in capsys.readouterr().out


def test_runs_are_compared(run, attending_run, capsys):
    assert cli.main(["compare", str(run), str(attending_run), "--max-images", "4"]) == 0
    printed = capsys.readouterr()
    assert f"scoring {run}" in printed.err
    lines = [line.split() for line in printed.out.splitlines()]
    assert ["Runs", "tiny", "attending"] in lines
    assert ["images", "4", "4"] in lines
    assert ["model.attention", "none", "additive"] in lines
    assert any(line[:2] == ["attending", "validation"] for line in lines)


@pytest.mark.slow
@needs_scorers
def test_scores_of_different_numbers_of_images_are_noted(run, recipe, tmp_path, capsys):
    pytest.importorskip("jinja2")
    fewer, changes = tmp_path / "fewer", ["--set", "evaluation.max_images=4"]
    assert cli.main(["train", str(recipe), "--out", str(fewer), "--no-progress", *changes]) == 0
    note = "the runs are scored on 10 and 4 images, so their scores are not comparable; give --max-images"
    assert cli.main(["compare", str(run), str(fewer)]) == 0
    assert f"note: {note}\n" in capsys.readouterr().out
    assert cli.main(["report", str(run), str(fewer), "--out", str(tmp_path / "page.html")]) == 0
    assert note in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert cli.main(["compare", str(run), str(fewer), "--max-images", "4"]) == 0
    assert "so their scores are not comparable" not in capsys.readouterr().out


@needs_scorers
def test_runs_become_rows_of_a_table(run, attending_run, tmp_path, capsys):
    path = tmp_path / "runs.csv"
    assert cli.main(["compare", str(run), str(attending_run), "--max-images", "4", "--csv", str(path)]) == 0
    tiny, attending = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    assert (tiny["run"], tiny["model.attention"], attending["model.attention"]) == (
        "tiny",
        "none",
        "additive",
    )
    assert f"{float(tiny['BLEU-1']):.4f}" in capsys.readouterr().out


def test_a_table_that_cannot_be_written_is_said_before_the_work(run, tmp_path, capsys):
    path = tmp_path / "a file"
    path.touch()
    assert cli.main(["compare", str(run), "--csv", str(path / "runs.csv")]) == 2
    printed = capsys.readouterr()
    assert "--csv" in printed.err
    assert "scoring" not in printed.err


def test_without_scores_no_data_are_read(run, capsys, monkeypatch):
    monkeypatch.setattr("rnnlab.runs.load_run", lambda *args, **options: pytest.fail("the run was opened"))
    assert cli.main(["compare", str(run), "--no-scores"]) == 0
    assert "Scores" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("compare", ["--split", "val"]),
        ("compare", ["--max-images", "4"]),
        ("compare", ["--device", "gpu"]),
        ("compare", ["--matmul", "float32"]),
        ("report", ["--split", "val"]),
        ("report", ["--examples", "40"]),
        ("sweep", ["--max-images", "4"]),
    ],
    ids=str,
)
def test_options_of_scores_without_scores(command, options, run, recipe, tmp_path, monkeypatch, capsys):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    argument = str(recipe if command == "sweep" else run)
    assert cli.main([command, argument, "--no-scores", *options]) == 2
    message = f"{options[0]} is for scores, and --no-scores is given: leave one of them out"
    assert capsys.readouterr().err == f"rnnlab {command}: {message}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["compare", "report"])
def test_a_device_that_does_not_exist_is_an_error(command, run, capsys):
    pytest.importorskip("jinja2")
    assert cli.main([command, str(run), "--device", "tpu"]) == 2
    assert capsys.readouterr().err == (
        f"rnnlab {command}: device is 'tpu', expected 'cpu', 'gpu' or 'gpu:N'\n"
    )


def test_what_is_no_run_is_an_error(tmp_path, capsys):
    assert cli.main(["compare", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err


@needs_scorers
def test_a_report_is_a_page_in_the_run_directory(run, attending_run, tmp_path, capsys, monkeypatch):
    pytest.importorskip("jinja2")
    run, attending_run = (shutil.copytree(each, tmp_path / each.name) for each in (run, attending_run))
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert cli.main(["report", str(attending_run), "--examples", "4", "--open"]) == 0
    path = attending_run / "report.html"
    assert f"Report: {path} (" in capsys.readouterr().out
    assert opened == [path.as_uri()]
    page = path.read_text(encoding="utf-8")
    assert page.count("data:image/jpeg") == 4
    assert 'data-side="6"' in page
    assert cli.main(["report", str(run), str(attending_run), "--no-scores"]) == 0
    assert (run / "comparison.html").exists()


def test_without_a_browser_the_page_is_named(run, tmp_path, capsys, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    path = tmp_path / "page.html"
    assert cli.main(["report", str(run), "--no-scores", "--out", str(path), "--open"]) == 0
    printed = capsys.readouterr()
    assert f"found no browser to open {path}" in printed.err
    assert f"Report: {path} ({path.stat().st_size / 1e3:.1f} kB)" in printed.out


def test_what_cannot_be_scored_is_said_at_once(run, tmp_path, capsys):
    pytest.importorskip("jinja2")
    path = tmp_path / "page.html"
    assert cli.main(["report", str(run), "--split", "dev", "--out", str(path)]) == 2
    said = capsys.readouterr().err
    assert "tiny: neither scores nor examples: no split 'dev', only train, val, test\n" in said
    assert said.endswith("--split dev: no run has this split in its data\n")
    assert not path.exists()
    assert cli.main(["compare", str(run), "--split", "dev"]) == 2
