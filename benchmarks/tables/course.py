"""The model of the cs231n course on files in the course's layout, trained on 50, 10,000 and all captions."""

from __future__ import annotations

from benchmarks.columns import EPOCHS, MINUTES, SIZE, best, last, score
from benchmarks.trainings import Row, Table, Training

_FLICKR8K = "data.directory=$RNNLAB_DATA/flickr8k_cs231n"
_SIZES = {
    "50": (
        "data.max_train=50",
        "training.num_epochs=50",
        "training.batch_size=25",
        "training.optim_config.learning_rate=5e-3",
        'training.schedule={name="exponential", decay=0.995}',
    ),
    "10,000": ("data.max_train=10000", "training.num_epochs=20"),
    "all 30,000": (),
}


def _row(cell: str, size: str) -> Row:
    name = f"course_{cell}_{size.split()[0].replace(',', '')}"
    changes = (_FLICKR8K, f"model.cell_type={cell}", *_SIZES[size])
    return Row(f"{cell.upper()}, {size} captions", (Training(name, "coco_pca", changes),), ("--split", "val"))


TABLES = {
    "course": Table(
        "Flickr8k in the layout of the course, validation, greedy captions",
        tuple(_row(cell, size) for size in _SIZES for cell in ("rnn", "lstm", "gru")),
        {
            "training loss per word, last epoch": last("train_loss_per_token"),
            "best validation loss": best("val_loss", ".3f", 1, least=True),
            "BLEU-4": score("BLEU-4"),
            "CIDEr": score("CIDEr"),
        }
        | EPOCHS
        | MINUTES
        | SIZE,
    ),
}
