"""GRU, simplified GRU and vanilla RNN, forward and backward, as in ``cells``, with products in bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import bfloat16, cells
from benchmarks.lstm import Sizes

CASES = cells.CASES
SIDES = bfloat16.with_autocast("torch", "torch time-first")
TARGETS: dict[str, dict[str, float | None]] = {case: {"torch": None, "autocast": None} for case in CASES}
MEAN_TARGETS = {"torch": 1.7}
lacking = bfloat16.lacking


def prepare(side: str, case: tuple[str, Sizes]) -> Callable[[], Any]:
    """The work of one side."""
    return bfloat16.prepare(cells, side, case)
