"""The options ``--device``, ``--matmul`` and ``--graphs``: where and how a command computes."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from typing import get_args

from rnnlab.errors import InputError
from rnnlab.ops import describe_products, device_of
from rnnlab.ops.precision import products_in
from rnnlab.options import MatmulName
from rnnlab.recipes.overrides import key_of
from rnnlab.training import Callback
from rnnlab.training.callbacks.callback import Training
from rnnlab.training.distributed import device_of_rank

_DEFAULT = "cpu"
_KEY = "training.matmul"


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--device", default=_DEFAULT, metavar="cpu|gpu|gpu:N", help="where to compute; a GPU needs CuPy"
    )


def add_matmul(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--matmul``."""
    parser.add_argument(
        "--matmul",
        choices=get_args(MatmulName),
        help="the precision of products of float32 (default: RNNLAB_MATMUL, or float32)",
    )


def add_graphs(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--graphs`` and ``--no-graphs``."""
    parser.add_argument(
        "--graphs",
        action=argparse.BooleanOptionalAction,
        help="launch each training step as one CUDA graph (default: on a GPU, wherever that is possible)",
    )


def products_of(options: argparse.Namespace) -> AbstractContextManager[None]:
    """A context with the precision of products that the option sets, if the command has the option."""
    asked: MatmulName | None = getattr(options, "matmul", None)
    return nullcontext() if asked is None else products_in(asked)


class ShownProducts(Callback):
    """Prints the precision of a run's products, if it is not the default."""

    def on_start(self, solver: Training) -> None:
        """Print it."""
        if solver.options.matmul != "float32":
            print(describe_products(device_of(solver.model.params.flat)))


def matmul_setting(options: argparse.Namespace) -> list[str]:
    """The option as a change of a recipe, in the form of ``--set``, if it is given.

    Raises
    ------
    ValueError
        If ``--set`` changes the same key.
    """
    if options.matmul is None:
        return []
    for override in options.set:
        if key_of(override) == _KEY:
            raise InputError(f"--matmul {options.matmul} and --set {override} are both given, expected one")
    return [f"{_KEY}={options.matmul}"]


def device_here(options: argparse.Namespace) -> str:
    """The device of this process: the ranks of a machine take its GPUs in turn.

    Raises
    ------
    ImportError
        As :func:`rnnlab.training.distributed.device_of_rank`.
    """
    return device_of_rank(options.communicator, options.device)


def device_words(options: argparse.Namespace) -> str:
    """The options as the user gave them, for a suggested command; empty for the defaults."""
    device = "" if options.device == _DEFAULT else f" --device {options.device}"
    return device if options.matmul is None else f"{device} --matmul {options.matmul}"


def graphs_words(options: argparse.Namespace) -> str:
    """As :func:`device_words`."""
    return "" if options.graphs is None else " --graphs" if options.graphs else " --no-graphs"
