"""The parser of commands, types of arguments, and a check of files to write."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import h5py

from rnnlab.errors import InputError
from rnnlab.files import check_writable
from rnnlab.metrics import METRICS, TRANSLATION_METRICS
from rnnlab.training.run_directory import RUN_FILES, holds_run


class Parser(argparse.ArgumentParser):
    """A parser that sets ``parser`` in its results, so that errors show the usage of the command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.set_defaults(parser=self)

    def error(self, message: str) -> NoReturn:
        """Show the arguments that the command needs, without its options, and end the process."""
        formatter = self._get_formatter()
        needed = [action for action in self._actions if action.required or not action.option_strings]
        formatter.add_usage(None, needed, [])
        usage = formatter.format_help().replace(self.prog, f"{self.prog} [OPTION ...]", 1)
        self.exit(2, f"{usage}{self.prog}: error: {message} ({self.prog} --help lists the options)\n")


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
        "--download", action="store_true", help="download the images to draw whose names are URLs"
    )


def add_first(parser: argparse._ActionsContainer, help: str, *others: str) -> None:
    """Add the option ``--max-images``, which is stored as ``first``, and ``others``, its further names."""
    parser.add_argument(
        "--max-images",
        "--max-sentences",
        *others,
        dest="first",
        type=positive_integer,
        metavar="N",
        help=help,
    )


def add_metrics(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the option ``--metrics``; given several times, it adds up."""
    names = list(dict.fromkeys([*METRICS, *TRANSLATION_METRICS]))
    parser.add_argument("--metrics", action="extend", nargs="+", choices=names, help=help)


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--seed`` of commands that search for sentences."""
    parser.add_argument("--seed", type=natural_number, help="the seed of --method sample; 0 if left out")


def check_outputs(options: argparse.Namespace, *names: str, inputs: Iterable[str | None] = ()) -> None:
    """Check, before the work, that the files named by these options can be written.

    Parameters
    ----------
    options : Namespace
    *names : str
        The names of the options.
    inputs : iterable of path or None
        The files that the command reads.

    Raises
    ------
    OSError
        As :func:`check_output`.
    ValueError
        If two options name the same file.
    """
    inputs, seen = tuple(inputs), dict[str, str]()
    for name in names:
        if (path := getattr(options, name)) is not None:
            option = f"--{name.replace('_', '-')}"
            check_output(option, path, inputs)
            if (first := seen.setdefault(os.path.realpath(path), option)) != option:
                raise InputError(f"{first} and {option} are both {path}, expected two files")


def check_output(argument: str, path: str | os.PathLike[str], inputs: Iterable[str | None] = ()) -> None:
    """Check, before the work, that a file can be written, and that it does not replace a valuable file.

    Valuable files are those that the command reads, those of a run, and HDF5 files.

    Raises
    ------
    OSError
        If it cannot. The message names the argument, the file and the reason.
    """
    check_writable(argument, path)
    if not os.path.isfile(path):
        return
    folder, name = os.path.split(os.path.realpath(path))
    if any(each is not None and os.path.exists(each) and os.path.samefile(each, path) for each in inputs):
        kind = "a file that the command reads"
    elif h5py.is_hdf5(path):
        kind = "an HDF5 file, such as a checkpoint or features"
    elif name in RUN_FILES and holds_run(Path(folder)):
        kind = f"a file of the run in {folder}"
    else:
        return
    raise FileExistsError(f"{argument} {path} is {kind}, which would be replaced: choose another path")


def _integer(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r}, expected an integer of at least {least}")
    return int(text)


def show_help(parser: argparse.ArgumentParser) -> None:
    """Make a command print its help if it is called without an action."""

    def run(_: argparse.Namespace) -> int:
        parser.print_help()
        return 0

    parser.set_defaults(run=run)
