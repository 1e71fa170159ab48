"""A small table of two models, and a stand-in for the command that trains and evaluates them."""

import csv
import json
import sys
from pathlib import Path

from benchmarks.columns import best, score
from benchmarks.making import Usage
from benchmarks.trainings import Row, Table, Training, seeds
from rnnlab.recipes.recipe import load_recipe

ROOT = Path(__file__).resolve().parents[2]

FIRST = Training("first", "shapes", ("training.num_epochs=3",))
ON = Training("on", "shapes", ("model.hidden_dim=8", "training.num_epochs=3"), start=FIRST)
TABLE = Table(
    "a table",
    (
        Row("first", (FIRST,), ("--split", "val", "--beam", "3"), {"BLEU": 9.5}),
        Row("on", seeds(ON, 2), ("--split", "val")),
    ),
    {"BLEU": score("BLEU"), "loss": best("val_loss", ".2f", 1, least=True)},
)


class FakeCommand:
    """Stands for :func:`benchmarks.making.rnnlab`: writes a command's files, and records the call.

    It exits in the training number ``fails_at``, after the first checkpoint.
    """

    def __init__(self):
        self.asked, self.fails_at = [], None

    def __call__(self, arguments):
        self.asked.append(list(arguments))
        if arguments[0] == "train":
            self._train(arguments)
            return Usage(512.25, 1.5)
        runs = [word for word in arguments[1:] if "/" in word and not word.endswith(".json")]
        number = sum(int(run[-1]) for run in runs)
        contents = {
            "evaluate": {"corpus": {"BLEU": 0.1 * (1 + number), "perplexity": 1 / 3}, "images": []},
            "discrepancy": {"d_mc": 0.5, "d_pw": 0.25, "split": "val"},
        }
        file = Path(arguments[list(arguments).index("--json") + 1])
        file.write_text(json.dumps(contents[arguments[0]]))
        return Usage(1.0, 0.5)

    def _train(self, arguments):
        fails = self.fails_at == sum(words[0] == "train" for words in self.asked)
        if "--resume" in arguments:
            write_run(Path(arguments[arguments.index("--resume") + 1]))
            return
        out = Path(arguments[arguments.index("--out") + 1])
        changes = [arguments[k + 1] for k, word in enumerate(arguments) if word == "--set"]
        if "--matmul" in arguments:
            changes.append(f"training.matmul={arguments[arguments.index('--matmul') + 1]}")
        write_run(out, load_recipe(arguments[1], changes), epochs=1 if fails else 3)
        if fails:
            sys.exit("failed")

    def names(self):
        return [arguments[0] for arguments in self.asked]


def write_run(directory, config=None, epochs=3):
    """What a training leaves behind after some epochs."""
    directory.mkdir(parents=True, exist_ok=True)
    if config is not None:
        training = config.training
        solver = {"num_epochs": training.num_epochs, "monitor": "val_loss", "monitor_mode": None}
        content = {
            "rnnlab_version": "0.1.0",
            "config": config.to_dict(),
            "num_parameters": 2_500_000,
            "solver": solver | {"patience": training.patience},
        }
        (directory / "config.json").write_text(json.dumps(content))
    (directory / "last.h5").touch()
    with (directory / "history.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["epoch", "val_loss", "seconds"])
        writer.writeheader()
        writer.writerows(
            {"epoch": k + 1, "val_loss": loss, "seconds": 60.0}
            for k, loss in enumerate([2.0, 1.0 / 3, 1.5, 1.25][:epochs])
        )
