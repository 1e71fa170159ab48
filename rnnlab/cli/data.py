"""``rnnlab data``: prepare data sets, and describe them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnlab import runs
from rnnlab.cli.arguments import positive_integer, show_help
from rnnlab.cli.recipe_file import read_recipe
from rnnlab.data import describe, prepare_annotated, read_coco, read_karpathy
from rnnlab.data.course import VOCABULARY_FILE
from rnnlab.data.prepare import check_unprepared
from rnnlab.errors import InputError


def add(commands: Any) -> None:
    """Add the commands' arguments."""
    data = commands.add_parser("data", help="prepare data sets, and describe them")
    show_help(data)
    actions = data.add_subparsers(dest="action", metavar="ACTION")

    prepare = actions.add_parser("prepare", help="write annotations and features in the layout of cs231n")
    prepare.set_defaults(run=_prepare)
    source = prepare.add_mutually_exclusive_group(required=True)
    source.add_argument("--karpathy", metavar="FILE", help="annotations in dataset_*.json, with their splits")
    source.add_argument(
        "--coco", nargs="+", metavar="SPLIT=FILE", help="COCO annotations, one file for each split"
    )
    prepare.add_argument(
        "--features", required=True, metavar="FILE", help="HDF5 file with features and filenames"
    )
    prepare.add_argument("--out", required=True, metavar="DIR", help="the folder to write; must not exist")
    prepare.add_argument(
        "--min-count",
        type=positive_integer,
        default=5,
        metavar="N",
        help="the vocabulary has the words with at least N occurrences in the training captions (default: 5)",
    )
    prepare.add_argument(
        "--max-size",
        type=positive_integer,
        metavar="N",
        help="the vocabulary has the N most frequent of these words at most",
    )
    prepare.add_argument(
        "--max-words",
        type=positive_integer,
        default=15,
        metavar="N",
        help="longer captions are cut to N words (default: 15)",
    )
    prepare.add_argument(
        "--pca-components",
        "--pca",
        dest="pca",
        type=positive_integer,
        metavar="D",
        help="reduce features to D numbers by PCA, fitted on the training split",
    )

    info = actions.add_parser("info", help="describe a data set")
    info.set_defaults(run=_info)
    info.add_argument("data", help="a folder in the layout of cs231n, or a recipe")
    info.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a recipe's key")


def _prepare(options: argparse.Namespace) -> int:
    check_unprepared("--out", options.out)
    if options.karpathy is not None:
        annotations = read_karpathy(options.karpathy)
    else:
        annotations = read_coco(_split_files(options.coco))
    written = prepare_annotated(
        annotations,
        options.features,
        options.out,
        min_count=options.min_count,
        max_size=options.max_size,
        max_words=options.max_words,
        pca=options.pca,
    )
    print(written.describe())
    return 0


def _split_files(texts: Sequence[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for text in texts:
        split, equals, path = text.partition("=")
        if not equals:
            raise InputError(
                f"--coco: got {text!r}, expected SPLIT=FILE, such as train=captions_train2017.json"
            )
        if split in files:
            raise InputError(
                f"--coco: got {split}={files[split]} and {text}, expected one file for each split"
            )
        files[split] = path
    return files


def _info(options: argparse.Namespace) -> int:
    if not Path(options.data).is_dir():
        print(runs.open_data(read_recipe(options.data, options.set).data).describe())
        return 0
    if options.set:
        raise InputError(f"--set changes keys of a recipe, but {options.data} is a folder")
    if not Path(options.data, VOCABULARY_FILE).exists():
        raise InputError(
            f"{options.data}: found no {VOCABULARY_FILE}, expected a folder in the layout of cs231n, or a "
            "recipe, which describes any data: rnnlab data info RECIPE"
        )
    print(describe(options.data))
    return 0
