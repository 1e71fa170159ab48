"""``rnnlab train``: train the model that a recipe describes, or resume a run, and show the results."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnlab import runs
from rnnlab.cli.arguments import add_download, positive_integer, positive_number
from rnnlab.cli.device_option import (
    ShownProducts,
    add_device,
    add_graphs,
    add_matmul,
    device_words,
    graphs_words,
    matmul_setting,
)
from rnnlab.cli.mpi_option import add_mpi, launcher_words, mpi_words
from rnnlab.cli.recipe_file import read_recipe
from rnnlab.cli.task_commands import recipe_of
from rnnlab.data.images import image_on_disk
from rnnlab.errors import InputError
from rnnlab.extras import Library
from rnnlab.files import check_writable
from rnnlab.metrics import CAPTION_SCORERS, TRANSLATION_SCORERS, JavaError
from rnnlab.recipes.recipe import (
    CaptioningRecipe,
    ClassificationRecipe,
    LanguageRecipe,
    Recipe,
    TranslationRecipe,
)
from rnnlab.reporting.captions import captions_picture, captions_text
from rnnlab.reporting.scores import scores_table
from rnnlab.reporting.sentences import sentences_text
from rnnlab.reporting.translations import with_references
from rnnlab.runs import Run
from rnnlab.shell import quoted
from rnnlab.tasks import language
from rnnlab.tasks.search import decode
from rnnlab.training import Callback
from rnnlab.training.callbacks import TimeBudget
from rnnlab.training.run_directory import holds_run

_SHOWN = 8  # captions, translations or sentences shown
_TIME_IS_OVER = 75  # the exit status EX_TEMPFAIL: run the command again
AFTER_A_SIGNAL = 128  # plus the signal's number, as in shells: 130 for Ctrl-C, 143 for SIGTERM


def add(commands: Any) -> None:
    """Add the command's arguments."""
    train = commands.add_parser("train", help="train the model that a recipe describes")
    train.set_defaults(run=_train)
    train.add_argument(
        "recipe", nargs="?", help="a TOML file, or a name that rnnlab recipes list shows, such as shapes"
    )
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a key: model.hidden_dim=256; with --resume the learning rate and a few others",
    )
    train.add_argument("--out", help="the run directory (default: runs/NAME_OF_RECIPE)")
    train.add_argument("--resume", metavar="DIR", help="resume the run in DIR")
    train.add_argument(
        "--epochs",
        type=positive_integer,
        help="the total number of epochs (of the last stage, if the recipe has stages)",
    )
    add_device(train)
    add_matmul(train)
    add_mpi(train)
    add_graphs(train)
    train.add_argument(
        "--max-hours",
        type=positive_number,
        metavar="HOURS",
        help=f"stop after this time with a checkpoint to resume from, and exit status {_TIME_IS_OVER}",
    )
    add_download(train)
    train.add_argument(
        "--no-progress", dest="progress", action="store_false", help="print lines, not a progress bar"
    )


def _train(options: argparse.Namespace) -> int:
    if (options.recipe is None) == (options.resume is None):
        raise InputError("give either a recipe or --resume DIR")
    callbacks: list[Callback] = [ShownProducts()]
    if options.max_hours is not None:
        callbacks.append(TimeBudget(options.max_hours))
    run = (_new_run if options.resume is None else _resumed_run)(options, callbacks)
    if run.interrupted:
        try:
            print(f"Resume with: {_resume_command(run.directory, options)}", flush=True)
        except OSError:  # after SIGHUP, the terminal is closed
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        if run.signal is None:
            return _TIME_IS_OVER
        return AFTER_A_SIGNAL + run.signal
    if isinstance(run.recipe, TranslationRecipe):
        _show_translations(run, options)
    elif isinstance(run.recipe, LanguageRecipe):
        _show_sentences(run, run.recipe)
        _show_scores(run, options)
    elif isinstance(run.recipe, ClassificationRecipe):
        print(f"\nLosses: {run.directory / 'loss.png'}")
        _show_scores(run, options)
    else:
        _show_captions(run, options)
    print(f"\nReport: rnnlab report {quoted(run.directory)} --open")
    return 0


def _new_run(options: argparse.Namespace, callbacks: Sequence[Callback]) -> Run:
    recipe = read_recipe(options.recipe, _changes(options))
    if options.epochs is not None:
        recipe = runs.with_epochs(recipe, options.epochs, options.set)
    if options.download:
        _check_captions(recipe)
    out = Path(options.out or Path("runs") / Path(options.recipe).stem)
    if holds_run(out):
        raise InputError(
            f"{out} already holds a run: resume it with {_resume_command(out, options)}, "
            "or choose another directory with --out"
        )
    check_writable("--out", out, is_folder=True)
    return runs.train(recipe, out, callbacks=callbacks, **_how(options))


def _resumed_run(options: argparse.Namespace, callbacks: Sequence[Callback]) -> Run:
    if options.out:
        raise InputError("--out is for a new run; a resumed run has its directory")
    if options.download:
        _check_captions(runs.load_run(options.resume, with_data=False).recipe)
    changes = {"num_epochs": options.epochs, "overrides": _changes(options)}
    return runs.resume(options.resume, callbacks=callbacks, **changes, **_how(options))


def _check_captions(recipe: Recipe) -> None:
    """Raise InputError if a recipe has no images to download."""
    if not isinstance(recipe, CaptioningRecipe):
        raise InputError(
            f"--download is for captions, and data.kind {recipe.data.kind!r} has no images to draw"
        )


def _changes(options: argparse.Namespace) -> list[str]:
    """The changes of the recipe."""
    return [*options.set, *matmul_setting(options)]


def _how(options: argparse.Namespace) -> dict[str, Any]:
    """The options that new and resumed runs have in common."""
    names = ("progress", "device", "graphs", "communicator")
    return {name: getattr(options, name) for name in names}


def _resume_command(directory: Path, options: argparse.Namespace) -> str:
    """The command that resumes a run on the same device, on as many processes, in the same way."""
    how = f"{device_words(options)}{mpi_words(options)}{graphs_words(options)}"
    budget = "" if options.max_hours is None else f" --max-hours {options.max_hours:g}"
    return f"{launcher_words(options)}rnnlab train --resume {quoted(directory)}{how}{budget}"


def _show_translations(run: Run, options: argparse.Namespace) -> None:
    split = run.recipe.evaluation.split
    print(f"\nLosses: {run.directory / 'loss.png'}")
    if TRANSLATION_SCORERS.installed:
        evaluated = runs.evaluate(run, communicator=options.communicator)
        print(f"\nTranslations of the {split} split:\n\n{with_references(evaluated, _SHOWN)}")
        print(f"\nScores of the {split} split:\n\n{scores_table(evaluated)}")
    else:
        _say_how_to_score(run, TRANSLATION_SCORERS, options)


def _show_sentences(run: Run, recipe: LanguageRecipe) -> None:
    decoding, seed = recipe.decoding, recipe.training.seed
    found = language.write(run.model, run.inputs, "", decoding, count=_SHOWN, rng=seed)
    heading = "Text" if run.inputs.running else "Sentences"
    print(f"\n{heading}:\n\n{sentences_text(run, '', found, lists=decoding.n_best > 1)}")
    print(f"\nLosses: {run.directory / 'loss.png'}")


def _show_scores(run: Run, options: argparse.Namespace) -> None:
    split = run.recipe.evaluation.split
    evaluated = runs.evaluate(run, communicator=options.communicator)
    print(f"\nScores of the {split} split:\n\n{scores_table(evaluated)}")


def _show_captions(run: Run, options: argparse.Namespace) -> None:
    recipe = recipe_of(run, CaptioningRecipe)
    split = recipe.evaluation.split
    images = run.data.split(split)
    shown = min(_SHOWN, images.num_images)
    features = images.features_at(slice(shown))
    captions = decode(run.model, features, recipe.decoding, rng=recipe.training.seed)
    print(f"\nCaptions of the {split} split:\n")
    lists = recipe.decoding.n_best > 1
    print(captions_text(images.names[:shown], captions, run.data, lists=lists))
    picture = run.directory / "captions.png"
    if options.communicator.rank == 0:
        captions_picture(picture, images.names[:shown], captions, run.data, download=options.download)
    found = options.download or any(image_on_disk(name, run.data.image_dir) for name in images.names[:shown])
    remark = "" if found else " (placeholders: the folder data.images has no files of these images)"
    print(f"\nCaptions: {picture}{remark}\nLosses: {run.directory / 'loss.png'}")
    if not CAPTION_SCORERS.installed:
        _say_how_to_score(run, CAPTION_SCORERS, options)
        return
    try:
        evaluated = runs.evaluate(run, communicator=options.communicator)
        print(f"\nScores of the {split} split:\n\n{scores_table(evaluated)}")
    except JavaError as error:  # the training is complete and saved
        print(f"\nNo scores: {error}. Install Java, or choose the other tokenizer:")
        print(f"rnnlab evaluate {quoted(run.directory)} --tokenizer simple{device_words(options)}")


def _say_how_to_score(run: Run, library: Library, options: argparse.Namespace) -> None:
    print(f'\nScores need the extra "{library.extra}": pip install "rnnlab[{library.extra}]", then')
    split = run.recipe.evaluation.split
    directory = quoted(run.directory)
    print(f"rnnlab evaluate {directory} --split {quoted(split)}{device_words(options)}")
