"""``rnnlab caption``: caption images, and show the attention of the captions."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnlab.cli.device_option import add_device
from rnnlab.cli.run_arguments import RUNS_HELP, add_average, check_attends, leading_runs, open_runs
from rnnlab.cli.search_options import add_search, search_options
from rnnlab.cli.task_commands import recipe_of
from rnnlab.data import open_features
from rnnlab.recipes.recipe import Config
from rnnlab.reporting.captions import attention_picture, captions_picture, captions_text
from rnnlab.runs import Run, holds_run
from rnnlab.tasks.search import decode

_DRAWN = 8  # captions whose attention is drawn


def add(commands: Any) -> None:
    """Add the command's arguments."""
    caption = commands.add_parser("caption", help="caption images")
    caption.set_defaults(run=_caption)
    caption.add_argument("run_directory", metavar="RUN", help=f"{RUNS_HELP}: RUN RUN ... IMAGES_OR_SPLIT")
    add_device(caption)
    add_average(caption)
    caption.add_argument(
        "images",
        nargs="+",
        metavar="IMAGES_OR_SPLIT",
        help="a split (val), names of images in the run's data, or an HDF5 file of features",
    )
    caption.add_argument(
        "--global-features",
        metavar="FILE",
        help="an HDF5 file with one vector for each image, in addition to a file of local features",
    )
    caption.add_argument("--picture", metavar="FILE", help="write a PNG of the images with their captions")
    caption.add_argument(
        "--show-attention",
        metavar="FILE",
        help=f"write a PNG of the attention of the first {_DRAWN} captions; of several runs, the mean",
    )
    caption.add_argument("--seed", type=int, default=0, help="the seed of --method sample")
    add_search(caption)


def _caption(options: argparse.Namespace) -> int:
    run, names, features = _images(options)
    config = recipe_of(run, Config)
    if options.show_attention:
        check_attends(run, "--show-attention", "regions")
    names, data = names[: options.first], run.data or run.inputs
    captions = decode(
        run.model,
        features,
        search_options(config.decoding, options),
        rng=options.seed,
        alignments=options.show_attention is not None,
        first=options.first,
    )
    print(captions_text(names, captions, data))
    if options.picture:
        captions_picture(options.picture, names, captions, data)
    if options.show_attention:
        attention_picture(options.show_attention, names[:_DRAWN], captions[:_DRAWN], data)
    return 0


def _images(options: argparse.Namespace) -> tuple[Run, Sequence[str], Any]:
    """The run, and the names and features of a split, of features files, or of images by name.

    Features files need the run alone: its data are not opened.
    """
    # the last argument is a split or an image, even if there is a directory of its name
    directories, wanted = leading_runs(options.run_directory, options.images[:-1])
    wanted.append(options.images[-1])
    is_file = len(wanted) == 1 and wanted[0].endswith((".h5", ".hdf5"))
    run = open_runs(directories, options, with_data=not is_file)
    recipe_of(run, Config)
    if is_file:
        return run, *_features_of_files(run, wanted[0], options.global_features)
    if options.global_features is not None:
        raise ValueError("--global-features needs an HDF5 file of local features as well")
    if len(wanted) == 1 and wanted[0] in run.data.splits:
        images = run.data.split(wanted[0])
        return run, images.names, images.model_inputs
    if holds_run(Path(wanted[-1])):
        raise ValueError(
            f"{wanted[-1]} is a run; which images? Give a split or images after the runs, such as "
            f"{', '.join(run.data.splits)}"
        )
    return run, tuple(wanted), run.data.features_of(wanted)


def _features_of_files(run: Run, file: str, global_features: str | None) -> tuple[tuple[str, ...], Any]:
    """The names and the scaled features of the images of files."""
    names, features = open_features(file, global_features)
    reads = run.inputs.num_global_features is not None
    if reads != (global_features is not None):
        needs = "needs --global-features as well" if reads else "takes no --global-features"
        raise ValueError(f"the model of {run.directory} {needs}: see [data] of its recipe")
    files = file if global_features is None else f"{file} and {global_features}"
    return names, run.inputs.standardise(features, files)
