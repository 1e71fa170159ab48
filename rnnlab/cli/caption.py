"""``rnnlab caption``: caption images or photographs, and show the attention of the captions."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rnnlab.cli.arguments import add_download, add_seed, check_outputs
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
from rnnlab.recipes.data import ShapesTable
from rnnlab.recipes.recipe import CaptioningRecipe
from rnnlab.reporting.captions import (
    attention_picture,
    captions_picture,
    captions_text,
    coco_image_ids,
    write_captions,
    write_coco_results,
)
from rnnlab.runs import Run
from rnnlab.tasks.search import decode
from rnnlab.training.run_directory import holds_run

_DRAWN = 8  # maximum number of captions whose attention is drawn
_PICTURED = 100  # maximum number of images in a picture


class _Images(NamedTuple):
    """The images to caption."""

    run: Run
    names: Sequence[str]  # at most --max-images
    features: Any  # may be lazy, with further rows
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
    caption.add_argument("--json", metavar="FILE", help="write the captions and their scores as JSON")
    caption.add_argument(
        "--coco",
        metavar="FILE",
        help="write the best captions as the results file of COCO's evaluation, for images with COCO's names",
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
    add_seed(caption)
    add_encoder(caption, required=False)
    add_search(caption)


def _caption(options: argparse.Namespace) -> int:
    inputs = *options.images, options.global_features, options.encoder
    check_outputs(options, "json", "coco", "picture", "show_attention", inputs=inputs)
    if options.download and not (options.picture or options.show_attention):
        raise InputError("--download is for the images to draw, and needs --picture or --show-attention")
    run, names, features, are_files, are_encoded = _images(options)
    recipe = recipe_of(run, CaptioningRecipe)
    image_ids = coco_image_ids(names) if options.coco else []
    if options.show_attention:
        check_attends(run, "--show-attention", "regions")
    data = run.data or run.inputs
    decoding = search_options(recipe.decoding, options)
    captions = decode(
        run.model,
        features,
        decoding,
        rng=options.seed or 0,
        return_alignments=options.show_attention is not None,
        first=len(names),
        communicator=options.communicator,
    )
    if options.communicator.rank:
        return 0
    download = options.download
    if options.json:
        write_captions(options.json, run, names, captions)
    if options.coco:
        write_coco_results(options.coco, image_ids, captions, data)
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
    # printed after the files are written, because printing may fail
    print(captions_text(names, captions, data, lists=decoding.n_best > 1))
    return 0


def _images(options: argparse.Namespace) -> _Images:
    """The run, and the names and features of the images to caption."""
    # the last argument is a split or an image, even if a directory has this name
    directories, wanted = leading_runs(options.run_directory, options.images[:-1])
    wanted.append(options.images[-1])
    check_encoder(options)
    found = {"features": _of_features_file, "files": _of_files, "data": _of_data}
    return found[_kind_of(wanted, options)](directories, wanted, options)


def _kind_of(wanted: Sequence[str], options: argparse.Namespace) -> Literal["features", "files", "data"]:
    """The kind of input: a file of features, photographs in files, or a split or images of the run's data.

    Nothing is opened. A single name without a folder or a suffix may be a split, even if there is a file of
    that name; it is a photograph if ``--encoder`` is given.
    """
    kind: Literal["features", "files", "data"] = "data"
    if len(wanted) == 1 and wanted[0].endswith((".h5", ".hdf5")):
        kind = "features"
    elif all(map(os.path.isfile, wanted)) and (options.encoder is not None or not _may_be_split(wanted)):
        kind = "files"
    if options.encoder is not None and kind != "files":
        raise InputError(f"--encoder is for photographs, expected their files instead of {' '.join(wanted)}")
    if options.global_features is not None and kind != "features":
        raise InputError("--global-features needs an HDF5 file of local features as well")
    return kind


def _may_be_split(wanted: Sequence[str]) -> bool:
    return len(wanted) == 1 and not os.path.dirname(wanted[0]) and not Path(wanted[0]).suffix


def _of_features_file(
    directories: Sequence[str], wanted: Sequence[str], options: argparse.Namespace
) -> _Images:
    """The images of a file of features. The data of the run are not opened."""
    run = _open(directories, options, with_data=False)
    files = [wanted[0]] if options.global_features is None else [wanted[0], options.global_features]
    names, features = open_features(*files)
    reads = run.inputs.num_global_features is not None
    if reads != (options.global_features is not None):
        needs = "needs --global-features as well" if reads else "takes no --global-features"
        raise InputError(f"the model of {run.directory} {needs}: see [data] of its recipe")
    run.inputs.check_files(dict(zip(("features", "global_features"), files, strict=False)))
    return _Images(run, names[: options.first], run.inputs.standardise(features, " and ".join(files)))


def _of_files(directories: Sequence[str], wanted: Sequence[str], options: argparse.Namespace) -> _Images:
    """Photographs, or the images of these names in the run's data if the encoder is not known."""
    run = _open(directories, options, with_data=False)
    if options.encoder is not None or run.inputs.knows_encoders:
        return _encoded(run, wanted, options)
    # It is opened again, with its data, because only an opened run knows whether it has its encoder.
    return _of_data(directories, wanted, options)._replace(are_files=True)


def _of_data(directories: Sequence[str], wanted: Sequence[str], options: argparse.Namespace) -> _Images:
    """A split, or images of the run's data by name; photographs if they are neither."""
    run = _open(directories, options)
    if len(wanted) == 1 and wanted[0] in run.data.splits:
        images = run.data.split(wanted[0])
        return _Images(run, images.names[: options.first], images.model_inputs)
    if holds_run(Path(wanted[-1])):
        raise InputError(
            f"{wanted[-1]} is a run; which images? Give a split or images after the runs, such as "
            f"{', '.join(run.data.splits)}"
        )
    names = tuple(wanted)[: options.first]
    try:
        return _Images(run, names, run.data.features_of(names))
    except MissingDataError as error:
        if not all(map(os.path.isfile, names)):
            _check_images(run, names)
            raise
        if run.inputs.knows_encoders:
            return _encoded(run, names, options)
        hint = (
            "to caption photographs, give with --encoder the ONNX file of the encoder that made the features "
            "of the run, which they do not record"
        )
        if isinstance(run.recipe.data, ShapesTable):
            hint = "this run captions no photographs: its features come from no encoder"
        raise MissingDataError(f"{error}; {hint}") from None


def _open(directories: Sequence[str], options: argparse.Namespace, *, with_data: bool = True) -> Run:
    run = open_runs(directories, options, with_data=with_data)
    recipe_of(run, CaptioningRecipe)
    return run


def _encoded(run: Run, wanted: Sequence[str], options: argparse.Namespace) -> _Images:
    """Photographs, encoded by the encoder of the run."""
    files = tuple(wanted)[: options.first]
    if options.coco:
        coco_image_ids(files)  # an error comes before the photographs are encoded
    run = with_encoder(run, options)
    features = run.inputs.encode(files)
    if options.communicator.rank == 0:
        for warning in unlike_training(files, features):
            print(f"rnnlab caption: {warning}", file=sys.stderr)
    return _Images(run, files, features, are_files=True, are_encoded=True)


def _check_images(run: Run, names: Sequence[str]) -> None:
    """Raise the error of the first name that is neither a file nor an image of the run's data."""
    for name in names:
        if Path(name).is_dir():
            raise IsADirectoryError(f"{name} is a folder: folders are not read; name files")
        if Path(name).exists():
            check_regular(name, "a photograph")
        elif not _has_image(run, name):
            raise MissingDataError(
                f"{name}: no such photograph, and no image of the run's data ({run.data.name}), whose "
                f"splits are {', '.join(run.data.splits)}"
            )


def _has_image(run: Run, name: str) -> bool:
    try:
        run.data.features_of([name])
    except MissingDataError:
        return False
    return True
