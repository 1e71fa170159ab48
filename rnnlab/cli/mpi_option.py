"""The option ``--mpi``, and commands that several processes run together."""

from __future__ import annotations

import argparse

from rnnlab.training.distributed import Communicator, OneProcess, world


def add_mpi(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--mpi",
        action="store_true",
        help="work on all processes of an MPI job, whose launcher is not recognised; mpirun and srun are",
    )


def find_ranks(options: argparse.Namespace) -> Communicator:
    """The processes that run a command together: one if the command has no option ``--mpi``.

    Raises
    ------
    ImportError, ValueError
        As :func:`rnnlab.training.distributed.world`.
    """
    return world(options.mpi) if hasattr(options, "mpi") else OneProcess()
