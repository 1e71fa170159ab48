from __future__ import annotations

import io
import json

import pytest

from rnnlab.files import WriteError
from rnnlab.training import Callback, Solver
from rnnlab.training.callbacks import JSONLines

pytestmark = pytest.mark.usefixtures("no_pictures")

OPTIONS = {"num_epochs": 2, "batch_size": 20, "verbose": False}


def lines(path):
    def no_constant(name):
        raise AssertionError(name)

    return [json.loads(line, parse_constant=no_constant) for line in path.read_text().splitlines()]


def test_a_line_for_each_row(model, data, tmp_path):
    solver = Solver(model, data, callbacks=[JSONLines(every=2)], run_dir=tmp_path / "run", **OPTIONS)
    solver.train()
    found = lines(tmp_path / "run" / "log.jsonl")
    assert [(row["iteration"], row.get("epoch")) for row in found] == [
        (1, None), (3, None), (3, 1), (5, None), (6, 2)
    ]  # fmt: skip
    assert found[0]["loss"] == solver.loss_history[0]
    assert set(found[0]) == {"iteration", "loss", "gradient_norm", "learning_rate"}
    assert found[2] == solver.history[0]


def test_a_resumed_run_repeats_no_line(make_model, make_data, data, tmp_path):
    class Dies(Callback):
        def on_step(self, solver, loss, grads):
            if solver.iteration == 5:
                raise LookupError

        def on_end(self, solver):
            saved.append((tmp_path / "last.h5").read_bytes())

    saved = []
    reference = Solver(
        make_model(), data, callbacks=[JSONLines(tmp_path / "whole.jsonl", every=1)], **OPTIONS
    )
    reference.train()
    log = JSONLines(tmp_path / "log.jsonl", every=1)
    solver = Solver(make_model(), data, callbacks=[log], run_dir=tmp_path, **OPTIONS | {"num_epochs": 1})
    solver.train()
    earlier = (tmp_path / "last.h5").read_bytes()
    resumed = Solver.resume(tmp_path, make_model(), make_data(), callbacks=[log, Dies()], num_epochs=2)
    with pytest.raises(LookupError):
        resumed.train()
    assert saved[0] != earlier
    (tmp_path / "last.h5").write_bytes(earlier)  # as after a kill: the log is ahead of the checkpoint
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"iteration": 6, "lo')
    Solver.resume(tmp_path, make_model(), make_data(), callbacks=[log], num_epochs=2).train()
    times = ("seconds", "tokens_per_second")
    found, expected = (
        [{key: value for key, value in row.items() if key not in times} for row in lines(tmp_path / name)]
        for name in ("log.jsonl", "whole.jsonl")
    )
    assert found == expected


def test_numbers_that_are_not_finite_are_null(model, data, tmp_path):
    evaluations = iter([{"val_loss": 1.0, "other": float("inf")}, {"val_loss": 1.0, "other": 2.0}])
    path = tmp_path / "deep" / "log.jsonl"
    options = OPTIONS | {"evaluate": lambda model: next(evaluations)}
    Solver(model, data, callbacks=[JSONLines(path)], **options).train()
    assert [row["other"] for row in lines(path) if "epoch" in row] == [None, 2.0]


def test_a_file_that_is_no_log_is_left_alone(model, data, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    with pytest.raises(ValueError, match="notes.txt is not a log of JSONLines: .*; choose another path"):
        Solver(model, data, callbacks=[JSONLines(path)], **OPTIONS).train()
    assert path.read_text() == "mine\n"


def test_a_log_of_another_run_is_left_alone(model, data, tmp_path):
    path = tmp_path / "log.jsonl"
    Solver(model, data, callbacks=[JSONLines(path)], **OPTIONS).train()
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match="holds the log of another run or stage: delete it, or choose another"
    ):
        Solver(model, data, callbacks=[JSONLines(path)], **OPTIONS).train()
    assert path.read_bytes() == before


def test_an_epoch_that_is_repeated_has_one_line(make_model, data, tmp_path):
    """It is repeated if the process was killed after the line and before the checkpoint of the epoch."""

    class Killed(Callback):
        def on_epoch(self, solver):
            if solver.epoch == 2:
                raise SystemExit

    options = OPTIONS | {"run_dir": tmp_path, "checkpoint_every": 3}
    solver = Solver(make_model(), data, callbacks=[JSONLines(every=1), Killed()], **options)
    solver._storage.save = lambda save=solver._storage.save: None if solver.epoch == 2 else save()
    with pytest.raises(SystemExit):
        solver.train()
    Solver.resume(tmp_path, make_model(), data, callbacks=[JSONLines(every=1)]).train()
    assert [row["epoch"] for row in lines(tmp_path / "log.jsonl") if "epoch" in row] == [1, 2]


def test_a_file_in_another_encoding(model, data, tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="notes.txt is not a log of JSONLines"):
        Solver(model, data, callbacks=[JSONLines(tmp_path / "notes.txt")], **OPTIONS).train()


def test_a_full_disk_is_named(model, data, tmp_path, monkeypatch):
    class Full(io.StringIO):
        name = str(tmp_path / "log.jsonl")

        def flush(self):
            raise OSError(28, "No space left on device")

    log = JSONLines(every=1)
    solver = Solver(model, data, callbacks=[log], run_dir=tmp_path, **OPTIONS)
    monkeypatch.setattr(log, "open", lambda solver: setattr(log, "_file", Full()))
    with pytest.raises(WriteError, match=r"log.jsonl was not written: No space left on device"):
        solver.train()
    assert (tmp_path / "last.h5").exists()
