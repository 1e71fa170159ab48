"""A training step of ``captioning`` with products in bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import bfloat16, captioning
from benchmarks.captioning import Sizes

CASES = captioning.CASES
SIDES = bfloat16.with_autocast("torch", "torch packed")
TARGETS = {case: {"torch": None, "autocast": None} for case in CASES}
MEAN_TARGETS = {"torch": 2.2, "autocast": 1.3}
lacking = bfloat16.lacking


def prepare(side: str, sizes: Sizes) -> Callable[[], Any]:
    """The work of one side."""
    return bfloat16.prepare(captioning, side, sizes)
