"""Layers with few units, forward and backward, as in ``lstm`` and ``cells``.

Their products have few columns, and the time between the products counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import cells, lstm
from benchmarks.lstm import Sizes

CASES = {
    f"{cell}: N={N} T={T} D={D} H={H}": (cell, Sizes(N, T, D, H))
    for cell in ("LSTM", "GRU", "RNN")
    for N, T, D, H in ((64, 20, 32, 16), (25, 60, 50, 12), (150, 30, 20, 30), (200, 10, 250, 6))
}
SIDES = ("rnnlab", "torch", "torch time-first", "nn.RNN", "nn.RNN time-first")
TARGETS = {
    case: {"torch": 1.0, **({"nn.RNN": 1.0} if cell == "RNN" else {})} for case, (cell, _) in CASES.items()
}
MEAN_TARGETS = {"torch": 1.0}


def prepare(side: str, case: tuple[str, Sizes]) -> Callable[[], Any]:
    """The work of one side; see :func:`benchmarks.cells.prepare`."""
    cell, sizes = case
    return lstm.prepare(side, sizes) if cell == "LSTM" else cells.prepare(side, case)
