"""``rnnlab kernels``: show which kernels compute on this machine, and compile them."""

from __future__ import annotations

import argparse
import time
from typing import Any

from rnnlab import ops


def add(commands: Any) -> None:
    """Add the command's arguments."""
    kernels = commands.add_parser("kernels", help="show which kernels compute here, and compile them")
    kernels.set_defaults(run=_kernels)
    kernels.add_argument(
        "--warm-up", action="store_true", help="compile the kernels that are not in the cache"
    )


def _kernels(options: argparse.Namespace) -> int:
    for line in ops.describe_on("cpu"):
        print(f"CPU: {line}")
    for line in ops.describe_on("gpu:0") if _has_gpu() else [ops.describe_gpu()]:
        print(f"GPU: {line}")
    if options.warm_up:
        started = time.perf_counter()
        compiled = ops.warm_up()
        if compiled is None:
            print("NumPy computes: there are no kernels to compile.")
        elif compiled:
            print(f"Compiled {compiled} kernels in {time.perf_counter() - started:.0f} s.")
        else:
            print("All kernels are in the cache.")
    return 0


def _has_gpu() -> bool:
    try:
        return ops.num_gpus() > 0
    except (ImportError, ValueError):
        return False
