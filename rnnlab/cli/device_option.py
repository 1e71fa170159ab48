"""The option ``--device``: where the arithmetic is done."""

from __future__ import annotations

import argparse


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--device", default="cpu", metavar="cpu|gpu|gpu:N", help="where to compute; a GPU needs CuPy"
    )
