"""``rnnlab kernels``: show which kernels compute on this machine, and compile them."""

from __future__ import annotations

import argparse
import functools
import time
from typing import Any

from tqdm import tqdm

from rnnlab import ops
from rnnlab.cli.arguments import positive_integer
from rnnlab.errors import InputError
from rnnlab.ops.threads import default_jobs


def add(commands: Any) -> None:
    """Add the command's arguments."""
    kernels = commands.add_parser("kernels", help="show which kernels compute here, and compile them")
    kernels.set_defaults(run=_kernels)
    kernels.add_argument(
        "--warm-up", action="store_true", help="compile the kernels that are not in the cache"
    )
    kernels.add_argument(
        "--jobs",
        type=positive_integer,
        metavar="N",
        help="with --warm-up, the number of processes (default: the number of processors, at most 8)",
    )


def _kernels(options: argparse.Namespace) -> int:
    if options.jobs and not options.warm_up:
        raise InputError("--jobs is given, which needs --warm-up")
    compiled, started = None, time.perf_counter()
    if options.warm_up:  # first, because the description compiles a kernel
        progress = functools.partial(tqdm, unit="kernel", disable=None)
        compiled = ops.warm_up(options.jobs or default_jobs(), progress)
    for line in ops.describe_on("cpu"):
        print(f"CPU: {line}")
    for line in ops.describe_on("gpu:0") if _has_gpu() else [ops.describe_gpu()]:
        print(f"GPU: {line}")
    if options.warm_up:
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
