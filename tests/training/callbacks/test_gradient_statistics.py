from __future__ import annotations

import numpy as np
import pytest

from rnnlab.training import Solver
from rnnlab.training.callbacks import GradientStatistics
from rnnlab.training.callbacks.gradient_statistics import EDGES

pytestmark = pytest.mark.usefixtures("no_pictures")


def test_norms_and_histograms(make_model, data, tmp_path):
    callback = GradientStatistics(every=2)
    _, grads = make_model(dropout=0).loss(*data.batch("train", np.arange(50)))
    options = {"num_epochs": 3, "batch_size": 50, "trains": ["W"], "run_dir": tmp_path, "verbose": False}
    Solver(make_model(dropout=0), data, callbacks=[callback], **options).train()
    assert callback.iterations == [1, 3]
    assert callback.norms["W"][0] == pytest.approx(float(np.linalg.norm(grads["W"])))
    assert callback.norms["b"] == [0, 0]
    first = callback.histograms["W"][0]
    assert first.sum() == grads["W"].size
    for value in np.abs(grads["W"]).ravel():
        assert first[np.searchsorted(EDGES, np.log10(value), side="right") - 1] > 0
    assert callback.histograms["b"][0].tolist() == [3] + [0] * (len(EDGES) - 2)
    assert (tmp_path / "gradients.png").read_bytes().startswith(b"\x89PNG")
    assert [axes.get_title() for axes in callback.plot().axes] == ["W", "b"]


def test_values_beyond_the_edges_are_counted(make_model, data):
    class Extreme(make_model):
        def loss(self, *batch, **options):
            loss, grads = super().loss(*batch, **options)
            grads["b"] = [1e-200, 1e-12, 1e30]
            return loss, grads

    callback = GradientStatistics()
    Solver(Extreme(), data, callbacks=[callback], num_epochs=1, trains=["b"], verbose=False).train()
    counts = callback.histograms["b"][0]
    assert (counts[0], counts[-1], counts.sum()) == (2, 1, 3)


def test_without_a_directory_there_is_no_picture(model, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Solver(model, data, callbacks=[GradientStatistics()], num_epochs=1, verbose=False).train()
    assert list(tmp_path.iterdir()) == []


def test_a_bad_interval():
    with pytest.raises(ValueError, match="GradientStatistics: every is 0, expected an integer of at least 1"):
        GradientStatistics(every=0)


def test_each_training_has_its_own_records(make_model, data):
    callback = GradientStatistics(every=1)
    for _ in range(2):
        solver = Solver(make_model(), data, callbacks=[callback], num_epochs=1, batch_size=50, verbose=False)
        solver.train()
        assert callback.iterations == list(range(1, solver.iteration + 1))
        assert len(callback.norms["W"]) == len(callback.histograms["W"]) == solver.iteration
