import json

import pytest

from rnnlab.reporting.curves import charts
from rnnlab.reporting.differences import differences
from rnnlab.reporting.record import duration, read_records
from rnnlab.reporting.results import comparability

from .conftest import history


def test_a_run_is_read_from_its_checkpoint(write_run):
    path = write_run()
    (record,) = read_records([path])
    assert (record.name, record.task, record.model, record.num_parameters) == (
        "run", "captions", "CaptioningRNN", 1234
    )  # fmt: skip
    (stage,) = record.stages
    assert stage.history == history(3, val_loss=[3.0, 2.0, 2.5])
    assert len(stage.losses) == 60
    assert stage.best_epoch == 2
    assert dict(record.facts()) == {
        "task": "captions",
        "parameters": "1,234",
        "epochs": "3 of 3",
        "best epoch": "2 by val_loss",
        "training time": "1 min 30 s",
    }
    assert record.notes == []


def test_the_last_epoch_of_a_run_that_restores_none(write_run):
    last, best = read_records([write_run("last", restore_best=False), write_run("best")])
    assert (last.best_epoch, last.scored_epoch, best.scored_epoch) == (2, 3, 2)
    assert dict(last.facts())["best epoch"] == "2 by val_loss; the parameters are those of epoch 3"


@pytest.mark.parametrize(
    ("options", "progress"),
    [
        ({"num_epochs": 5}, "3 of 5, unfinished"),
        ({"num_epochs": 5, "patience": 1}, "3 of 5, stopped early"),
        ({"num_epochs": 5, "patience": 2}, "3 of 5, unfinished"),
    ],
)
def test_an_unfinished_run_says_so(write_run, options, progress):
    (record,) = read_records([write_run(**options)])
    assert dict(record.facts())["epochs"] == progress
    assert record.finished == ("unfinished" not in progress)


def test_a_run_is_finished_with_its_last_stage(write_run):
    path = write_run()
    (record,) = read_records([path])
    assert record.finished
    stage = path / "stage1"
    stage.mkdir()
    for file in path.glob("*.*"):
        file.rename(stage / file.name)
    (record,) = read_records([path])
    assert record.stages[-1].finished
    assert not record.finished


def test_the_greatest_value_is_best_where_the_metric_or_the_mode_says_so(write_run):
    rows = history(3, CIDEr=[0.1, 0.4, 0.3])
    for options in ({"monitor": "CIDEr"}, {"monitor": "mine", "monitor_mode": "max"}):
        path = write_run(options["monitor"], [row | {"mine": row["CIDEr"]} for row in rows], **options)
        (record,) = read_records([path])
        assert record.stages[0].best_epoch == 2


def test_a_value_that_is_not_finite_is_never_best(write_run):
    rows = history(3, val_loss=[float("nan"), float("-inf"), 2.0])
    (record,) = read_records([write_run(rows=rows)])
    assert record.stages[0].best_epoch == 3


def test_before_the_first_checkpoint_there_is_a_note(write_run):
    path = write_run(rows=[])
    (path / "last.h5").unlink()
    (path / "history.csv").unlink()
    (record,) = read_records([path])
    assert record.stages[0].history == []
    assert dict(record.facts())["best epoch"] == "no validation"
    assert any("no epoch is finished" in note for note in record.notes)


def test_a_damaged_checkpoint_leaves_the_history_in_csv(write_run):
    path = write_run()
    (path / "last.h5").write_bytes(b"no HDF5")
    (record,) = read_records([path])
    assert record.stages[0].history == history(3, val_loss=[3.0, 2.0, 2.5])
    assert record.stages[0].losses.size == 0
    assert any("last.h5" in note and "history.csv" in note for note in record.notes)


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("2,forty,20.0,2.0,1.0,30.0,100.0,0.01,2.0", "2"),
        ("2,40,20.0", "2"),  # cut off
        ("1,40,20.0,2.0,1.0,30.0,100.0,0.01,2.0", "2"),  # an epoch twice
    ],
)
def test_damaged_rows_of_a_history_are_left_out(write_run, line, rows):
    path = write_run()
    (path / "last.h5").unlink()
    lines = (path / "history.csv").read_text().splitlines()
    lines[2] = line
    (path / "history.csv").write_text("\n".join(lines))
    (record,) = read_records([path])
    assert [row["epoch"] for row in record.stages[0].history] == [1, 3]
    assert record.finished
    assert record.stages[0].progress == "3 of 3"
    assert any(note.endswith(f"damaged, left out: epochs in rows {rows}") for note in record.notes)


def test_a_precision_in_the_history_is_a_text(write_run):
    rows = history(3, val_loss=[3.0, 2.0, 2.5])
    rows[1] |= {"former_learning_rate": 0.1, "former_matmul": "float32"}
    path = write_run(rows=rows)
    for _ in ("the checkpoint", "the CSV file"):
        (record,) = read_records([path])
        assert record.stages[0].history == rows
        assert not [chart for chart in charts([record]) if "former" in chart.heading.lower()]
        (path / "last.h5").unlink(missing_ok=True)


@pytest.mark.parametrize("content", ["{", "[1]", "[" * 50_000])
def test_a_damaged_config_is_replaced_by_the_checkpoint(write_run, content):
    path = write_run()
    (path / "config.json").write_text(content)
    (record,) = read_records([path])
    assert record.task == "captions"
    assert record.stages[0].monitor == "val_loss"
    assert any("config.json" in note for note in record.notes)


def test_a_recipe_that_is_nested_too_deeply_is_unknown(write_run):
    path = write_run()
    (path / "config.json").write_text('{"config": {"data": ' + "[" * 400 + "]" * 400 + "}}")
    (record,) = read_records([path])
    assert record.task == "unknown"
    assert len(record.stages[0].history) == 3


def test_a_recipe_with_a_key_of_another_version(write_run):
    paths = write_run("one"), write_run("two")
    config = json.loads((paths[1] / "config.json").read_text())
    config["config"]["data"]["nokey"] = 3
    (paths[1] / "config.json").write_text(json.dumps(config))
    records = read_records(paths)
    assert [record.task for record in records] == ["captions", "unknown"]
    assert "config.json: config: data.nokey is unknown" in " ".join(records[1].notes)
    assert [each.key for each in differences(records)] == ["data.nokey"]
    assert not any("different tasks" in note for note in comparability(records))


def test_a_run_without_a_recipe_has_curves(write_run):
    path = write_run()
    config = json.loads((path / "config.json").read_text()) | {"config": None}
    (path / "config.json").write_text(json.dumps(config))
    (record,) = read_records([path])
    assert (record.recipe, record.task) == (None, "unknown")
    assert len(record.stages[0].history) == 3


def test_stages_are_read_in_their_order(write_run):
    path = write_run()
    for number, epochs in ((1, 2), (2, 1)):
        write_run(f"run/stage{number}", history(epochs), num_epochs=epochs)
    (record,) = read_records([path])
    assert [len(stage.history) for stage in record.stages] == [2, 1, 3]
    assert dict(record.facts())["epochs"] == "2 of 2; 1 of 1; 3 of 3"


def test_a_run_whose_last_stage_has_not_begun_is_its_first_stages(write_run):
    path = write_run("run/stage1").parent
    (record,) = read_records([path])
    assert len(record.stages) == 1
    assert any("its last stage has not begun" in note for note in record.notes)


def test_what_is_no_run_is_an_error(write_run, tmp_path):
    run = write_run()
    with pytest.raises(FileNotFoundError, match="holds no run"):
        read_records([tmp_path])
    with pytest.raises(FileNotFoundError, match="holds no run"):
        read_records([tmp_path / "nothing"])
    with pytest.raises(NotADirectoryError, match="is a file, expected the directory of a run"):
        read_records([run / "last.h5"])
    with pytest.raises(ValueError, match="is given twice"):
        read_records([run, tmp_path / "." / "run"])


def test_runs_of_one_name_are_called_by_their_paths(write_run):
    one, two, three = write_run("a/run"), write_run("b/run"), write_run("other")
    assert [record.name for record in read_records([one, two, three])] == [str(one), str(two), "other"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (59.7, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
