"""The table of runs for other programs."""

import csv
import os

import numpy as np
import pytest

from rnnlab.reporting.record import read_records
from rnnlab.reporting.results import Results
from rnnlab.reporting.table import write_table
from rnnlab.tasks.classification import ClassificationEvaluation

from .conftest import history


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def records(write_run):
    rows = history(3, val_loss=[3.0, 2.0, 2.5])
    return read_records(
        [
            write_run("one", rows, changes={"model.hidden_dim": 8}),
            write_run("two", history(1), changes={"model.hidden_dim": 16, "model.reconstructor_dim": 4}),
        ]
    )


def test_a_row_for_each_run(records, tmp_path):
    labels = np.zeros(2, int)
    evaluation = ClassificationEvaluation("val", labels, labels, 0.5, 1 / 3, np.eye(2, dtype=int))
    write_table(
        tmp_path / "runs.csv", records, [Results(None, "val", evaluation), Results(None, "", None, ["why"])]
    )
    one, two = read(tmp_path / "runs.csv")
    assert (one["run"], one["model.hidden_dim"], one["model.reconstructor_dim"]) == ("one", "8", "none")
    assert (one["directory"], one["parameters"], one["split"]) == (str(records[0].directory), "1234", "val")
    assert (one["epochs"], one["best_epoch"], one["scored_epoch"], one["seconds"]) == ("3", "2", "2", "90.0")
    assert float(one["accuracy"]) == 1 / 3
    assert (two["model.reconstructor_dim"], two["epochs"]) == ("4", "1")
    assert (two["best_epoch"], two["scored_epoch"]) == ("", "1")
    assert two["split"] == two["accuracy"] == ""


def test_without_scores(records, tmp_path):
    write_table(tmp_path / "runs.csv", records, [])
    assert "split" not in read(tmp_path / "runs.csv")[0]
    assert b"\r" not in (tmp_path / "runs.csv").read_bytes()


def test_a_run_whose_name_is_not_utf_8(write_run, tmp_path):
    write_table(tmp_path / "runs.csv", read_records([write_run(os.fsdecode(b"\xffx"))]), [])
    assert read(tmp_path / "runs.csv")[0]["run"] == "\\udcffx"


def test_keys_that_are_asked_for_have_a_column(records, tmp_path):
    write_table(tmp_path / "runs.csv", records[:1], [], ["training.seed", "model.hidden_dim"])
    (row,) = read(tmp_path / "runs.csv")
    assert list(row)[:5] == ["run", "directory", "training.seed", "model.hidden_dim", "parameters"]
    assert (row["training.seed"], row["model.hidden_dim"]) == ("0", "8")
    write_table(tmp_path / "runs.csv", [], [], ["training.seed"])
    assert (tmp_path / "runs.csv").read_text().startswith("run,directory,training.seed,parameters,")


def test_a_table_that_cannot_be_written_is_an_error(records, tmp_path):
    with pytest.raises(OSError, match="was not written"):
        write_table(tmp_path, records, [])
