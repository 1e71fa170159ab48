from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from rnnlab.training import Callback, Solver
from rnnlab.training.callbacks import TensorBoard

OPTIONS = {"batch_size": 20, "verbose": False}


def events(folder):
    """The (tag, step, value) of every scalar, file after file, and the iterations from which files purge."""
    from tensorboardX.proto.event_pb2 import Event

    scalars, purged = [], []
    for path in sorted(folder.iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):  # TFRecord: length (8), its checksum (4), the event, its checksum (4)
            size = int.from_bytes(data[at : at + 8], "little")
            event = Event.FromString(data[at + 12 : at + 12 + size])
            at += size + 16
            scalars += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
            if event.HasField("session_log"):
                purged.append(event.step)
    return scalars, purged


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.filterwarnings("default")
def test_curves(make_model, make_data, data, tmp_path):
    pytest.importorskip("tensorboardX")
    solver = Solver(
        make_model(), data, callbacks=[TensorBoard(every=2)], num_epochs=1, run_dir=tmp_path, **OPTIONS
    )
    solver.train()
    scalars, purged = events(tmp_path / "tensorboard")
    assert [step for tag, step, _ in scalars if tag == "train/loss"] == [1, 3]
    values = [value for tag, _, value in scalars if tag == "train/loss"]
    assert values == pytest.approx(solver.loss_history[::2], rel=1e-6)
    (found,) = [(step, value) for tag, step, value in scalars if tag == "epoch/val_loss"]
    assert found == (3, pytest.approx(solver.history[0]["val_loss"], rel=1e-6))
    assert "epoch/epoch" not in {tag for tag, _, _ in scalars}
    assert purged == [1]
    resumed = Solver.resume(tmp_path, make_model(), make_data(), callbacks=[TensorBoard()], num_epochs=2)
    resumed.train()
    scalars, purged = events(tmp_path / "tensorboard")
    assert [step for tag, step, _ in scalars if tag == "epoch/val_loss"] == [3, 6]
    assert purged == [1, 4]


class Writer:
    """In place of tensorboardX.SummaryWriter: keeps what is added, and the options of each."""

    added: ClassVar = {}
    options: ClassVar = []

    def __init__(self, path, **options):
        self.added.clear()
        self.options.append(options)

    def add_scalar(self, tag, value, iteration):
        self.added[tag] = value

    def close(self):
        """Nothing is open."""


class Columns(Callback):
    """Adds numbers of several types to the history."""

    def on_epoch(self, solver):
        solver.history[-1].update(score=np.float32(0.5), words=np.int64(3), name="text")


@pytest.fixture
def writer(monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=Writer))
    Writer.options.clear()


@pytest.mark.usefixtures("writer")
def test_numbers_of_numpy_are_curves(model, data, tmp_path):
    callbacks = [Columns(), TensorBoard(tmp_path)]
    Solver(model, data, callbacks=callbacks, num_epochs=1, **OPTIONS).train()
    assert Writer.added["epoch/score"] == 0.5
    assert Writer.added["epoch/words"] == 3
    assert "epoch/name" not in Writer.added


@pytest.mark.usefixtures("writer", "no_pictures")
def test_a_run_that_begins_again_ignores_the_events_in_its_directory(make_model, data, tmp_path):
    """It was killed before its first checkpoint. Elsewhere the events are of other runs."""
    for path in (None, tmp_path / "shared"):
        callbacks, run = [TensorBoard(path)], tmp_path / ("default" if path is None else "other")
        Solver(make_model(), data, callbacks=callbacks, num_epochs=1, run_dir=run, **OPTIONS).train()
    assert [options.get("purge_step") for options in Writer.options] == [1, None]


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'needs tensorboardX: pip install "rnnlab\[tensorboard\]"'):
        TensorBoard()


def test_a_bad_interval():
    with pytest.raises(ValueError, match="TensorBoard: every is 0"):
        TensorBoard(every=0)
