"""``rnnlab caption``: caption images or photographs, and show the attention of the captions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rnnlab.cli.arguments import add_download, check_outputs, natural_number
from rnnlab.cli.device_option import add_device, add_matmul
from rnnlab.cli.encoder_options import add_encoder, check_encoder, with_encoder
from rnnlab.cli.mpi_option import add_mpi
from rnnlab.cli.run_arguments import RUNS_HELP, add_average, check_attends, leading_runs, open_runs
from rnnlab.cli.search_options import add_search, search_options
from rnnlab.cli.task_commands import recipe_of
from rnnlab.data import image_from_url, open_features
from rnnlab.data.photograph_inputs import frame_of, unlike_training
from rnnlab.errors import InputError, MissingDataError
from rnnlab.reading import check_regular
from rnnlab.recipes.data import ShapesData
from rnnlab.recipes.recipe import Config
from rnnlab.reporting.captions import attention_picture, captions_picture, captions_text
from rnnlab.runs import Run, holds_run
from rnnlab.tasks.search import decode

_DRAWN = 8  # captions whose attention is drawn
_PICTURED = 100  # images in a picture


class _Images(NamedTuple):
    """What is captioned."""

    run: Run
    names: Sequence[str]
    features: Any
    are_files: bool = False  # whether the names are paths of the command line, not names of the data
    are_encoded: bool = False  # whether the features of these files were computed


def add(commands: Any) -> None:
    """Add the command's arguments."""
    caption = commands.add_parser("caption", help="caption images")
    caption.set_defaults(run=_caption)
    caption.add_argument("run_directory", metavar="RUN", help=f"{RUNS_HELP}: RUN RUN ... IMAGES_OR_SPLIT")
    add_device(caption)
    add_matmul(caption)
    add_mpi(caption)
    add_average(caption)
    caption.add_argument(
        "images",
        nargs="+",
        metavar="IMAGES_OR_SPLIT",
        help="a split (val), names of images in the run's data, an HDF5 file of features, or photographs",
    )
    caption.add_argument(
        "--global-features",
        metavar="FILE",
        help="an HDF5 file with one vector for each image, in addition to a file of local features",
    )
    caption.add_argument(
        "--picture",
        metavar="FILE",
        help=f"write a PNG of the first {_PICTURED} images with their captions",
    )
    caption.add_argument(
        "--show-attention",
        metavar="FILE",
        help=f"write a PNG of the attention of the first {_DRAWN} captions; of several runs, the mean",
    )
    add_download(caption)
    caption.add_argument("--seed", type=natural_number, default=0, help="the seed of --method sample")
    add_encoder(
        caption,
        required=False,
        defaults="for a run on features that record no encoder; the defaults are those of the ONNX file",
    )
    add_search(caption)


def _caption(options: argparse.Namespace) -> int:
    inputs = *options.images, options.global_features, options.encoder
    check_outputs(options, "picture", "show_attention", inputs=inputs)
    run, names, features, are_files, are_encoded = _images(options)
    config = recipe_of(run, Config)
    if options.show_attention:
        check_attends(run, "--show-attention", "regions")
    names, data = names[: options.first], run.data or run.inputs
    decoding = search_options(config.decoding, options)
    captions = decode(
        run.model,
        features,
        decoding,
        rng=options.seed,
        alignments=options.show_attention is not None,
        first=options.first,
        communicator=options.communicator,
    )
    if options.communicator.rank:
        return 0
    download = options.download
    if options.picture:
        shown, found = names[:_PICTURED], captions[:_PICTURED]
        photographs = map(image_from_url, shown) if are_files else None
        captions_picture(options.picture, shown, found, data, images=photographs, download=download)
    if options.show_attention:
        shown, frames = names[:_DRAWN], None
        if are_files:
            draw = partial(frame_of, run.inputs) if are_encoded else image_from_url
            frames = [draw(name) for name in shown]
        attention_picture(
            options.show_attention, shown, captions[:_DRAWN], data, images=frames, download=download
        )
    # after the files, because it may fail
    print(captions_text(names, captions, data, lists=decoding.n_best > 1))
    return 0


def _images(options: argparse.Namespace) -> _Images:
    """The run, and the names and features of a split, of files, of images by name, or of photographs.

    Features files and photographs need the run alone: its data are not opened.
    """
    # the last argument is a split or an image, even if there is a directory of its name
    directories, wanted = leading_runs(options.run_directory, options.images[:-1])
    wanted.append(options.images[-1])
    check_encoder(options)
    is_file = len(wanted) == 1 and wanted[0].endswith((".h5", ".hdf5"))
    are_files = not is_file and all(Path(name).is_file() and Path(name).suffix for name in wanted)
    if options.encoder and not are_files:
        raise InputError(f"--encoder is for photographs, expected their files instead of {' '.join(wanted)}")
    run = open_runs(directories, options, with_data=not is_file and not are_files)
    recipe_of(run, Config)
    if is_file:
        return _Images(run, *_features_of_files(run, wanted[0], options.global_features))
    if options.global_features is not None:
        raise InputError("--global-features needs an HDF5 file of local features as well")
    if are_files and (options.encoder or run.inputs.knows_encoders):
        return _Images(*_features_of_photographs(run, wanted, options), are_files=True, are_encoded=True)
    if are_files:
        run = open_runs(directories, options)
        try:
            return _Images(run, tuple(wanted), run.data.features_of(wanted), are_files=True)
        except MissingDataError as error:
            if isinstance(run.config.data, ShapesData):
                raise MissingDataError(
                    f"{error}; this run captions no photographs: its features come from no encoder"
                ) from None
            raise MissingDataError(
                f"{error}; to caption photographs, give with --encoder the ONNX file of the encoder that "
                "made the features of the run, which they do not record"
            ) from None
    if len(wanted) == 1 and wanted[0] in run.data.splits:
        images = run.data.split(wanted[0])
        return _Images(run, images.names, images.model_inputs)
    if holds_run(Path(wanted[-1])):
        raise InputError(
            f"{wanted[-1]} is a run; which images? Give a split or images after the runs, such as "
            f"{', '.join(run.data.splits)}"
        )
    return _Images(run, tuple(wanted), _features_by_name(run, wanted))


def _features_by_name(run: Run, names: Sequence[str]) -> Any:
    """The features of images of the run's data."""
    try:
        return run.data.features_of(names)
    except MissingDataError:
        for name in names:
            if Path(name).is_dir():
                raise IsADirectoryError(f"{name} is a folder: folders are not read; name files") from None
            if Path(name).exists():
                check_regular(name, "a photograph")
            elif not _has_image(run, name):
                raise MissingDataError(
                    f"{name}: no such photograph, and no image of the run's data ({run.data.name}), whose "
                    f"splits are {', '.join(run.data.splits)}"
                ) from None
        raise


def _has_image(run: Run, name: str) -> bool:
    try:
        run.data.features_of([name])
    except MissingDataError:
        return False
    return True


def _features_of_photographs(
    run: Run, files: Sequence[str], options: argparse.Namespace
) -> tuple[Run, tuple[str, ...], Any]:
    """The run with its encoder, and the names and features of photographs."""
    files = tuple(files)[: options.first]
    run = with_encoder(run, options)
    features = run.inputs.encode(files)
    if options.communicator.rank == 0:
        for warning in unlike_training(files, features):
            print(f"rnnlab caption: {warning}", file=sys.stderr)
    return run, files, features


def _features_of_files(run: Run, file: str, global_features: str | None) -> tuple[tuple[str, ...], Any]:
    """The names and the scaled features of the images of files."""
    names, features = open_features(file, global_features)
    reads = run.inputs.num_global_features is not None
    if reads != (global_features is not None):
        needs = "needs --global-features as well" if reads else "takes no --global-features"
        raise InputError(f"the model of {run.directory} {needs}: see [data] of its recipe")
    files = file if global_features is None else f"{file} and {global_features}"
    return names, run.inputs.standardise(features, files)
