"""``rnnlab features``: the features of photographs, by an image classifier in an ONNX file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from rnnlab.cli.arguments import check_outputs, positive_integer
from rnnlab.cli.encoder_options import add_encoder, check_encoder, encoder_settings
from rnnlab.data import read_karpathy
from rnnlab.data.names import composed
from rnnlab.data.photographs import ImageEncoder, choose_encoding, extract_features, find_photographs
from rnnlab.data.projection import read_projection
from rnnlab.errors import InputError

_LISTED = 5  # skipped photographs in the last line; each is also reported when it is skipped


def add(commands: Any) -> None:
    """Add the command's arguments."""
    features = commands.add_parser("features", help="compute the features of photographs")
    features.set_defaults(run=_features)
    features.add_argument("images", nargs="+", metavar="IMAGES", help="photographs, and folders of them")
    features.add_argument("--out", required=True, metavar="FILE", help="the HDF5 file to write")
    features.add_argument(
        "--grid",
        action="store_true",
        help="a vector of each region, for models that attend; without it one vector of each photograph",
    )
    add_encoder(features, required=True)
    features.add_argument(
        "--pca-components",
        type=positive_integer,
        metavar="K",
        help="fit a PCA of K components to these photographs, and apply it",
    )
    features.add_argument(
        "--karpathy",
        metavar="FILE",
        help="annotations in dataset_*.json: fit the PCA to the photographs of their training split only",
    )
    features.add_argument(
        "--dtype", choices=["float16", "float32"], default="float16", help="of the file (default: float16)"
    )
    features.add_argument("--no-progress", dest="progress", action="store_false", help="no progress bar")


def _features(options: argparse.Namespace) -> int:
    if options.pca is not None and options.pca_components is not None:
        raise InputError("give either --pca, to apply a PCA, or --pca-components, to fit one")
    if options.karpathy is not None and options.pca_components is None:
        raise InputError("--karpathy is given, which needs --pca-components: the PCA that it restricts")
    check_encoder(options)
    if Path(options.out).exists():
        raise InputError(f"--out {options.out} already exists: delete it, or choose another file")
    check_outputs(options, "out")
    paths = find_photographs(options.images)
    training = None if options.karpathy is None else _training_names(options.karpathy, paths)
    encoding = choose_encoding(
        options.encoder,
        grid=options.grid,
        projection=None if options.pca is None else read_projection(options.pca),
        dtype=options.dtype,
        **encoder_settings(options),
    )
    print(f"{encoding.describe()}\n{encoding.preprocessing.describe()}")
    try:
        made = extract_features(
            paths,
            options.out,
            ImageEncoder(encoding),
            pca_components=options.pca_components,
            pca_names=training,
            progress=options.progress,
            report=_report,
        )
    except KeyboardInterrupt:
        print("The same command resumes.")
        raise
    if made.explained is not None:
        print(f"PCA: {made.shape[-1]} components explain {made.explained:.1%} of the variance")
    shape = " x ".join(map(str, made.shape))
    photographs = "1 photograph" if made.count == 1 else f"{made.count:,} photographs"
    print(f"{options.out}: {photographs}, {shape} {made.encoding.dtype} each")
    if made.skipped:
        listed = ", ".join(list(made.skipped)[:_LISTED]) + " and others" * (len(made.skipped) > _LISTED)
        print(f"{len(made.skipped):,} skipped, because they cannot be read: {listed}")
    return 0


def _training_names(annotations: str, paths: Sequence[Path]) -> set[str]:
    """The names of the photographs that belong to the training split of annotations."""
    training = {composed(image.name) for image in read_karpathy(annotations).splits.get("train", [])}
    found = {path.name for path in paths if composed(path.name) in training}
    if not found:
        raise InputError(
            f"--karpathy {annotations} has {len(training):,} training images, expected some of the "
            f"{len(paths):,} photographs"
        )
    print(f"The PCA is fitted to {len(found):,} of {len(paths):,} photographs, those of the training split.")
    return found


def _report(line: str) -> None:
    """A line on standard error, above the progress bar."""
    tqdm.write(f"rnnlab features: {line}", file=sys.stderr)
