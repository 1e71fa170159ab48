"""An LSTM forward and backward, as in ``lstm``, with products in bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import bfloat16, lstm
from benchmarks.lstm import Sizes

CASES = lstm.CASES
SIDES = bfloat16.with_autocast("torch", "torch time-first")
TARGETS = {case: {"torch": 2.4 if "D=1 " in case else None, "autocast": None} for case in CASES}
MEAN_TARGETS = {"torch": 1.7}
lacking = bfloat16.lacking


def prepare(side: str, sizes: Sizes) -> Callable[[], Any]:
    """The work of one side."""
    return bfloat16.prepare(lstm, side, sizes)
