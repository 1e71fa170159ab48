"""The parser of commands, types of arguments, and a check of files to write."""

from __future__ import annotations

import argparse
import math
import os
from typing import Any

import h5py

from rnnlab.files import check_writable


class Parser(argparse.ArgumentParser):
    """A parser that ``parser`` of its results names: that of the command, not of ``rnnlab``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.set_defaults(parser=self)


def positive_integer(text: str) -> int:
    """An integer of at least 1."""
    return _integer(text, 1)


def natural_number(text: str) -> int:
    """An integer of at least 0."""
    return _integer(text, 0)


def positive_number(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a positive number")
    return number


def add_download(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--download`` of commands that draw images."""
    parser.add_argument(
        "--download", action="store_true", help="fetch the images to draw whose names are addresses"
    )


def check_outputs(options: argparse.Namespace, *names: str) -> None:
    """Check, before the work, that the files can be written that these options name.

    Raises
    ------
    OSError
        As :func:`check_output`.
    """
    for name in names:
        if (path := getattr(options, name)) is not None:
            check_output(f"--{name.replace('_', '-')}", path)


def check_output(argument: str, path: str | os.PathLike[str]) -> None:
    """Check, before the work, that a file can be written, and that it replaces no checkpoint.

    Raises
    ------
    OSError
        If it cannot. The message names the argument, the file and the reason.
    """
    check_writable(argument, path)
    if os.path.isfile(path) and h5py.is_hdf5(path):
        raise FileExistsError(
            f"{argument} {path} is an HDF5 file, such as a checkpoint or features, which would be replaced: "
            "choose another path"
        )


def _integer(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r}, expected an integer of at least {least}")
    return int(text)


def show_help(parser: argparse.ArgumentParser) -> None:
    """Let a command that is given alone, without the action that it needs, print its help."""

    def run(_: argparse.Namespace) -> int:
        parser.print_help()
        return 0

    parser.set_defaults(run=run)
