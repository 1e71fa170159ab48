"""``rnnlab evaluate``: the table and the JSON file of scores."""

import importlib
import importlib.util
import json

import pytest

from rnnlab import cli

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
