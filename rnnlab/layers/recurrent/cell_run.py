"""A cell as the loop over time runs it: with prepacked weights, dropout and zoneout."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnlab.layers.recurrent.cell import Cell, ChunkedCell, Step
from rnnlab.layers.recurrent.functional import FunctionalCell
from rnnlab.layers.recurrent.packing import Chunk
from rnnlab.layers.recurrent.primitive import PrimitiveCell
from rnnlab.layers.recurrent.regularisation import Draws
from rnnlab.ops import ChunkMasks, StepMasks, ops_for, unchecked
from rnnlab.types import Array, Params, State


class CellRun:
    """A prepared cell with the random masks of one call, forward or backward.

    Parameters
    ----------
    cell : Cell
    draws : Draws
    params : mapping of str to array
    h0 : (N, H)
        An array with the library, the shape and the dtype of a state.
    """

    def __init__(self, cell: Cell, draws: Draws, params: Params, h0: Array) -> None:
        ops = ops_for(h0)
        recurrent = {name: params[name] for name in cell.recurrent_shapes(h0.shape[1])}
        read = draws.dropped(recurrent)
        of_steps = unchecked(ops) if isinstance(cell, PrimitiveCell) else ops
        self.prepared = cell.prepare(of_steps, read) or FunctionalCell(cell, ops, read)
        self._masks, self._state_mask = draws.step_masks(), draws.state_mask(h0)
        self._splits_read = cell.carries_h or self._masks is not None
        if self._state_mask is not None:
            self._read, self._dread = (ops.empty(h0.shape, h0.dtype) for _ in range(2))

    @property
    def chunked(self) -> ChunkedCell | None:
        """The prepared cell if it may be able to run many steps at once; otherwise None."""
        prepared: Any = self.prepared
        # issubclass remembers its result; isinstance looks at the methods of a protocol each time
        return prepared if issubclass(type(prepared), ChunkedCell) else None

    @property
    def masks(self) -> ChunkMasks | None:
        """Dropout and zoneout of all steps, if there are any."""
        if self._masks is None and self._state_mask is None:
            return None
        return ChunkMasks(self._masks or StepMasks(), self._state_mask)

    def step(self, gates: Array, prev: State, after: State, saved: Any, start: int) -> Step:
        """The arrays of a step whose first packed row is ``start``."""
        read, masks = prev[0], None
        if self._state_mask is not None:
            read = self._read[: len(read)]
            np.multiply(prev[0], self._state_mask[: len(read)], out=read)
        if self._masks is not None:
            masks = self._masks._replace(start=start * read.shape[1])
        return Step(gates, prev, after, saved, read, masks)

    def backward(self, step: Step, dstate: State, da: Array) -> None:
        """Write da (n, G); turn ``dstate`` from the gradient of ``step.next`` into that of ``step.prev``."""
        dh = dread = dstate[0]
        apart = self._state_mask is not None and self._splits_read
        if apart:
            dread = self._dread[: len(dh)]
            dread[...] = 0
        past = self.prepared.backward(step, dstate, dread, da)
        if self._state_mask is not None:
            dread *= self._state_mask[: len(dh)]
        if apart:
            dh += dread
        if past is not None:
            dh += past

    def add_gradients(self, h: Array, saved: Any, da: Array, grads: Params, chunk: Chunk) -> None:
        """Add the recurrent parameters' gradients of a chunk; h (m, H) are the states before its steps."""
        if self._state_mask is not None:
            states, h = h, ops_for(h).empty(h.shape, h.dtype)
            for rows, _, _ in chunk.steps:
                here, mask = chunk.here(rows), self._state_mask[: rows.stop - rows.start]
                np.multiply(states[here], mask, out=h[here])
        self.prepared.add_gradients(h, saved, da, grads)
