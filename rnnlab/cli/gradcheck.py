"""``rnnlab gradcheck``: check every gradient against a numeric one."""

from __future__ import annotations

import argparse
from typing import Any

from tqdm import tqdm

from rnnlab.cli.arguments import natural_number, positive_integer, positive_number
from rnnlab.cli.device_option import add_device
from rnnlab.gradcheck.run import Row, case_names, check_all
from rnnlab.ops.threads import num_processors

_NAMED = 6  # maximum number of wrong gradients that a line names


def add(commands: Any) -> None:
    """Add the command's arguments."""
    check = commands.add_parser("gradcheck", help="check every gradient against a numeric one")
    check.set_defaults(run=_gradcheck)
    check.add_argument(
        "--only",
        metavar="PATTERN",
        help="check the cases whose names contain this, such as lstm or 'gru*step'",
    )
    check.add_argument(
        "--cell",
        metavar="NAME",
        help="check a cell of your own, package.module:Name, alone and in every model",
    )
    check.add_argument(
        "--jobs",
        type=positive_integer,
        default=num_processors(),
        metavar="N",
        help="number of processes (default: %(default)s, one per processor; a GPU uses one)",
    )
    check.add_argument(
        "--tolerance",
        type=positive_number,
        default=1e-7,
        help="largest relative error that passes (default: 1e-7)",
    )
    check.add_argument(
        "--seed", type=natural_number, default=0, help="the seed of inputs and dropout masks (default: 0)"
    )
    add_device(check)


def _gradcheck(options: argparse.Namespace) -> int:
    names = case_names(options.only, seed=options.seed, cell=options.cell)
    rows = check_all(
        only=options.only,
        jobs=options.jobs,
        tolerance=options.tolerance,
        seed=options.seed,
        device=options.device,
        cell=options.cell,
    )
    failed, width = 0, max(map(len, names)) + 2
    # the bar shows the time left, on a terminal only
    with tqdm(total=len(names), unit="case", disable=None, leave=False) as bar:
        for k, row in enumerate(rows):
            if not k:  # after the first case, which may print above the table that kernels are compiled
                _print(f"{'layer or model':<{width}}{'error':>7}  check  gradients")
            _print(_line(row, width))
            bar.update()
            failed += not row.passed
    if failed:
        print(f"{failed} of {len(names)} checks failed: gradients are WRONG.")
        if options.cell is not None:
            print(
                "An error in da or dprev_state spreads through the time steps to the gradients of the "
                "parameters: check these two first."
            )
        return 1
    print(f"All {len(names)} checks passed.")
    return 0


def _print(line: str) -> None:
    """Print a line above the bar, without buffering even if the output is a file or a pipe."""
    with tqdm.external_write_mode():
        print(line, flush=True)


def _line(row: Row, width: int) -> str:
    """The row's largest error, with the gradient that has it, or with the first wrong gradients."""
    verdict, gradients = "ok" if row.passed else "WRONG", ", ".join(row.wrong[:_NAMED] or [row.worst])
    if len(row.wrong) > _NAMED:
        gradients += f" and {len(row.wrong) - _NAMED} more"
    touched = f"; writes into {', '.join(row.touched)}" if row.touched else ""
    return f"{row.name:<{width}}{row.error:7.1e}  {verdict:<5}  {gradients}{touched}"
