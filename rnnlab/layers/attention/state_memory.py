"""The memory of target attention in a search: the past states of all hypotheses."""

from __future__ import annotations

import numpy as np

from rnnlab.layers.attention.scores import Keys
from rnnlab.ops import ops_for
from rnnlab.types import Array


class StateMemory:
    """The states of all hypotheses of a search and their keys. Rows are appended and never change.

    Each hypothesis has the row numbers of its own states, so selecting hypotheses copies no states.

    Attributes
    ----------
    states : (R, H)
    keys : (R, A)
        Rows past the appended ones are uninitialised.
    """

    def __init__(self, keys: Keys, like: Array) -> None:
        self._ops, self._projection, self._used = ops_for(like), keys, 0
        self.states = self._ops.empty((0, like.shape[1]), like.dtype)
        self.keys = keys.workspace(0, self.states)

    def append(self, h: Array) -> Array:
        """Append states (n, H). Return their row numbers, (n, 1)."""
        start, stop = self._used, self._used + h.shape[0]
        if stop > self.states.shape[0]:
            self._grow(max(2 * stop, 8 * h.shape[0]))
        self.states[start:stop] = h
        self._projection.write(h, self.keys[start:stop])
        self._used = stop
        return self._ops.asarray(np.arange(start, stop)[:, None])

    def _grow(self, rows: int) -> None:
        states, keys, used = self.states, self.keys, slice(self._used)
        self.states = self._ops.empty((rows, states.shape[1]), states.dtype)
        self.states[used] = states[used]
        self.keys = self._projection.workspace(rows, self.states)
        if keys is not states:
            self.keys[used] = keys[used]
