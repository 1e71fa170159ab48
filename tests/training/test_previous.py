"""The checkpoint before the last one."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

from rnnlab.files import atomic_write
from rnnlab.locks import InUseError
from rnnlab.training.checkpoint import CheckpointError, load_checkpoint
from rnnlab.training.previous import (
    keep_previous,
    load_and_repair,
    load_or_previous,
    load_or_suggest,
    repair_best,
)
from rnnlab.training.solver import Solver

pytestmark = pytest.mark.usefixtures("no_pictures")


def damage(path):
    content = bytearray(path.read_bytes())
    content[content.index(load_checkpoint(path).parameters["b"].tobytes())] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("links", [True, False])
def test_what_is_kept(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError("no hard links")))
    path = tmp_path / "last.h5"
    keep_previous(path)
    assert not list(tmp_path.iterdir())
    for content in ("one", "two"):
        path.write_text(content)
        (tmp_path / ".last.h5.kept").write_text("of a killed process")
        keep_previous(path)
        assert os.path.samefile(path, tmp_path / "last.previous.h5") == links
        assert path.read_text() == (tmp_path / "last.previous.h5").read_text() == content
        assert len(list(tmp_path.iterdir())) == 2
        path.unlink()


def test_a_checkpoint_that_is_not_written_leaves_the_one_before(make_model, data, tmp_path):
    solver = Solver(make_model(), data, run_dir=tmp_path, num_epochs=2, batch_size=8, verbose=False)
    solver.train()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.h5")}
    solver.history.append({"epoch": object()})
    with pytest.raises(TypeError, match="history holds <object"):
        solver._storage.save()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.h5")} == before


def test_a_run_resumes_from_the_checkpoint_before_a_damaged_one(make_model, data, tmp_path, capsys):
    options = {"num_epochs": 3, "batch_size": 8, "seed": 5, "verbose": False, "restore_best": False}
    reference = Solver(make_model(), data, **options)
    reference.train()
    Solver(make_model(), data, run_dir=tmp_path, **options).train()
    assert len(load_checkpoint(tmp_path / "last.previous.h5").history) == 2
    damage(tmp_path / "last.h5")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    solver, other = (Solver.resume(tmp_path, make_model(), data) for _ in range(2))
    assert len(solver.history) == len(other.history) == 2
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before  # nobody trains yet
    solver.train()
    error = capsys.readouterr().err
    assert f"{tmp_path / 'last.h5'}: " in error
    assert error.endswith(". The checkpoint before it takes its place (epoch 2, iteration 14).\n")
    assert (tmp_path / "last.damaged.h5").read_bytes() == before["last.h5"]
    assert (tmp_path / "last.previous.h5").read_bytes() == before["last.previous.h5"]
    assert solver.loss_history == reference.loss_history
    assert (solver.model.params.flat == reference.model.params.flat).all()


def test_the_best_parameters_of_before(make_model, data, tmp_path, capsys):
    scores = iter([3.0, 2.0, 4.0])

    def evaluate(model):
        score = next(scores)
        if score == 4.0:
            damage(tmp_path / "best.h5")
        return {"val_loss": score}

    model = make_model()
    Solver(
        model, data, run_dir=tmp_path, evaluate=evaluate, num_epochs=3, batch_size=8, verbose=False
    ).train()
    assert "best.h5: " in capsys.readouterr().err
    best = load_checkpoint(tmp_path / "best.h5")
    assert len(best.history) == 1
    assert (model.params.flat == best.parameters.flat).all()


def test_at_no_moment_is_there_no_checkpoint(make_model, data, tmp_path, monkeypatch):
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=2, batch_size=8, verbose=False).train()
    damage(tmp_path / "last.h5")
    replace = os.replace

    def watched(source, target):
        assert (tmp_path / "last.h5").exists()
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    assert load_and_repair(tmp_path / "last.h5") is not None
    assert sorted(path.name for path in tmp_path.glob("last*.h5")) == ["last.damaged.h5", "last.h5"]


def test_only_a_damaged_checkpoint_is_replaced(make_model, data, tmp_path, capsys):
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=2, batch_size=8, verbose=False).train()
    last, kept = tmp_path / "last.h5", tmp_path / "last.previous.h5"
    whole, before = last.read_bytes(), kept.read_bytes()
    load_and_repair(last)  # as if another process had mended it in the meantime
    assert (last.read_bytes(), kept.read_bytes()) == (whole, before)
    damage(last)
    load_and_repair(last)
    assert last.read_bytes() == before
    assert not kept.exists()
    damage(last)
    load_and_repair(last)  # there is none before it any more
    assert last.exists()
    assert capsys.readouterr().err.count("takes its place") == 1


@pytest.mark.parametrize("reason", [errno.EACCES, errno.EMFILE, errno.EIO])
def test_a_checkpoint_that_cannot_be_read_now_is_no_damage(make_model, data, tmp_path, monkeypatch, reason):
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=2, batch_size=8, verbose=False).train()
    last, opened = tmp_path / "last.h5", h5py.File
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def refused(path, *arguments, **options):
        if os.path.samefile(path, last):
            raise OSError(reason, "Unable to synchronously open file (unable to open file)")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(h5py, "File", refused)
    for read in (load_checkpoint, load_or_previous, load_or_suggest, load_and_repair, repair_best_of_epoch_2):
        with pytest.raises(OSError, match=rf"{os.strerror(reason)}.*last.h5") as raised:
            read(last)
        assert raised.value.errno == reason
        assert not isinstance(raised.value, CheckpointError)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def repair_best_of_epoch_2(path):
    return repair_best(path, 2)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no advisory locks")
def test_a_locked_checkpoint_is_read(make_model, data, tmp_path):
    import fcntl

    Solver(make_model(), data, run_dir=tmp_path, num_epochs=2, batch_size=8, verbose=False).train()
    with open(tmp_path / "last.h5", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert load_or_previous(tmp_path / "last.h5").history[-1]["epoch"] == 2


def test_a_checkpoint_that_another_program_writes_is_no_damage(make_model, data, tmp_path):
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=2, batch_size=8, verbose=False).train()
    last = tmp_path / "last.h5"
    change = "import h5py, os, sys; file = h5py.File(sys.argv[1], 'r+', libver='latest'); os._exit(0)"
    subprocess.run([sys.executable, "-c", change, str(last)], check=True)
    with pytest.raises(OSError, match=r"last.h5: another program has it open .* run h5clear") as raised:
        load_and_repair(last)
    assert not isinstance(raised.value, CheckpointError)
    assert not last.with_name("last.damaged.h5").exists()


def test_a_link_keeps_the_checkpoint_behind_it(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    last = tmp_path / "last.h5"
    last.symlink_to(tmp_path / "elsewhere" / "last.h5")
    for content in ("one", "two"):
        with atomic_write(last) as file:
            file.write_text(content)
            keep_previous(last)
    assert (last.is_symlink(), last.read_text()) == (True, "two")
    assert (tmp_path / "last.previous.h5").read_text() == "one"


def test_two_damaged_checkpoints_are_an_error(make_model, data, tmp_path):
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=3, batch_size=8, verbose=False).train()
    whole = shutil.copyfile(tmp_path / "last.h5", tmp_path / "copy.h5")
    for name in ("last.h5", "last.previous.h5", "best.h5"):
        damage(tmp_path / name)
    (tmp_path / "best.previous.h5").unlink()
    with pytest.raises(CheckpointError, match="last.h5: .*those that were written$"):
        Solver.resume(tmp_path, make_model(), data)
    best = tmp_path / "best.h5"
    shutil.copyfile(whole, best)
    named = r"last.h5: .*best.h5 is whole \(epoch 3, iteration 21\): copy it to last.h5 to use it$"
    with pytest.raises(CheckpointError, match=named):
        Solver.resume(tmp_path, make_model(), data)
    damage(best)
    shutil.copyfile(whole, tmp_path / "last.previous.h5")
    with pytest.raises(CheckpointError, match=r"best.h5: .*last.previous.h5 is whole .*copy it to best.h5"):
        load_or_suggest(best)
    damage(tmp_path / "last.previous.h5")
    with pytest.raises(CheckpointError, match="best.h5: .*those that were written$"):
        load_or_suggest(best)
    shutil.copyfile(whole, tmp_path / "last.h5")
    named = r"best.h5: .*last.h5 is whole \(epoch 3, iteration 21\): copy it to best.h5 to use it$"
    with pytest.raises(CheckpointError, match=named):
        load_or_suggest(best)
    with pytest.raises(FileNotFoundError):
        load_or_previous(tmp_path / "none.h5")
    assert (tmp_path / "last.h5").exists()


def test_the_average_in_best_is_no_state_to_resume_from(make_model, data, tmp_path):
    solver = Solver(
        make_model(), data, run_dir=tmp_path, num_epochs=2, batch_size=8, verbose=False, ema_decay=0.9
    )
    solver.train()
    for name in ("last.h5", "last.previous.h5"):
        damage(tmp_path / name)
    with pytest.raises(CheckpointError, match="last.h5: .*those that were written$"):
        Solver.resume(tmp_path, make_model(), data)


def test_a_former_format_is_no_damage(make_model, data, tmp_path):
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=2, batch_size=8, verbose=False).train()
    with h5py.File(tmp_path / "best.h5", "r+") as file:
        file.attrs["format"] = np.bytes_("rnnlab checkpoint 2")
    with pytest.raises(CheckpointError, match="train the model again$"):
        load_or_suggest(tmp_path / "best.h5")


def best_of(run):
    return load_checkpoint(run / "best.h5").history[-1]["epoch"]


def test_best_is_of_an_epoch_that_the_resumed_run_has(make_model, data, tmp_path):
    """After a kill between best.h5 and last.h5, a run that resumes with changes has another third epoch."""
    options = {"batch_size": 8, "seed": 5, "verbose": False}
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=3, **options).train()
    assert best_of(tmp_path) == 3
    damage(tmp_path / "last.h5")
    solver = Solver.resume(tmp_path, make_model(), data, learning_rate=1.0)
    solver.train()
    assert solver.monitor.best_epoch == best_of(tmp_path) == 2
    np.testing.assert_array_equal(
        solver.model.params.flat, load_checkpoint(tmp_path / "best.h5").parameters.flat
    )


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_best_checkpoint_of_no_known_epoch_is_reported(make_model, data, tmp_path, capsys, epoch):
    """best.previous.h5 is of epoch 2 or does not exist."""
    options = {"num_epochs": 3, "batch_size": 8, "seed": 5, "verbose": False}
    Solver(make_model(), data, run_dir=tmp_path, **options).train()
    if epoch == 2:
        (tmp_path / "best.previous.h5").unlink()
    assert repair_best(tmp_path / "best.h5", 3)
    assert not repair_best(tmp_path / "best.h5", epoch)
    assert not capsys.readouterr().err
    assert best_of(tmp_path) == 3


def test_a_damaged_best_checkpoint_of_a_run_that_resumes(make_model, data, tmp_path, capsys):
    options = {"batch_size": 8, "seed": 5, "verbose": False}
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=3, **options).train()
    damage(tmp_path / "best.h5")
    assert repair_best(tmp_path / "best.h5", 2)  # as best.previous.h5
    assert "takes its place" in capsys.readouterr().err
    assert best_of(tmp_path) == 2
    damage(tmp_path / "best.h5")
    assert not repair_best(tmp_path / "best.h5", 2)  # there is no other any more


def test_a_best_checkpoint_that_is_lost_is_an_error_before_training(make_model, data, tmp_path, capsys):
    options = {"batch_size": 8, "verbose": False, "optim_config": {"learning_rate": 1e-30}}
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=2, **options).train()
    assert best_of(tmp_path) == 1  # the loss did not fall any more
    damage(tmp_path / "best.h5")
    before = (tmp_path / "last.h5").read_bytes()
    message = r"best.h5: checkpoint: found a damaged one, and no intact best.previous.h5, expected that of ep"
    with pytest.raises(CheckpointError, match=message):
        Solver.resume(tmp_path, make_model(), data, num_epochs=3).train()
    assert (tmp_path / "last.h5").read_bytes() == before
    Solver.resume(tmp_path, make_model(), data, num_epochs=3, restore_best=False).train()
    assert "best.h5 is damaged or of another epoch than 1, this run's best" in capsys.readouterr().err


def test_a_run_that_somebody_else_has_trained_on(make_model, data, tmp_path):
    """Both have read the same checkpoint; the one that is first trains, the other must not undo it."""
    options = {"batch_size": 8, "seed": 5, "verbose": False}
    Solver(make_model(), data, run_dir=tmp_path, num_epochs=2, **options).train()
    first, second = (Solver.resume(tmp_path, make_model(), data, num_epochs=3) for _ in range(2))
    first.train()
    saved = (tmp_path / "last.h5").read_bytes()
    with pytest.raises(
        InUseError, match="has 21 iterations, and this run continues from 14: another process"
    ):
        second.train()
    assert (tmp_path / "last.h5").read_bytes() == saved
    first.train()  # its own
