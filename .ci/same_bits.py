"""Fail if two processes that train the same model on a GPU end with different parameters, in any precision.

The model is the largest of ``benchmarks.captioning``, because cuBLAS divides the sums of large products only.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import get_args

from benchmarks import captioning
from benchmarks.steps import training_step
from rnnlab.options import MatmulName

CASE, STEPS = "N=128 T=16 H=512 V=10516", 20
COMMAND = [sys.executable, __file__, "train"]  # of a process


def trained() -> str:
    """The hash of the parameters after some steps, which are CUDA graphs."""
    sizes = captioning.CASES[CASE]
    model = captioning.model(sizes, captioning.weights(sizes))
    step = training_step(model, *captioning.batch(sizes), device="gpu", graphs=True)
    for _ in range(STEPS):
        step()
    return hashlib.sha256(model.params.flat.get()).hexdigest()


def main() -> int:
    """Train twice in each precision, all at the same time, and print the hashes."""
    runs = [(matmul, run) for matmul in get_args(MatmulName) for run in (1, 2)]
    processes = {
        (matmul, run): subprocess.Popen(
            COMMAND, env=os.environ | {"RNNLAB_MATMUL": matmul}, stdout=subprocess.PIPE, text=True
        )
        for matmul, run in runs
    }
    hashes = {each: process.communicate()[0].strip() for each, process in processes.items()}
    differ = [matmul for matmul, run in runs if run == 1 and hashes[matmul, 1] != hashes[matmul, 2]]
    for (matmul, _), found in hashes.items():
        print(f"{matmul:10}{found or 'failed'}")
    print(f"differ: {', '.join(differ) or 'none'}")
    return 1 if differ or not all(hashes.values()) else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["train"]:
        print(trained())
    else:
        sys.exit(main())
