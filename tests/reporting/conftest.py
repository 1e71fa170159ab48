"""Run directories that are written, not trained: what the reports read of them is known."""

import json

import numpy as np
import pytest

from rnnlab.parameters import Parameters
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.training import Checkpoint
from rnnlab.training.checkpoint import save_checkpoint
from rnnlab.training.run_directory import RunDirectory

CLASSES = {"SequenceClassifier": {"kind": "digits"}, "CaptioningRNN": {"kind": "shapes"}}


def history(count, tokens=10.0, **columns):
    """Epochs of 20 iterations with a loss of 40 / epoch per example of ``tokens`` tokens.

    ``columns`` are metrics: a list with a value for each epoch.
    """
    return [
        {
            "epoch": epoch,
            "iteration": 20 * epoch,
            "train_loss": 40.0 / epoch,
            "train_loss_per_token": 40.0 / epoch / tokens,
            "gradient_norm": 1.0,
            "seconds": 30.0,
            "tokens_per_second": 100.0,
            "learning_rate": 0.01,
            **{name: values[epoch - 1] for name, values in columns.items()},
        }
        for epoch in range(1, count + 1)
    ]


@pytest.fixture
def write_run(tmp_path):
    """A function that writes a run directory and returns its path."""

    def write(
        name="run",
        rows=None,
        *,
        model="CaptioningRNN",
        changes=None,
        objective=None,
        stages=(),
        recipe=True,
        **options,
    ):
        rows = history(3, val_loss=[3.0, 2.0, 2.5]) if rows is None else rows
        tables = {"data": dict(CLASSES[model]), "training": {"num_epochs": 3}}
        for key, value in (changes or {}).items():
            table, _, last = key.partition(".")
            tables.setdefault(table, {})[last] = value
        config = recipe_from_dict(tables | {"stage": list(stages)}).to_dict() if recipe else None
        options = {"num_epochs": 3, "monitor": "val_loss", "monitor_mode": None, "patience": None} | options
        run = RunDirectory(tmp_path / name)
        run.write_config(
            {
                "config": config,
                "model": {"class": model, "config": {}},
                "num_parameters": 1234,
                "solver": options,
                "objective": objective,
            }
        )
        run.write_history(rows)
        losses = np.repeat([row["train_loss"] for row in rows], 20)
        saved = Checkpoint(
            Parameters({"W": (2,)}, np.dtype(np.float32)),
            {"class": model, "config": {}},
            config=config,
            losses=losses,
            history=json.loads(json.dumps(rows)),
            solver={"options": options, "objective": objective},
        )
        save_checkpoint(run.last, saved)
        return run.path

    return write
