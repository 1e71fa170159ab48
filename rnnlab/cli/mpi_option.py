"""The options ``--mpi`` and ``--mpi-timeout`` of commands that several processes run together."""

from __future__ import annotations

import argparse

from rnnlab.cli.arguments import positive_number
from rnnlab.training.distributed import ALONE, TIMEOUT, Communicator, world


def add_mpi(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--mpi",
        action="store_true",
        help="run on all processes of an MPI job; needed only if the launcher is not recognised (mpirun and "
        "srun are)",
    )
    parser.add_argument(
        "--mpi-timeout",
        type=positive_number,
        default=TIMEOUT,
        metavar="SECONDS",
        help="end the job if a process waits longer than this for another (default: %(default)g)",
    )


def find_ranks(options: argparse.Namespace) -> Communicator:
    """The processes that run a command together: one if the command has no option ``--mpi``.

    Raises
    ------
    ImportError, ValueError
        As :func:`rnnlab.training.distributed.world`.
    """
    return world(options.mpi, options.mpi_timeout) if hasattr(options, "mpi") else ALONE


def launcher_words(options: argparse.Namespace) -> str:
    """The launcher of this command's processes, for a suggested command; empty for one process."""
    size = options.communicator.size
    return "" if size == 1 else f"mpirun -n {size} "


def mpi_words(options: argparse.Namespace) -> str:
    """The options as the user gave them, for a suggested command; empty for the defaults."""
    timeout = "" if options.mpi_timeout == TIMEOUT else f" --mpi-timeout {options.mpi_timeout:g}"
    return f"{' --mpi' * options.mpi}{timeout}"
