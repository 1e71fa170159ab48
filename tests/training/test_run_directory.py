from __future__ import annotations

import csv
import json

import pytest

from rnnlab.training.monitor import Monitor
from rnnlab.training.run_directory import RunDirectory, checkpoint_of, stage_directories
from rnnlab.training.solver import Solver


def test_nothing_is_made_before_something_is_written(tmp_path):
    run = RunDirectory(tmp_path / "a" / "b")
    assert not run.path.parent.exists()
    run.write_config({"x": 1, "ü": [1.5, None]})
    assert json.loads(run.config.read_text()) == {"x": 1, "ü": [1.5, None]}


def test_what_is_no_path(model, data):
    with pytest.raises(TypeError, match=r"Solver: run_dir is <.*Model object.*, expected a path"):
        Solver.resume(model, "run", data)


@pytest.mark.parametrize("name", ["best.h5", "last.h5"])
def test_a_run_is_not_overwritten(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(FileExistsError, match="already holds a run"):
        RunDirectory(tmp_path)


def test_the_latest_stage_is_that_of_the_largest_number(tmp_path):
    for name in ("stage1", "stage9", "stage10", "stage_old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "last.h5").touch()
    (tmp_path / "stage11").touch()
    assert [each.name for each in stage_directories(tmp_path)] == ["stage1", "stage9", "stage10"]
    with pytest.raises(FileNotFoundError, match=r"its last stage has not begun, .*stage10 has the latest"):
        checkpoint_of(tmp_path)


def test_the_checkpoint_that_a_run_ends_with(tmp_path):
    for name in ("best.h5", "last.h5"):
        (tmp_path / name).touch()
    assert checkpoint_of(tmp_path).name == "best.h5"
    for config, expected in (
        ({"solver": {"restore_best": False}}, "last.h5"),
        ({"solver": {"restore_best": True}}, "best.h5"),
        ({"solver": None}, "best.h5"),
        ([], "best.h5"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert checkpoint_of(tmp_path).name == expected
    (tmp_path / "config.json").write_text("{")
    assert checkpoint_of(tmp_path).name == "best.h5"


def test_a_best_checkpoint_alone_is_nothing_to_resume_from(tmp_path):
    (tmp_path / "best.h5").touch()
    with pytest.raises(FileNotFoundError, match=r"has no last.h5 to resume from; .*use it as a warm start"):
        RunDirectory(tmp_path, resume=True)


def test_other_files_do_not_matter(tmp_path):
    """Among them the configuration of a run that ended before its first checkpoint."""
    for name in ("notes.txt", "config.json"):
        (tmp_path / name).touch()
        RunDirectory(tmp_path)


def test_history_has_a_column_for_every_key(tmp_path):
    run = RunDirectory(tmp_path)
    run.write_history([{"epoch": 1, "val_loss": 1 / 3}, {"epoch": 2, "val_loss": 0.25, "CIDEr": 1e-300}])
    with run.history.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {"epoch": "1", "val_loss": repr(1 / 3), "CIDEr": ""},
        {"epoch": "2", "val_loss": "0.25", "CIDEr": "1e-300"},
    ]


def test_plot_waits_unless_forced(tmp_path, monkeypatch):
    now, drawn = [100.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("rnnlab.plots.loss_curve", lambda *args, **options: (args, options))
    monkeypatch.setattr("rnnlab.plots.save", lambda figure, path: drawn.append(figure))
    run = RunDirectory(tmp_path)
    rows = [{"epoch": 1, "val_loss": 3.0}, {"epoch": 2}]
    monitor = Monitor("val_loss")
    monitor.update(rows[0], 1)
    run.plot([], rows, monitor, force=True)
    assert drawn == []
    run.plot([4.0, 2.0], rows, monitor)
    now[0] += 29
    run.plot([4.0, 2.0], rows, monitor)
    assert len(drawn) == 1
    run.plot([4.0, 2.0], rows, monitor, force=True)
    now[0] += 31
    run.plot([4.0, 2.0], rows, monitor)
    assert len(drawn) == 3
    assert drawn[0] == (([4.0, 2.0], rows), {"metric": "val_loss", "best": 1})
