"""``rnnlab gradcheck`` and ``rnnlab kernels``: what the machine makes of the library."""

from __future__ import annotations

import argparse
from typing import Any

from rnnlab import ops
from rnnlab.cli.device_option import add_device
from rnnlab.gradcheck import run as gradcheck
from rnnlab.reporting import report


def add(commands: Any) -> None:
    """Add the commands' arguments."""
    check = commands.add_parser("gradcheck", help="hold every gradient against a numeric one")
    check.set_defaults(run=_gradcheck)
    check.add_argument("--tolerance", type=float, default=1e-7, help="the largest relative error that passes")
    check.add_argument("--seed", type=int, default=0, help="of the inputs")
    add_device(check)

    kernels = commands.add_parser("kernels", help="show what works on arrays here, and compile it")
    kernels.set_defaults(run=_kernels)
    kernels.add_argument(
        "--warm-up", action="store_true", help="compile all kernels now, unless they are kept from before"
    )


def _gradcheck(options: argparse.Namespace) -> int:
    passed = True
    given = {"tolerance": options.tolerance, "seed": options.seed, "device": options.device}
    for title, rows in (
        ("layer", gradcheck.check_layers(**given)),
        ("model", gradcheck.check_models(**given)),
    ):
        table, good = report.checks_table(title, rows)
        print(table, end="\n\n")
        passed &= good
    print("All gradients agree." if passed else "Some gradients are WRONG.")
    return 0 if passed else 1


def _kernels(options: argparse.Namespace) -> int:
    print(f"{ops.describe()}\nGPU: {ops.describe_gpu()}")
    if options.warm_up:
        seconds = ops.warm_up()
        print(
            f"Compiled what was not kept from before in {seconds:.1f} s."
            if seconds
            else "Nothing to compile."
        )
    return 0
