"""The option ``--device``: where a command computes."""

from __future__ import annotations

import argparse

from rnnlab.training.distributed import device_of_rank

_DEFAULT = "cpu"


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--device", default=_DEFAULT, metavar="cpu|gpu|gpu:N", help="where to compute; a GPU needs CuPy"
    )


def device_here(options: argparse.Namespace) -> str:
    """The device of this process: the ranks of a machine take its GPUs in turn.

    Raises
    ------
    ImportError
        As :func:`rnnlab.training.distributed.device_of_rank`.
    """
    return device_of_rank(options.communicator, options.device)


def device_words(options: argparse.Namespace) -> str:
    """The option as the user gave it, for a command that is suggested; empty for the default."""
    return "" if options.device == _DEFAULT else f" --device {options.device}"
