"""One step of a cell after another, for decoding: weights are prepacked once, nothing is saved."""

from __future__ import annotations

from rnnlab.layers.recurrent.cell import Cell, Params
from rnnlab.layers.recurrent.regularisation import UNREGULARISED, Draws, Regularisation
from rnnlab.layers.recurrent.sequence import CellRun
from rnnlab.ops import ops_for
from rnnlab.types import Array, State


class RecurrentStep:
    """A cell in inference, a step at a time. Later changes of the parameters have no defined effect.

    Parameters
    ----------
    cell : Cell
    params : mapping of str to array
        Wx (D, G), b (G,) and the cell's own.
    like : (N, H)
        Tells the library, the units and the dtype of a state.
    regularisation : Regularisation
        Zoneout becomes its expectation; dropout has no effect.
    """

    def __init__(
        self, cell: Cell, params: Params, like: Array, regularisation: Regularisation = UNREGULARISED
    ) -> None:
        self._ops, self.Wx, self._b = ops_for(like), params["Wx"], params["b"]
        self._from_x = self._ops.prepacked(self.Wx)
        self._run = CellRun(cell, Draws.of(regularisation, None, self._ops), params, like)

    def __call__(self, x: Array, state: State) -> State:
        """Input x (n, D) and the state before the step, arrays (n, H), to the state after it."""
        gates = self._ops.empty((x.shape[0], self.Wx.shape[1]), x.dtype)
        self._ops.affine_into(x, self._from_x, self._b, gates)
        return self._step(gates, state)

    def add_input(self, x: Array, gates: Array, state: State) -> State:
        """The same where ``gates`` (n, G) hold the products of contexts; they are overwritten."""
        self._ops.matmul_add(x, self._from_x, gates)
        gates += self._b
        return self._step(gates, state)

    def _step(self, gates: Array, state: State) -> State:
        n = gates.shape[0]
        after = tuple(self._ops.empty((n, each.shape[1]), gates.dtype) for each in state)
        saved = self._run.prepared.saved(n, state[0])
        self._run.prepared.forward(self._run.step(gates, state, after, saved[slice(0, n)], 0))
        return after
