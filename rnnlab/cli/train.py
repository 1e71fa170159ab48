"""``rnnlab train``: train what a recipe describes, or go on with a run; show what has become of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rnnlab import runs
from rnnlab.cli.arguments import positive_integer
from rnnlab.cli.device_option import add_device
from rnnlab.cli.task_commands import recipe_of
from rnnlab.metrics import CAPTION_SCORERS, TRANSLATION_SCORERS
from rnnlab.metrics.library import Library
from rnnlab.recipes.recipe import ClassificationConfig, Config, TranslationConfig, load_config
from rnnlab.reporting import report
from rnnlab.runs import Run
from rnnlab.tasks.search import decode

_SHOWN = 8  # captions or translations


def add(commands: Any) -> None:
    """Add the command's arguments."""
    train = commands.add_parser("train", help="train what a recipe describes")
    train.set_defaults(run=_train)
    train.add_argument("recipe", nargs="?", help="a TOML file, such as recipes/shapes.toml")
    train.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key: model.hidden_dim=256"
    )
    train.add_argument("--out", help="run directory, runs/NAME_OF_RECIPE if left out")
    train.add_argument("--resume", metavar="DIR", help="go on with the run in DIR")
    train.add_argument(
        "--epochs",
        type=positive_integer,
        help="train for so many epochs in all, of the last stage if there are several",
    )
    add_device(train)
    train.add_argument(
        "--graphs", action="store_true", help="on a GPU, launch each training step as one CUDA graph"
    )
    train.add_argument(
        "--no-progress", dest="progress", action="store_false", help="print lines, not a progress bar"
    )


def _train(options: argparse.Namespace) -> int:
    if (options.recipe is None) == (options.resume is None):
        raise ValueError("give either a recipe or --resume DIR")
    if options.resume is not None:
        if options.set or options.out:
            raise ValueError(
                "--set and --out belong to a new run, a resumed one keeps its recipe and directory"
            )
        run = runs.resume(
            options.resume,
            progress=options.progress,
            num_epochs=options.epochs,
            device=options.device,
            graphs=options.graphs,
        )
    else:
        config = load_config(options.recipe, options.set)
        if options.epochs is not None:
            config = runs.with_epochs(config, options.epochs)
        out = Path(options.out or Path("runs") / Path(options.recipe).stem)
        if runs.holds_run(out):
            raise ValueError(
                f"{out} holds a run: go on with --resume {out}, or choose another place with --out"
            )
        run = runs.train(config, out, progress=options.progress, device=options.device, graphs=options.graphs)
    if run.interrupted:
        device = "" if options.device == "cpu" else f" --device {options.device}"
        print(f"Go on with: rnnlab train --resume {run.directory}{device}{' --graphs' * options.graphs}")
        raise KeyboardInterrupt
    if isinstance(run.config, TranslationConfig):
        _show_translations(run)
    elif isinstance(run.config, ClassificationConfig):
        _show_classes(run)
    else:
        _show_captions(run)
    return 0


def _show_translations(run: Run) -> None:
    split = run.config.evaluation.split
    print(f"\nThe loss is pictured in {run.directory / 'loss.png'}.")
    if TRANSLATION_SCORERS.installed:
        evaluated = runs.evaluate(run)
        print(f"\nTranslations of the {split} split:\n\n{report.beside_references(evaluated, _SHOWN)}")
        print(f"\nScores of the {split} split:\n\n{report.scores_table(evaluated)}")
    else:
        _say_how_to_score(run, TRANSLATION_SCORERS)


def _show_classes(run: Run) -> None:
    split = run.config.evaluation.split
    print(f"\nThe loss is pictured in {run.directory / 'loss.png'}.")
    print(f"\nScores of the {split} split:\n\n{report.scores_table(runs.evaluate(run))}")


def _show_captions(run: Run) -> None:
    config = recipe_of(run, Config)
    split = config.evaluation.split
    images = run.data.split(split)
    shown = min(_SHOWN, images.num_images)
    features = images.features_at(slice(shown))
    captions = decode(run.model, features, config.decoding, rng=config.training.seed)
    print(f"\nCaptions of the {split} split:\n")
    print(report.captions_text(images.names[:shown], captions, run.data))
    picture = run.directory / "captions.png"
    report.captions_picture(picture, images.names[:shown], captions, run.data)
    print(f"\nPictured in {picture}, the loss in {run.directory / 'loss.png'}.")
    if CAPTION_SCORERS.installed:
        print(f"\nScores of the {split} split:\n\n{report.scores_table(runs.evaluate(run))}")
    else:
        _say_how_to_score(run, CAPTION_SCORERS)


def _say_how_to_score(run: Run, library: Library) -> None:
    print(f'\nScores need the extra "{library.extra}": pip install -e ".[{library.extra}]", then')
    print(f"rnnlab evaluate {run.directory} --split {run.config.evaluation.split}")
