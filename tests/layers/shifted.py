"""Numbers added to the hidden states inside a recurrence, to differentiate a loss with respect to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnnlab.layers.recurrent import loop

Array = Any


class ShiftedCell:
    """A prepared cell that adds ``shift[:, t]`` to the hidden state after step t, from step ``early`` on."""

    def __init__(self, cell: Any, shift: Array, early: int) -> None:
        self._cell, self._shift, self._t = cell, shift, -early

    def forward(self, step: Any) -> None:
        self._cell.forward(step)
        h = step.next[0]
        if self._t >= 0:
            h += self._shift[: len(h), self._t]
        self._t += 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("chunk_"):  # runs many steps at once
            raise AttributeError(name)
        return getattr(self._cell, name)


def shift_states(
    monkeypatch: pytest.MonkeyPatch, Wh: Array, shift: Array, lengths: Array | None = None, early: int = 0
) -> None:
    """Add ``shift`` (N, T, H), as it is at each call, to the states of the recurrence that reads ``Wh``."""
    order = np.arange(len(shift)) if lengths is None else np.argsort(-np.asarray(lengths), kind="stable")

    class ShiftedRun(loop.CellRun):
        def __init__(self, cell: Any, draws: Any, params: Any, h0: Array) -> None:
            super().__init__(cell, draws, params, h0)
            if np.shares_memory(params["Wh"], Wh):
                self.prepared: Any = ShiftedCell(self.prepared, shift[order], early)

    monkeypatch.setattr(loop, "CellRun", ShiftedRun)
