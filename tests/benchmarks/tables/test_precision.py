"""The figure of the losses in two precisions, from results alone."""

import pytest

from benchmarks import results
from benchmarks.tables.precision import TABLES, draw_losses

FULL, ROUNDED = (row.entries for row in TABLES["precision"].rows)


def store(entry, losses, folder):
    history = [
        {"epoch": epoch, "train_loss_per_token": loss, "val_loss": loss + 0.1}
        for epoch, loss in enumerate(losses, 1)
    ]
    results.store(entry.id, {"history": history, "evaluations": {}, "commands": []}, folder)


@pytest.mark.slow
def test_the_figure_needs_both_precisions(tmp_path):
    path = tmp_path / "precision.png"
    assert not draw_losses(path, tmp_path)
    store(FULL[0], [4, 3], tmp_path)
    assert not draw_losses(path, tmp_path)
    assert not path.exists()
    store(ROUNDED[1], [4, 3.1], tmp_path)
    assert draw_losses(path, tmp_path)
    first = path.read_bytes()
    assert first.startswith(b"\x89PNG")
    assert draw_losses(path, tmp_path)
    assert path.read_bytes() == first
    store(ROUNDED[2], [4, 3.5], tmp_path)
    assert draw_losses(path, tmp_path)
    assert path.read_bytes() != first


def test_trainings_differ_in_their_precision_alone():
    assert len({each.id for each in (*FULL, *ROUNDED)}) == 6
    for full, rounded in zip(FULL, ROUNDED, strict=True):
        assert (full.recipe, full.seed) == (rounded.recipe, rounded.seed)
        assert set(rounded.changes) - set(full.changes) == {"training.matmul=bfloat16"}
