import errno

import numpy as np
import pytest

from rnnlab import files
from rnnlab.data import PixelData
from rnnlab.models import SequenceClassifier
from rnnlab.training import Solver, load_checkpoint

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture
def solver(rng):
    images = rng.integers(0, 256, (12, 2, 3)).astype(np.uint8)
    data = PixelData(
        {"train": (images, np.arange(12) % 3), "val": (images[:4], np.arange(4) % 3)}, num_classes=3
    )

    def make(**options):
        return Solver(SequenceClassifier(3, 1, 4), data, num_epochs=2, batch_size=4, verbose=False, **options)

    return make


def test_without_a_directory_nothing_is_written(solver, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = solver()
    one.train()
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_has_what_new_inputs_need(solver, tmp_path):
    """Preprocessing and fingerprint are those of the data, in the best and in the last checkpoint."""
    one = solver(run_dir=tmp_path / "run", config={"name": "x"})
    one.train()
    for name in ("best.h5", "last.h5"):
        checkpoint = load_checkpoint(tmp_path / "run" / name)
        assert checkpoint.fingerprint == one.data.fingerprint()
        assert checkpoint.preprocessing["white"] == 255
        np.testing.assert_array_equal(checkpoint.preprocessing["permutation"], np.arange(6))
        assert checkpoint.config == {"name": "x"}
        assert checkpoint.vocabulary is None
    np.testing.assert_array_equal(load_checkpoint(tmp_path / "run").parameters.flat, one.model.params.flat)


def test_a_history_that_another_program_has_open_ends_no_training(solver, tmp_path, monkeypatch):
    """As a spreadsheet has on Windows."""
    move, refused = files.move, []

    def busy(source, target):
        if target.name == "history.csv" and not refused:
            refused.append(target)
            raise PermissionError(errno.EACCES, "Access is denied")
        move(source, target)

    monkeypatch.setattr(files, "move", busy)
    one = solver(run_dir=tmp_path / "run")
    with pytest.warns(
        RuntimeWarning, match="history.csv was not written: Access is denied; it is written ag"
    ):
        one.train()
    assert (tmp_path / "run" / "history.csv").read_text().count("\n") == 3


def test_a_history_that_cannot_be_written_ends_the_training(solver, tmp_path, monkeypatch):
    move = files.move

    def full(source, target):
        if target.name == "history.csv":
            raise OSError(errno.ENOSPC, "No space left on device")
        move(source, target)

    monkeypatch.setattr(files, "move", full)
    with pytest.raises(files.WriteError, match="history.csv was not written: No space left on device"):
        solver(run_dir=tmp_path / "run").train()


def test_the_best_parameters_are_restored_from_either_storage(solver, tmp_path):
    found = []
    for run_dir in (None, tmp_path / "run"):
        values = iter([1.0, 2.0])
        one = solver(run_dir=run_dir, evaluate=lambda model, v=values: {"val_loss": next(v)})
        one.train()
        assert one.monitor.best_epoch == 1
        found.append(one.model.params.flat.copy())
    np.testing.assert_array_equal(*found)
