"""The files of results: the same content gives the same bytes, a line for each epoch and evaluation."""

from benchmarks import results

CONTENT = {
    "training": "first-seed0",
    "config": {"data": {"kind": "shapes", "max_train": None}, "stage": []},
    "num_parameters": 2_500_000,
    "peak_megabytes": 512.0,
    "history": [{"epoch": 1.0, "val_loss": 1 / 3}, {"epoch": 2.0, "val_loss": 1e-7 / 3}],
    "evaluations": {"--split val": {"BLEU": 0.1 + 0.2, "λ": 123456789.5}},
    "commands": [],
}
TEXT = """{
 "training": "first-seed0",
 "config": {
  "data": {"kind": "shapes", "max_train": null},
  "stage": []
 },
 "num_parameters": 2500000,
 "peak_megabytes": 512,
 "history": [
  {"epoch": 1, "val_loss": 0.333333},
  {"epoch": 2, "val_loss": 3.33333e-08}
 ],
 "evaluations": {
  "--split val": {"BLEU": 0.3, "λ": 123457000.0}
 },
 "commands": []
}
"""


def test_a_line_for_each_epoch_and_evaluation(tmp_path):
    results.store("first-seed0", CONTENT, tmp_path)
    path = tmp_path / "first-seed0.json"
    assert path.read_text(encoding="utf-8") == TEXT
    results.store("first-seed0", results.load("first-seed0", tmp_path), tmp_path)
    assert path.read_text(encoding="utf-8") == TEXT


def test_no_results(tmp_path):
    assert results.load("first-seed0", tmp_path) is None


def test_a_metric_that_an_epoch_lacks_is_left_out(tmp_path):
    (tmp_path / "history.csv").write_text("epoch,BLEU\n1,\n2,0.5\n")
    assert results.read_history(tmp_path / "history.csv") == [{"epoch": 1.0}, {"epoch": 2.0, "BLEU": 0.5}]
