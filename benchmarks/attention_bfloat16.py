"""A training step of ``attention`` with products in bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import attention, bfloat16
from benchmarks.attention import Sizes

CASES = attention.CASES
SIDES = bfloat16.with_autocast("torch", "torch nn")
TARGETS = {case: {"torch": 2.8, "autocast": None} for case in CASES}
lacking = bfloat16.lacking


def prepare(side: str, sizes: Sizes) -> Callable[[], Any]:
    """The work of one side."""
    return bfloat16.prepare(attention, side, sizes)
