"""The memory of training steps of ``review``, without that of the model itself, measured as in ``memory``."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import attention, captioning, review
from benchmarks.memory import STEPS, measure

__all__ = ["CASES", "FRESH", "ROUNDS", "SIDES", "TARGETS", "UNIT", "measure", "prepare"]
CASES, SIDES, FRESH = review.CASES, review.SIDES, True
TARGETS = {case: {"torch": 1.0} for case in CASES}
UNIT = "MB"
ROUNDS = 1
TINY = review.Sizes(2, 2, True, attention.Sizes("lstm", 3, 8, captioning.Sizes(4, 16, 8, 8, 8, 100)))


def prepare(side: str, sizes: review.Sizes) -> Callable[[], object]:
    """A few steps."""
    review.prepare(side, TINY)()
    step = review.prepare(side, sizes)
    return lambda: [step() for _ in range(STEPS)]
