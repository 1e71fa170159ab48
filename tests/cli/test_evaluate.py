"""``rnnlab evaluate``: the table and the JSON file of scores."""

import importlib
import importlib.util
import json

import pytest

from rnnlab import cli
from rnnlab.cli import evaluate

needs_scorers = pytest.mark.skipif(
    importlib.util.find_spec("pycocoevalcap") is None, reason="the extra eval is not installed"
)


@needs_scorers
def test_evaluation_prints_a_table_and_writes_json(run, tmp_path, capsys):
    path = tmp_path / "scores.json"
    assert cli.main(["evaluate", str(run), "--split", "val", "--beam", "2", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    report = json.loads(path.read_text())
    assert report["split"] == "val"
    assert f"{report['corpus']['BLEU-4']:.4f}" in printed
    assert [image["name"] for image in report["images"]] == [f"val_{number:05}.png" for number in range(10)]
    assert all(
        len(image["references"]) == 5 and 0 <= image["scores"]["BLEU-1"] <= 1 for image in report["images"]
    )


@needs_scorers
def test_the_file_is_written_even_if_nothing_reads_the_table(run, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate, "print", closed, raising=False)
    path = tmp_path / "scores.json"
    with pytest.raises(BrokenPipeError):
        cli._run(["evaluate", str(run), "--max-images", "1", "--json", str(path)])
    assert json.loads(path.read_text())["split"]


def closed(*_):
    raise BrokenPipeError


@needs_scorers
def test_several_runs_are_an_ensemble(run, second_run, attending_run, tmp_path, capsys):
    path, paths = tmp_path / "scores.json", [str(run), str(second_run), str(attending_run)]
    assert cli.main(["evaluate", *paths, "--max-images", "4", "--json", str(path)]) == 0
    printed, report = capsys.readouterr().out, json.loads(path.read_text())
    assert "note: an ensemble of 3 runs, the mean of their probabilities" in printed
    assert report["runs"] == paths
    assert report["average"] == "probabilities"
    assert "run" not in report
    assert len(report["images"]) == 4
    options = ["--average", "log_probabilities", "--max-images", "4", "--json", str(path)]
    assert cli.main(["evaluate", *paths, *options]) == 0
    assert "the mean of their log-probabilities" in capsys.readouterr().out
    other = json.loads(path.read_text())
    assert other["average"] == "log_probabilities"
    assert other["corpus"]["perplexity"] != report["corpus"]["perplexity"]


@needs_scorers
def test_the_score_of_an_ensemble_is_that_of_its_captions(run, second_run, tmp_path, capsys):
    """``caption`` writes the captions that ``evaluate`` scores."""
    path, paths = tmp_path / "scores.json", [str(run), str(second_run)]
    assert cli.main(["evaluate", *paths, "--split", "val", "--json", str(path)]) == 0
    capsys.readouterr()
    assert cli.main(["caption", *paths, "val"]) == 0
    images = json.loads(path.read_text())["images"]
    assert capsys.readouterr().out.splitlines() == [f"{one['name']}: {one['caption']}" for one in images]


def test_metrics_may_be_given_one_by_one():
    one_by_one = ["--metrics", "BLEU", "--metrics", "CIDEr", "METEOR"]
    assert cli._parser().parse_args(["evaluate", "run", *one_by_one]).metrics == ["BLEU", "CIDEr", "METEOR"]
    assert cli._parser().parse_args(["evaluate", "run"]).metrics is None
