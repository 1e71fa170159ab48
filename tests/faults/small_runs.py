"""Five recipes so small that a whole run takes a second: one for each way to train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnlab.data import write_shapes

from ..tasks.letters import write_letters

_CAPTIONS = {"wordvec_dim": 6, "hidden_dim": 8}
_TRAINING = {"num_epochs": 3, "batch_size": 10, "checkpoint_every": 1, "clip_norm": 1.0, "seed": 3}


def recipes(folder: Path) -> dict[str, dict[str, Any]]:
    """The tables of each recipe by name; their data are written into ``folder``."""
    shapes, letters = folder / "shapes", folder / "letters"
    write_shapes(shapes, {"train": 12, "val": 4, "test": 4})
    letters.mkdir()
    write_letters(letters)
    pooled = {"kind": "shapes", "directory": str(shapes)}
    grids = pooled | {"features": "local"}
    pairs = {"kind": "parallel", "directory": str(letters), "source": "src", "target": "trg", "max_train": 60}
    return {
        "captions, dropout, zoneout": {
            "data": pooled,
            "model": _CAPTIONS | {"output_dropout": 0.2, "regularisation": {"zoneout_h": 0.1}},
            "training": _TRAINING,
        },
        "attention, scheduled sampling": {
            "data": grids,
            "model": _CAPTIONS | {"attention": "additive", "attention_dim": 5},
            "training": _TRAINING
            | {"scheduled_sampling": {"name": "constant", "value": 0.3}, "accumulate": 2},
        },
        "reviewer in two stages": {
            "data": grids,
            "model": _CAPTIONS
            | {
                "attention": "additive",
                "attention_dim": 5,
                "reviewer": {"blocks": 2, "steps": 2},
                "reconstructor_dim": 4,
            },
            "training": {"batch_size": 10, "checkpoint_every": 1, "seed": 3},
            "stage": [
                {"num_epochs": 2, "trains": ["W*"]},
                {"num_epochs": 2, "update_rule": "rmsprop", "losses": {"reconstruction": 0.01}},
            ],
        },
        "translation": {
            "data": pairs | {"tokenizer": "spaces"},
            "model": {"attention": "additive", "attention_dim": 5, "wordvec_dim": 6, "hidden_dim": 8},
            "training": _TRAINING | {"schedule": {"name": "plateau", "factor": 0.5}},
            "evaluation": {"split": "val"},
        },
        "digits": {
            "data": {"kind": "digits", "max_train": 60},
            "model": {"hidden_dim": 6, "output_dropout": 0.2},
            "training": _TRAINING | {"monitor": "val_accuracy", "patience": 2},
        },
    }
