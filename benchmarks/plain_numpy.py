"""A training step of ``captioning`` without the compiled kernels of the extra ``fast``, on NumPy alone."""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks import captioning
from benchmarks.captioning import Sizes

CASES = captioning.CASES
SIDES = ("rnnlab", "torch", "torch packed")
TARGETS = {case: {"torch": 1.0} for case in CASES}


def prepare(side: str, sizes: Sizes, device: str = "cpu") -> Callable[[], object]:
    """The training step of one side; it returns the loss."""
    os.environ["RNNLAB_OPS"] = "numpy"  # before the first step, which reads it
    return captioning.prepare(side, sizes, device)
