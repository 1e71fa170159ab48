"""The same training with products in float32 and in bfloat16, three seeds each."""

from __future__ import annotations

from pathlib import Path

from benchmarks import results
from benchmarks.columns import CAPTIONS, best
from benchmarks.tables.flickr8k import LSTM, LSTM_BFLOAT16, test
from benchmarks.trainings import Row, Table, seeds

_ROWS = {"float32": seeds(LSTM, 3), "bfloat16": seeds(LSTM_BFLOAT16, 3)}


def draw_losses(path: Path, of: Path = results.RESULTS) -> bool:
    """Draw the loss of each training over the epochs; return false if a precision has no results.

    Parameters
    ----------
    path : path
        The path of the PNG.
    of : path
        The folder of the results.
    """
    found = {
        label: [known["history"] for each in entries if (known := results.load(each.id, of)) is not None]
        for label, entries in _ROWS.items()
    }
    if not all(found.values()):
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), ("train_loss_per_token", "val_loss"), strict=True):
        for (label, histories), style in zip(found.items(), ("C0-", "C1--"), strict=True):
            for number, history in enumerate(histories):
                epochs = [row["epoch"] for row in history]
                losses = [row[name] for row in history]
                axes.plot(epochs, losses, style, linewidth=1, label=None if number else label)
        axes.set(xlabel="epoch", ylabel=f"{name}, nats per word")
        axes.legend()
    figure.savefig(path, dpi=100, metadata={"Software": None})
    return True


TABLES = {
    "precision": Table(
        "Flickr8k, test, beam 3: an LSTM with products of float32 and with factors in bfloat16",
        tuple(Row(label, entries, test(3)) for label, entries in _ROWS.items()),
        CAPTIONS | {"validation CIDEr": best("CIDEr")},
    ),
}
