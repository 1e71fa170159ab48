"""``rnnlab data``: make data sets, and look at them."""

from __future__ import annotations

import argparse
from typing import Any

from rnnlab import runs
from rnnlab.data import CaptionData, describe, prepare_annotated, read_coco, read_karpathy
from rnnlab.recipes.recipe import load_config


def add(commands: Any) -> None:
    """Add the commands' arguments."""
    data = commands.add_parser("data", help="make data sets, and look at them")
    actions = data.add_subparsers(dest="action", required=True, metavar="ACTION")

    prepare = actions.add_parser("prepare", help="annotations and features to the course's layout")
    prepare.set_defaults(run=_prepare)
    source = prepare.add_mutually_exclusive_group(required=True)
    source.add_argument("--karpathy", metavar="FILE", help="dataset_*.json with its splits")
    source.add_argument("--coco", nargs="+", metavar="SPLIT=FILE", help="COCO captions, one file a split")
    prepare.add_argument("--features", required=True, metavar="FILE", help="HDF5: features, filenames")
    prepare.add_argument("--out", required=True, metavar="DIR", help="the folder to write")
    prepare.add_argument("--min-count", type=int, default=5, help="a word's least count in training captions")
    prepare.add_argument("--max-words", type=int, default=15, help="longer captions are cut")
    prepare.add_argument("--pca", type=int, metavar="D", help="reduce features to D numbers, fitted on train")

    info = actions.add_parser("info", help="what is in a data set")
    info.set_defaults(run=_info)
    info.add_argument("data", help="a folder in the course's layout, or a recipe")
    info.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a recipe's key")


def _prepare(options: argparse.Namespace) -> int:
    if options.karpathy:
        annotations = read_karpathy(options.karpathy)
    else:
        annotations = read_coco(dict(_split_file(text) for text in options.coco))
    written = prepare_annotated(
        annotations,
        options.features,
        options.out,
        min_count=options.min_count,
        max_words=options.max_words,
        pca=options.pca,
    )
    print(describe(written))
    return 0


def _split_file(text: str) -> tuple[str, str]:
    split, equals, path = text.partition("=")
    if not equals:
        raise ValueError(f"--coco: got {text!r}, expected SPLIT=FILE, such as train=captions_train2017.json")
    return split, path


def _info(options: argparse.Namespace) -> int:
    if options.set and not options.data.endswith(".toml"):
        raise ValueError(f"--set changes keys of a recipe, and {options.data} is not one")
    if options.data.endswith(".toml"):
        data = runs.open_data(load_config(options.data, options.set).data)
    else:
        data = CaptionData.from_course(options.data, standardise=False)
    print(describe(data))
    return 0
