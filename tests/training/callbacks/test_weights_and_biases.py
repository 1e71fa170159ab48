from __future__ import annotations

import pytest

from rnnlab.training import Solver
from rnnlab.training.callbacks import WeightsAndBiases


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.filterwarnings("default")
def test_offline(make_model, make_data, data, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    sent = []
    log = wandb.Run.log
    monkeypatch.setattr(wandb.Run, "log", lambda run, row, **rest: (sent.append(row), log(run, row, **rest)))
    callbacks = [WeightsAndBiases("tests", every=2)]
    solver = Solver(
        make_model(), data, callbacks=callbacks, num_epochs=1, batch_size=20, run_dir=tmp_path, verbose=False
    )
    solver.train()
    assert [row["iteration"] for row in sent] == [1, 3, 3]
    assert [row["train/loss"] for row in sent[:2]] == solver.loss_history[::2]
    assert sent[2]["epoch/val_loss"] == solver.history[0]["val_loss"]
    identity = (tmp_path / "wandb_id.txt").read_text().strip()
    Solver.resume(tmp_path, make_model(), make_data(), callbacks=callbacks, num_epochs=2).train()
    assert len(list((tmp_path / "wandb").glob(f"offline-run-*-{identity}"))) == 2
    assert sent[-1]["iteration"] == 6


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'WeightsAndBiases needs wandb: pip install "rnnlab\[wandb\]"'):
        WeightsAndBiases()


def test_a_bad_project():
    with pytest.raises(ValueError, match="WeightsAndBiases: project is 3, expected a string"):
        WeightsAndBiases(3)
