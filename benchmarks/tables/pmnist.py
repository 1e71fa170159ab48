"""X. Chen et al. (2018), table 5: permuted sequential MNIST."""

from __future__ import annotations

from benchmarks.columns import EPOCHS, best, last, score
from benchmarks.trainings import Row, Table, Training

_TEST = ("--split", "test")

# Images are pooled: an epoch over 784 steps takes five minutes on one core, and a hundred epochs are needed.
_TO_THE_END = ("data.pool=2", "training.num_epochs=100", "training.patience=10")
_START = Training("pmnist14_start", "pmnist_lstm", _TO_THE_END)
_SECOND_STAGE = (*_TO_THE_END, "training.optim_config.learning_rate=5e-4")
_KINDS = {
    "LSTM": ("pmnist14_lstm", "pmnist_lstm", (), 91.4),
    "recurrent dropout of the candidate, 0.25": (
        "pmnist14_recurrent_dropout",
        "pmnist_recurrent_dropout",
        (),
        92.5,
    ),
    "zoneout of h and c, 0.15": ("pmnist14_zoneout", "pmnist_zoneout", (), 93.1),
    "ARNet, λ = 0.001": ("pmnist14_arnet", "pmnist_lstm", ("model.reconstruction=0.001",), 93.3),
}


def _row(label: str) -> Row:
    name, recipe, changes, paper = _KINDS[label]
    training = Training(name, recipe, (*_SECOND_STAGE, *changes), start=_START)
    return Row(label, (training,), _TEST, {"test accuracy, %": paper})


TABLES = {
    "pmnist": Table(
        "Permuted sequential MNIST of 14 x 14 pixels, test: a first stage, then four kinds of a second "
        "(X. Chen et al. 2018, table 5)",
        (Row("the first stage", (_START,), _TEST), *(_row(label) for label in _KINDS)),
        {
            "test accuracy, %": score("accuracy", ".2f"),
            "test loss": score("loss", ".3f", 1),
            "validation accuracy, %": best("val_accuracy", ".2f"),
            "training loss, last epoch": last("train_loss"),
        }
        | EPOCHS,
        paper="the paper, 28 x 28 pixels",
    ),
}
